-- class: role-escape
-- caller: owner
-- mode: role
-- must: a SECURITY DEFINER function that takes a value, a table or a row from the role runs none of the role's code
-- setup:
SET ROLE guest;
CREATE DOMAIN guest.loud AS text CHECK (guest.payload('domain'));
CREATE TYPE guest.loud_row AS (a guest.loud);
CREATE VIEW guest.loud_view AS SELECT guest.payload('view')::text AS title;
CREATE TABLE guest.loud_table (title text);
ALTER TABLE guest.loud_table ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY p ON guest.loud_table USING (guest.payload('policy')) WITH CHECK (guest.payload('check'));
CREATE TABLE guest.loud_trigger (title text);
CREATE TRIGGER t BEFORE INSERT ON guest.loud_trigger FOR EACH ROW EXECUTE FUNCTION guest.payload_trigger();
CREATE FUNCTION guest.compares(text, text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $f$ SELECT guest.payload('operator') $f$;
CREATE OPERATOR guest.=~= (LEFTARG = text, RIGHTARG = text, FUNCTION = guest.compares);
-- setup:
SET ROLE keeper;
CREATE FUNCTION store.counts(relation regclass) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
DECLARE n bigint; BEGIN EXECUTE format('SELECT count(title) FROM %s', relation) INTO n; RETURN n; END $f$;
CREATE FUNCTION store.adds(relation regclass) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
BEGIN EXECUTE format('INSERT INTO %s VALUES (''x'')', relation); END $f$;
CREATE FUNCTION store.casts(type regtype) RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
DECLARE v text; BEGIN EXECUTE format('SELECT (%L::%s)::text', '(x)', type) INTO v; RETURN v; END $f$;
CREATE FUNCTION store.calls(f regprocedure) RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
DECLARE v text; BEGIN EXECUTE format('SELECT %s(''x'')', f::regproc) INTO v; RETURN v; END $f$;
CREATE FUNCTION store.json_of(a anyelement) RETURNS text LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$ SELECT to_json(a)::text $f$;
CREATE FUNCTION store.condition(c text) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
DECLARE n bigint; BEGIN EXECUTE 'SELECT count(*) FROM store.ledger WHERE ' || c INTO n; RETURN n; END $f$;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA store TO guest;
-- setup:
GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA guest TO keeper;
-- attacks:
SELECT store.counts('guest.loud_view') AS v
SELECT store.counts('guest.loud_table') AS v
SELECT store.adds('guest.loud_table') AS v
SELECT store.adds('guest.loud_trigger') AS v
SELECT store.casts('guest.loud') AS v
SELECT store.casts('guest.loud_row') AS v
SELECT store.calls('guest.payload(text)') AS v
SELECT store.condition('guest.payload(line)') AS v
SELECT store.condition('line OPERATOR(guest.=~=) line') AS v
SELECT store.condition('true; RESET ROLE') AS v
SELECT store.condition('set_config(''role'', ''postgres'', false) IS NULL') AS v
SELECT store.json_of('x'::guest.loud) AS v
-- check:
SELECT NOT judge.breached()
