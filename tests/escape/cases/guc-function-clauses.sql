-- class: guc
-- caller: superuser
-- mode: role
-- txn: block
-- must: what a function's SET clause changes is over with the function, after an error and a caught one too
-- setup:
SET ROLE guest;
CREATE FUNCTION guest.with_path() RETURNS text LANGUAGE plpgsql SET search_path = guest SET work_mem = '9MB' SET timezone = 'Asia/Tokyo' AS $f$
BEGIN RETURN current_setting('search_path'); END $f$;
CREATE FUNCTION guest.with_error() RETURNS text LANGUAGE plpgsql SET search_path = guest SET datestyle = 'German' AS $f$
BEGIN PERFORM 1/0; RETURN ''; END $f$;
CREATE FUNCTION guest.with_marker() RETURNS text LANGUAGE plpgsql SET work_mem = '9MB' AS $f$
BEGIN BEGIN PERFORM guest.with_error(); EXCEPTION WHEN division_by_zero THEN NULL; END; RETURN current_setting('search_path'); END $f$;
-- before:
SET LOCAL timezone = 'UTC'
-- attacks:
SELECT guest.with_path() AS v
SELECT guest.with_error() AS v
SELECT guest.with_marker() AS v
DO $$ BEGIN PERFORM guest.with_path(); PERFORM guest.with_error(); EXCEPTION WHEN OTHERS THEN PERFORM guest.with_marker(); END $$
-- after:
SELECT current_setting('search_path'), current_setting('timezone'), current_setting('work_mem'), current_setting('datestyle')
-- check:
SELECT judge.output('after') = '"$user", public|UTC|4MB|ISO, MDY' AND judge.output('attack', 1) = '[{"v": "guest"}]'
