-- What the statements of generator_test.go find, beside the fixture: guest's own devices, made on some earlier day.
LOAD 'aidb';
SET ROLE guest;
CREATE FUNCTION guest.run(s text) RETURNS text LANGUAGE plpgsql AS $f$ BEGIN EXECUTE s; RETURN 'ran'; END $f$;
CREATE FUNCTION guest.run_stable(s text) RETURNS text LANGUAGE plpgsql STABLE AS $f$ BEGIN EXECUTE s; RETURN 'ran'; END $f$;
CREATE FUNCTION guest.run_caught(s text) RETURNS text LANGUAGE plpgsql STABLE AS $f$ BEGIN EXECUTE s; RETURN 'ran'; EXCEPTION WHEN OTHERS THEN RETURN SQLERRM; END $f$;
CREATE FUNCTION guest.run_twice(s text, z text) RETURNS text LANGUAGE plpgsql AS $f$
BEGIN BEGIN EXECUTE s; EXCEPTION WHEN OTHERS THEN NULL; END; BEGIN EXECUTE z; EXCEPTION WHEN OTHERS THEN NULL; END; RETURN guest.payload('twice')::text; END $f$;
CREATE FUNCTION guest.run_set(s text) RETURNS text LANGUAGE plpgsql SET search_path = guest, store SET work_mem = '1MB' SET DateStyle = 'German'
    SET max_parallel_workers_per_gather = 2 SET parallel_setup_cost = 0 SET parallel_tuple_cost = 0 SET min_parallel_table_scan_size = 0
    AS $f$ BEGIN EXECUTE s; RETURN current_setting('work_mem'); END $f$;
CREATE FUNCTION guest.run_definer(s text) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $f$ BEGIN EXECUTE s; RETURN current_user; END $f$;
CREATE FUNCTION guest.fetch(c refcursor) RETURNS text LANGUAGE plpgsql AS $f$
DECLARE x record; BEGIN FETCH c INTO x; RETURN x::text; EXCEPTION WHEN OTHERS THEN BEGIN CLOSE c; OPEN c FOR SELECT guest.payload('cursor'); EXCEPTION WHEN OTHERS THEN NULL; END; RETURN ''; END $f$;
CREATE PROCEDURE guest.proc(s text) LANGUAGE plpgsql AS $f$ BEGIN EXECUTE s; COMMIT; END $f$;
CREATE FUNCTION guest.pure(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT guest.run_caught($1)';
CREATE OPERATOR guest.~+ (LEFTARG = integer, RIGHTARG = integer, PROCEDURE = pg_catalog.pg_try_advisory_lock, RESTRICT = eqsel, JOIN = eqjoinsel);
CREATE OPERATOR guest.~- (LEFTARG = integer, RIGHTARG = integer, PROCEDURE = pg_catalog.pg_advisory_unlock, RESTRICT = matchingsel);
CREATE AGGREGATE guest.gather(text) (SFUNC = guest.run_twice, STYPE = text, INITCOND = 'RESET ROLE');
CREATE DOMAIN guest.word AS text CHECK (guest.run_caught(VALUE) <> '');
CREATE DOMAIN guest.state AS text CHECK (guest.payload('domain'));
CREATE VIEW guest.glass AS SELECT id, guest.run_caught(title) AS title, stock FROM store.goods;
CREATE TABLE guest.late (a integer, b text DEFAULT guest.run_caught('RESET ROLE'), c text GENERATED ALWAYS AS (guest.pure('x')) STORED);
CREATE CONSTRAINT TRIGGER late AFTER INSERT ON guest.late DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION guest.payload_trigger();
CREATE TABLE guest.early (a integer, b text);
CREATE TRIGGER early BEFORE INSERT OR UPDATE OR DELETE ON guest.early FOR EACH ROW EXECUTE FUNCTION guest.payload_trigger();
CREATE RULE also AS ON UPDATE TO guest.early DO ALSO SELECT guest.run_caught('SET ROLE NONE');
CREATE TYPE guest.mood AS ENUM ('x');
CREATE FUNCTION guest.mood_json(guest.mood) RETURNS json LANGUAGE plpgsql AS $f$ BEGIN PERFORM guest.run_caught('SELECT set_config(''role'', ''none'', false)'); PERFORM guest.payload('json'); RETURN '1'; END $f$;
CREATE CAST (guest.mood AS json) WITH FUNCTION guest.mood_json(guest.mood);
CREATE TABLE guest.walled (a integer, b text);
INSERT INTO guest.walled SELECT g, 'x' FROM generate_series(1, 20) g;
ALTER TABLE guest.walled ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY p ON guest.walled USING (guest.run_caught(b) <> '') WITH CHECK (guest.payload('policy'));
ANALYZE guest.walled;
RESET ROLE;
SET ROLE keeper;
CREATE FUNCTION store.count_goods() RETURNS bigint LANGUAGE sql STABLE SECURITY DEFINER SET search_path = store, pg_temp AS 'SELECT count(*) FROM goods';
SET check_function_bodies = off;
CREATE FUNCTION store.states() RETURNS text LANGUAGE plpgsql STABLE AS $f$ DECLARE s state; BEGIN s := 'new'; RETURN s; END $f$;
RESET ROLE;
GRANT aidb_users TO guest;
