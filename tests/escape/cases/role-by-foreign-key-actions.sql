-- class: role-escape
-- caller: superuser
-- mode: role
-- must: what a foreign key does to the rows that refer (set default, set null, cascade) runs no code of the role's as their owner
-- setup:
SET ROLE guest;
CREATE FUNCTION guest.fallback() RETURNS integer LANGUAGE plpgsql AS $f$ BEGIN PERFORM guest.payload('default'); RETURN 1; END $f$;
CREATE FUNCTION guest.derived(integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $f$ BEGIN PERFORM guest.payload('generated'); RETURN $1; END $f$;
CREATE FUNCTION guest.positive(integer) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $f$ BEGIN RETURN guest.payload('check'); END $f$;
CREATE DOMAIN guest.amount AS integer CHECK (guest.positive(VALUE));
CREATE TABLE guest.bosses (id integer PRIMARY KEY);
INSERT INTO guest.bosses SELECT generate_series(1, 9);
GRANT REFERENCES ON guest.bosses TO keeper;
-- setup:
SET ROLE keeper;
CREATE TABLE store.defaulted (id integer DEFAULT guest.fallback() REFERENCES guest.bosses ON DELETE SET DEFAULT);
CREATE TABLE store.nulled (id integer REFERENCES guest.bosses ON DELETE SET NULL, twice integer GENERATED ALWAYS AS (guest.derived(id)) STORED);
CREATE TABLE store.updated (id integer REFERENCES guest.bosses ON UPDATE CASCADE CHECK (guest.positive(id)));
CREATE TABLE store.typed (id guest.amount REFERENCES guest.bosses ON UPDATE CASCADE);
CREATE TABLE store.indexed (id integer REFERENCES guest.bosses ON UPDATE CASCADE);
CREATE INDEX ON store.indexed (guest.derived(id));
INSERT INTO store.defaulted VALUES (2);
INSERT INTO store.nulled VALUES (3);
INSERT INTO store.updated VALUES (4);
INSERT INTO store.typed VALUES (5);
INSERT INTO store.indexed VALUES (6);
-- setup:
DELETE FROM safe.breach;
-- attacks:
DELETE FROM guest.bosses WHERE id = 2
DELETE FROM guest.bosses WHERE id = 3
UPDATE guest.bosses SET id = 14 WHERE id = 4
UPDATE guest.bosses SET id = 15 WHERE id = 5
UPDATE guest.bosses SET id = 16 WHERE id = 6
-- check:
SELECT NOT judge.breached()
-- check:
SELECT judge.none_fine('attack')
