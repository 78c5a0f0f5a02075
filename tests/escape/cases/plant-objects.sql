-- class: plant
-- caller: superuser
-- mode: role
-- must: nothing that stays and could run as somebody else is made, although guest has the right to
-- setup:
GRANT CREATE ON SCHEMA public TO guest;
GRANT CREATE ON SCHEMA store TO guest;
DO $$ BEGIN EXECUTE format('GRANT ALL ON DATABASE %I TO guest', current_database()); END $$;
GRANT TRIGGER, REFERENCES ON store.goods TO guest;
-- attacks:
CREATE FUNCTION public.lower(integer) RETURNS text LANGUAGE sql AS 'SELECT guest.payload(''lower'')::text'
CREATE OR REPLACE FUNCTION guest.payload(how text) RETURNS boolean LANGUAGE sql AS 'SELECT true'
CREATE PROCEDURE public.p() LANGUAGE sql AS 'SELECT 1'
CREATE OPERATOR public.= (LEFTARG = integer, RIGHTARG = text, PROCEDURE = guest.payload)
CREATE AGGREGATE public.total(integer) (SFUNC = int4pl, STYPE = integer)
CREATE CAST (guest.pad AS text) WITH INOUT
CREATE TYPE public.text AS ENUM ('x')
CREATE DOMAIN public.varchar AS pg_catalog.text
CREATE TABLE public.goods (a integer)
CREATE TABLE store.extra (a integer DEFAULT guest.payload('default')::integer)
CREATE VIEW public.pg_class AS SELECT 1 AS a
CREATE MATERIALIZED VIEW public.mv AS SELECT guest.payload('mv')
CREATE SEQUENCE public.s
CREATE SCHEMA keeper
CREATE SCHEMA AUTHORIZATION guest
CREATE TRIGGER t BEFORE INSERT ON store.goods FOR EACH ROW EXECUTE FUNCTION guest.payload_trigger()
CREATE TRIGGER t BEFORE INSERT ON guest.pad FOR EACH ROW EXECUTE FUNCTION guest.payload_trigger()
CREATE RULE r AS ON SELECT TO guest.pad DO INSTEAD SELECT 1
CREATE POLICY p ON guest.pad USING (guest.payload('policy'))
CREATE INDEX i ON guest.pad (guest.payload(note))
CREATE STATISTICS guest.st ON id, note FROM guest.pad
CREATE EXTENSION tablefunc
CREATE EVENT TRIGGER e ON ddl_command_end EXECUTE FUNCTION guest.payload_trigger()
CREATE PUBLICATION p FOR TABLE guest.pad
CREATE COLLATION public.c FROM "C"
CREATE TEXT SEARCH CONFIGURATION public.english (COPY = simple)
CREATE CONVERSION public.c FOR 'UTF8' TO 'LATIN1' FROM utf8_to_iso8859_1
CREATE TRANSFORM FOR integer LANGUAGE plpgsql (FROM SQL WITH FUNCTION guest.payload(text))
ALTER TABLE guest.pad ADD CHECK (guest.payload(note))
ALTER TABLE guest.pad ALTER COLUMN note SET DEFAULT guest.payload('default')::text
ALTER TABLE guest.pad ADD FOREIGN KEY (id) REFERENCES store.goods
ALTER TABLE guest.pad ENABLE ROW LEVEL SECURITY
ALTER FUNCTION guest.payload(text) SECURITY DEFINER
ALTER FUNCTION guest.payload(text) SET search_path = guest
ALTER TYPE store.state ADD VALUE 'planted'
ALTER VIEW guest.pad RENAME TO pod
ALTER SCHEMA guest RENAME TO keeper
DROP TABLE guest.pad
DROP FUNCTION guest.payload(text)
REFRESH MATERIALIZED VIEW public.mv
DO $$ BEGIN CREATE TABLE public.planted (a integer); END $$
DO $$ BEGIN EXECUTE 'CREATE FUNCTION public.planted() RETURNS integer LANGUAGE sql AS ''SELECT 1'''; EXCEPTION WHEN OTHERS THEN NULL; END $$
-- check:
SELECT count(*) = 41 FROM judge.seen WHERE phase = 'attack' AND state <> ''
-- check:
SELECT to_regclass('public.planted') IS NULL AND to_regproc('public.planted') IS NULL AND to_regclass('public.goods') IS NULL
