-- class: fdw
-- caller: owner
-- mode: role
-- needs: postgres_fdw
-- must: a foreign table that leads back into the database as somebody else is neither read nor written, also through a view, a partition and a trigger
-- setup:
DO $$ BEGIN EXECUTE format('CREATE SERVER back FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host %L, port %L, dbname %L)',
    split_part(current_setting('unix_socket_directories'), ',', 1), current_setting('port'), current_database()); END $$;
CREATE USER MAPPING FOR guest SERVER back OPTIONS (user 'postgres', password_required 'false');
GRANT USAGE ON FOREIGN SERVER back TO guest;
CREATE FOREIGN TABLE store.far (name text, role text) SERVER back OPTIONS (schema_name 'aidb_internal', table_name 'purpose_registry');
CREATE TABLE store.parted (name text, role text) PARTITION BY LIST (name);
CREATE FOREIGN TABLE store.part PARTITION OF store.parted DEFAULT SERVER back OPTIONS (schema_name 'aidb_internal', table_name 'purpose_registry');
GRANT ALL ON store.far, store.parted TO guest;
SET ROLE guest;
CREATE VIEW guest.far AS SELECT * FROM store.far;
CREATE TABLE guest.near (a integer);
CREATE FUNCTION guest.reaches() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN UPDATE store.far SET role = 'postgres'; RETURN NEW; END $f$;
CREATE TRIGGER t BEFORE INSERT ON guest.near FOR EACH ROW EXECUTE FUNCTION guest.reaches();
-- attacks:
SELECT * FROM store.far
UPDATE store.far SET role = 'postgres'
INSERT INTO store.far VALUES ('mine', 'postgres')
DELETE FROM store.far
TRUNCATE store.far
SELECT * FROM guest.far
INSERT INTO guest.near VALUES (1)
INSERT INTO store.parted VALUES ('mine', 'postgres')
TRUNCATE store.parted
WITH w AS (INSERT INTO store.parted VALUES ('mine', 'postgres') RETURNING 1) SELECT count(*) FROM w
DO $$ BEGIN UPDATE store.far SET role = 'postgres'; EXCEPTION WHEN OTHERS THEN RAISE; END $$
-- check:
SELECT judge.none_fine('attack') AND (SELECT bool_and(name = 'guest' AND role = 'guest') FROM aidb.purpose_registry WHERE name IN ('guest', 'mine'))
