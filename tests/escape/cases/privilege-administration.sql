-- class: privilege
-- caller: superuser
-- mode: role
-- must: nothing that administers roles, rights or the server is run, even with the right to do it
-- setup:
GRANT ALL ON DATABASE escape_template TO guest;
-- attacks:
GRANT guest TO PUBLIC
GRANT ALL ON store.goods TO PUBLIC
GRANT SELECT ON guest.pad TO keeper
REVOKE ALL ON guest.pad FROM keeper
ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC
ALTER ROLE guest PASSWORD 'known'
ALTER ROLE guest SET search_path = guest
ALTER ROLE guest IN DATABASE escape_template SET role = 'postgres'
ALTER ROLE ALL SET work_mem = '1GB'
CREATE ROLE other
DROP ROLE clerk
REASSIGN OWNED BY guest TO clerk
DROP OWNED BY guest
ALTER DATABASE escape_template SET work_mem = '1GB'
CREATE DATABASE other
DROP DATABASE escape_template
ALTER SYSTEM SET work_mem = '1GB'
COMMENT ON TABLE guest.pad IS 'x'
SECURITY LABEL ON TABLE guest.pad IS 'x'
ALTER TABLE guest.pad OWNER TO clerk
CREATE TABLESPACE t LOCATION '/tmp'
CHECKPOINT
-- check:
SELECT judge.none_fine('attack')
-- check:
SELECT rolpassword IS NULL FROM pg_authid WHERE rolname = 'guest'
