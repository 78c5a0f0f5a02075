-- class: fdw
-- caller: superuser
-- mode: role
-- needs: file_fdw
-- must: a foreign table over a file shows the file that its maker named, and cannot be made to name another
-- setup:
CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
GRANT USAGE ON FOREIGN SERVER files TO guest;
CREATE FOREIGN TABLE store.hosts (line text) SERVER files OPTIONS (filename '/etc/hostname');
GRANT ALL ON store.hosts TO guest;
-- attacks:
ALTER FOREIGN TABLE store.hosts OPTIONS (SET filename '/etc/passwd')
CREATE FOREIGN TABLE guest.passwd (line text) SERVER files OPTIONS (filename '/etc/passwd')
CREATE FOREIGN TABLE guest.program (line text) SERVER files OPTIONS (program 'id')
INSERT INTO store.hosts VALUES ('x')
DO $$ BEGIN EXECUTE 'CREATE FOREIGN TABLE guest.p (line text) SERVER files OPTIONS (program ''id'')'; END $$
SELECT * FROM pg_read_file('/etc/passwd')
-- check:
SELECT judge.none_fine('attack') AND judge.told() NOT LIKE '%root:%'
