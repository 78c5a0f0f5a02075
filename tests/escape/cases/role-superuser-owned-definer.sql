-- class: role-escape
-- caller: member
-- mode: role
-- must: inside a definer function of a superuser the walls stand as well: no settings, no locks, no other role
-- setup:
CREATE FUNCTION store.as_owner(statement text) RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
BEGIN EXECUTE statement; RETURN current_user; END $f$;
GRANT EXECUTE ON FUNCTION store.as_owner(text) TO guest;
-- attacks:
SELECT store.as_owner('SET ROLE postgres')
SELECT store.as_owner('RESET ROLE')
SELECT store.as_owner('SET aidb.tool_allowed_functions = ''set_config''')
SELECT store.as_owner('ALTER ROLE guest SUPERUSER')
SELECT store.as_owner('CREATE TABLE public.stays (a int)')
SELECT store.as_owner('SELECT pg_advisory_lock(1)')
SELECT store.as_owner('SELECT pg_read_file(''PG_VERSION'')')
SELECT store.as_owner('COPY (SELECT 1) TO PROGRAM ''true''')
SELECT store.as_owner('NOTIFY x')
SELECT store.as_owner('SET LOCAL statement_timeout = 0')
SELECT store.as_owner('DO LANGUAGE plpgsql $x$ BEGIN COMMIT; END $x$')
-- check:
SELECT judge.none_fine('attack')
-- check:
SELECT NOT rolsuper FROM pg_roles WHERE rolname = 'guest'
