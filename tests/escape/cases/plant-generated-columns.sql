-- class: plant
-- caller: owner
-- mode: role
-- must: what a table computes by itself (a generated column, an identity, a default, an index, a partition's key) reaches nothing that the statement may not
-- setup:
SET ROLE guest;
CREATE FUNCTION guest.g_lock(integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $f$ BEGIN PERFORM pg_advisory_lock($1); RETURN $1; END $f$;
CREATE FUNCTION guest.g_set(integer) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $f$ BEGIN RETURN set_config('app.marker', 'generated', false); END $f$;
CREATE FUNCTION guest.g_role(integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $f$ BEGIN RESET ROLE; RETURN $1; END $f$;
CREATE FUNCTION guest.g_note(integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $f$ BEGIN PERFORM pg_notify('x', 'y'); RETURN $1; END $f$;
CREATE FUNCTION guest.g_lo(integer) RETURNS oid LANGUAGE plpgsql IMMUTABLE AS $f$ BEGIN RETURN lo_create(0); END $f$;
CREATE TABLE guest.g1 (a integer, b integer GENERATED ALWAYS AS (guest.g_lock(a)) STORED);
CREATE TABLE guest.g2 (a integer, b text DEFAULT guest.g_set(1));
CREATE TABLE guest.g3 (a integer CHECK (guest.g_role(a) > 0));
CREATE TABLE guest.g4 (a integer);
CREATE INDEX ON guest.g4 (guest.g_note(a));
CREATE TABLE guest.g5 (a integer) PARTITION BY LIST (guest.g_note(a));
CREATE TABLE guest.g5_rest PARTITION OF guest.g5 DEFAULT;
CREATE TABLE guest.g6 (a oid DEFAULT guest.g_lo(1), b integer);
CREATE TABLE guest.g7 (a integer);
CREATE INDEX ON guest.g7 (a) WHERE guest.g_note(a) > 0;
ALTER TABLE guest.g7 ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY p ON guest.g7 WITH CHECK (guest.g_role(a) > 0);
-- before:
SET app.marker = 'mine'
-- attacks:
INSERT INTO guest.g1 VALUES (1)
INSERT INTO guest.g2 VALUES (1)
INSERT INTO guest.g3 VALUES (1)
INSERT INTO guest.g4 VALUES (1)
INSERT INTO guest.g5 VALUES (1)
INSERT INTO guest.g6 (b) VALUES (1)
INSERT INTO guest.g7 VALUES (1)
-- after:
SELECT current_setting('app.marker')
-- check:
SELECT judge.none_fine('attack') AND judge.output('after') = 'mine'
