-- class: ro-toggle
-- caller: owner
-- mode: readonly
-- must: read-only cannot be switched off, for the statement or for what it calls
-- setup:
SET ROLE guest;
-- 16 and later make no such function
DO $d$ BEGIN
    CREATE FUNCTION guest.off_clause() RETURNS integer LANGUAGE plpgsql STABLE SET transaction_read_only = off AS 'BEGIN RETURN guest.sly(''clause''); END';
EXCEPTION WHEN OTHERS THEN NULL; END $d$;
CREATE FUNCTION guest.off_default() RETURNS integer LANGUAGE plpgsql STABLE SET default_transaction_read_only = off AS 'BEGIN RETURN guest.sly(''default''); END';
CREATE FUNCTION guest.off_inside(word text) RETURNS integer LANGUAGE plpgsql STABLE AS $f$
BEGIN
    BEGIN EXECUTE word; EXCEPTION WHEN OTHERS THEN NULL; END;
    BEGIN PERFORM guest.sly('inside'); EXCEPTION WHEN OTHERS THEN NULL; END;
    RETURN nextval('guest.pad_id_seq');
END $f$;
-- attacks:
SELECT set_config('transaction_read_only', NULL, true)
SELECT set_config('transaction_read_only', 'off', false), guest.sly('x')
WITH t AS MATERIALIZED (SELECT set_config('transaction_read_only', NULL, true) AS v) SELECT guest.sly(v) FROM t
SET transaction_read_only = off
SET LOCAL transaction_read_only TO DEFAULT
RESET transaction_read_only
SET TRANSACTION READ WRITE
SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE
UPDATE pg_settings SET setting = 'off' WHERE name = 'transaction_read_only'
SELECT guest.off_clause()
SELECT guest.off_default()
SELECT guest.off_inside('RESET transaction_read_only')
SELECT guest.off_inside('SET LOCAL transaction_read_only TO DEFAULT')
SELECT guest.off_inside('SET TRANSACTION READ WRITE')
SELECT guest.off_inside('SELECT set_config(''transaction_read_only'', NULL, true)')
SELECT guest.off_inside('SAVEPOINT x')
-- check:
SELECT judge.none_fine('attack')
