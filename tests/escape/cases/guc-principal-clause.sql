-- class: guc
-- caller: member
-- mode: readonly
-- must: a function cannot pose as another end user, neither for policies nor for the history of conversations
-- setup:
LOAD 'aidb';
SET ROLE guest;
CREATE FUNCTION guest.as_boss() RETURNS text LANGUAGE plpgsql STABLE SET aidb.principal = 'boss' AS $f$
BEGIN RETURN concat(aidb.principal(), '/', current_setting('aidb.principal')); END $f$;
-- before:
SET aidb.principal = 'ann'
-- attacks:
SELECT aidb.principal() AS p
SELECT guest.as_boss() AS p
SELECT current_setting('aidb.principal') AS p
-- after:
SELECT current_setting('aidb.principal'), aidb.principal() IS NULL
-- check:
SELECT judge.output('attack', 1) = '[{"p": "ann"}]' AND judge.told() NOT LIKE '%boss%' AND judge.output('after') = 'ann|t'
