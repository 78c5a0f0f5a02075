-- class: resource
-- caller: member
-- mode: role
-- must: endless recursion, in PL/pgSQL, in SQL, in a query and in triggers, ends with an error and nothing worse
-- setup:
SET ROLE guest;
CREATE FUNCTION guest.down(integer) RETURNS integer LANGUAGE plpgsql AS 'BEGIN RETURN guest.down($1 + 1); END';
CREATE FUNCTION guest.down_sql(integer) RETURNS integer LANGUAGE sql VOLATILE AS 'SELECT $1';
CREATE OR REPLACE FUNCTION guest.down_sql(integer) RETURNS integer LANGUAGE sql VOLATILE AS 'SELECT guest.down_sql($1 + 1) + 1 FROM guest.pad LIMIT 1';
CREATE FUNCTION guest.down_caught(n integer) RETURNS integer LANGUAGE plpgsql AS $f$
BEGIN RETURN guest.down_caught(n + 1); EXCEPTION WHEN OTHERS THEN RETURN n; END $f$;
CREATE TABLE guest.mirror (a integer);
CREATE FUNCTION guest.again() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN INSERT INTO guest.mirror VALUES (NEW.a + 1); RETURN NEW; END $f$;
CREATE TRIGGER again BEFORE INSERT ON guest.mirror FOR EACH ROW EXECUTE FUNCTION guest.again();
-- attacks:
SELECT guest.down(1)
SELECT guest.down_sql(1)
SELECT guest.down_caught(1) > 10 AS v
INSERT INTO guest.mirror VALUES (1)
SELECT repeat('[', 3000000)::json
SELECT repeat('{"a":', 3000000)::jsonb
SELECT repeat('(', 2000000)::tsquery
-- after:
SELECT 1
-- check:
SELECT judge.output('after') = '1' AND bool_and(n = 3 OR state <> '') FROM judge.seen WHERE phase = 'attack'
