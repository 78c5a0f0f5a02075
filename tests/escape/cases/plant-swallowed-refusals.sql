-- class: guc
-- caller: superuser
-- mode: role
-- must: code that catches every refusal and goes on has got nothing by it, however often it tries
-- setup:
SET ROLE guest;
CREATE FUNCTION guest.tries(word text) RETURNS text LANGUAGE plpgsql AS $f$
BEGIN EXECUTE word; RETURN word; EXCEPTION WHEN OTHERS THEN RETURN NULL; END $f$;
-- before:
SELECT set_config('app.marker', 'mine', false)
-- attack:
DO $$
DECLARE word text; got text := '';
BEGIN
    FOREACH word IN ARRAY ARRAY['RESET ROLE', 'SET ROLE postgres', 'SET SESSION AUTHORIZATION postgres', 'SET SESSION AUTHORIZATION DEFAULT', 'RESET ALL',
        'DISCARD ALL', 'DISCARD TEMP', 'DEALLOCATE ALL', 'CLOSE ALL', 'UNLISTEN *', 'LISTEN x', 'NOTIFY x', 'SET app.marker = 2', 'SET LOCAL app.marker = 2',
        'SET search_path = guest', 'SET CONSTRAINTS ALL IMMEDIATE', 'LOCK store.goods', 'CREATE TEMP TABLE t (a integer)', 'CREATE TABLE guest.t (a integer)',
        'PREPARE p AS SELECT 1', 'EXECUTE p', 'DECLARE c CURSOR WITH HOLD FOR SELECT 1', 'FETCH ALL FROM c', 'COPY guest.pad TO STDOUT', 'COPY guest.pad FROM PROGRAM ''id''',
        'COPY (SELECT 1) TO ''/tmp/x''', 'VACUUM', 'ANALYZE', 'REINDEX TABLE guest.pad', 'CLUSTER', 'CHECKPOINT', 'LOAD ''plpgsql''', 'ALTER SYSTEM SET work_mem = 1',
        'ALTER ROLE guest SET work_mem = 64', 'ALTER ROLE guest SUPERUSER', 'GRANT guest TO PUBLIC', 'COMMENT ON TABLE guest.pad IS ''x''', 'SECURITY LABEL ON TABLE guest.pad IS ''x''',
        'REASSIGN OWNED BY guest TO keeper', 'DROP OWNED BY guest', 'ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC', 'CREATE SUBSCRIPTION s CONNECTION ''x'' PUBLICATION p',
        'ALTER FOREIGN TABLE x OPTIONS (SET filename ''/etc/passwd'')', 'SAVEPOINT s', 'COMMIT', 'ROLLBACK', 'BEGIN', 'PREPARE TRANSACTION ''x''', 'SET TRANSACTION ISOLATION LEVEL SERIALIZABLE',
        'SELECT set_config(''role'', ''postgres'', false)', 'SELECT pg_advisory_lock(1)', 'SELECT lo_create(0)', 'SELECT pg_notify(''a'', ''b'')', 'REFRESH MATERIALIZED VIEW m',
        'IMPORT FOREIGN SCHEMA a FROM SERVER b INTO c', 'EXPLAIN ANALYZE CREATE TABLE guest.t2 AS SELECT 1', 'SELECT 1 AS a INTO guest.t3', 'CREATE TEMP VIEW v AS SELECT 1']
    LOOP
        got := concat(got, guest.tries(word), ',');
        BEGIN EXECUTE word; got := concat(got, word, '!'); EXCEPTION WHEN OTHERS THEN NULL; END;
    END LOOP;
    RAISE EXCEPTION 'got: % as %', trim(got, ','), current_user;
END $$
-- check:
SELECT judge.message('attack') LIKE '%got:  as guest%'
