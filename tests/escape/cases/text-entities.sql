-- class: files
-- caller: superuser
-- mode: readonly
-- agent: bare
-- needs: xml2
-- must: XML reads no files: not by an entity, a stylesheet's document() or an XInclude
-- attacks:
SELECT xpath('/a/text()', XMLPARSE(DOCUMENT '<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]><a>&e;</a>'))::text AS v
SELECT (XMLPARSE(DOCUMENT '<!DOCTYPE a [<!ENTITY % p SYSTEM "file:///etc/passwd"> %p;]><a/>'))::text AS v
SELECT xslt_process('<a/>', '<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:template match="/"><xsl:copy-of select="document(''/etc/passwd'')"/></xsl:template></xsl:stylesheet>') AS v
SELECT xpath('//text()', '<a xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="/etc/passwd" parse="text"/></a>'::xml)::text AS v
SELECT xpath_string('<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]><a>&e;</a>', '/a') AS v
-- check:
SELECT judge.told() NOT LIKE '%root:%'
