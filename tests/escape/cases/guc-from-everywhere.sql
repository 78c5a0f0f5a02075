-- class: guc
-- caller: owner
-- mode: role
-- must: set_config cannot be reached from a default, a generated column, an index, a check, a policy, a trigger, a rule or a cast
-- setup:
SET ROLE guest;
CREATE FUNCTION guest.set_it(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $f$
BEGIN RETURN pg_catalog.set_config('work_mem', '7MB', false); END $f$;
CREATE FUNCTION guest.set_it_trigger() RETURNS trigger LANGUAGE plpgsql AS $f$
BEGIN PERFORM pg_catalog.set_config('work_mem', '7MB', false); RETURN NEW; END $f$;
CREATE TABLE guest.generated (a text, b text GENERATED ALWAYS AS (guest.set_it(a)) STORED);
CREATE TABLE guest.indexed (a text);
CREATE INDEX ON guest.indexed (guest.set_it(a));
CREATE TABLE guest.partly (a text);
CREATE INDEX ON guest.partly (a) WHERE guest.set_it(a) = '7MB';
CREATE TABLE guest.checked (a text CHECK (guest.set_it(a) <> ''));
CREATE TABLE guest.triggered (a text);
CREATE TRIGGER t BEFORE INSERT ON guest.triggered FOR EACH ROW EXECUTE FUNCTION guest.set_it_trigger();
CREATE TABLE guest.ruled (a text);
CREATE RULE r AS ON INSERT TO guest.ruled DO ALSO SELECT guest.set_it('x');
CREATE TABLE guest.policed (a text);
ALTER TABLE guest.policed ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY p ON guest.policed WITH CHECK (guest.set_it(a) <> '');
CREATE TYPE guest.pair AS (a text, b text);
CREATE FUNCTION guest.pair_text(guest.pair) RETURNS text LANGUAGE plpgsql AS $f$ BEGIN RETURN pg_catalog.set_config('work_mem', '7MB', false); END $f$;
CREATE CAST (guest.pair AS text) WITH FUNCTION guest.pair_text(guest.pair) AS IMPLICIT;
CREATE TABLE guest.parted (a text) PARTITION BY LIST (a);
CREATE TABLE guest.part PARTITION OF guest.parted (CHECK (guest.set_it(a) <> '')) FOR VALUES IN ('x');
CREATE VIEW guest.seen AS SELECT a, guest.set_it(a) AS b FROM guest.indexed;
-- attacks:
INSERT INTO guest.generated (a) VALUES ('x')
INSERT INTO guest.indexed VALUES ('x')
INSERT INTO guest.partly VALUES ('x')
INSERT INTO guest.checked VALUES ('x')
INSERT INTO guest.triggered VALUES ('x')
INSERT INTO guest.ruled VALUES ('x')
INSERT INTO guest.policed VALUES ('x')
INSERT INTO guest.parted VALUES ('x')
SELECT length(ROW('a', 'b')::guest.pair::text) AS n
SELECT guest.set_it('constant') AS v
EXPLAIN SELECT guest.set_it('constant') AS v
SELECT * FROM store.goods WHERE title = guest.set_it('folded')
MERGE INTO guest.indexed i USING (VALUES ('x')) v (a) ON i.a = v.a WHEN NOT MATCHED THEN INSERT VALUES (guest.set_it('x'))
INSERT INTO guest.indexed VALUES ('x') ON CONFLICT DO NOTHING
-- check:
SELECT judge.none_fine('attack')
