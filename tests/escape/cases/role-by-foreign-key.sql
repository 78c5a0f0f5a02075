-- class: role-escape
-- caller: member
-- mode: role
-- must: a foreign key is checked as the owner of the table, and a cast or trigger of the role's own that it leads to does not run then
-- setup:
GRANT REFERENCES ON store.orders TO guest;
SET ROLE guest;
CREATE TYPE guest.number AS (n integer);
CREATE FUNCTION guest.to_integer(guest.number) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $f$
BEGIN PERFORM guest.payload('cast'); RETURN ($1).n; END $f$;
CREATE CAST (guest.number AS integer) WITH FUNCTION guest.to_integer(guest.number) AS IMPLICIT;
CREATE TABLE guest.mine (order_id guest.number REFERENCES store.orders (id));
CREATE TYPE guest.figure AS (n integer);
CREATE FUNCTION guest.to_integer(guest.figure) RETURNS integer LANGUAGE sql
AS $f$ SELECT CASE WHEN guest.payload('cast in sql') THEN ($1).n END $f$;
CREATE CAST (guest.figure AS integer) WITH FUNCTION guest.to_integer(guest.figure) AS IMPLICIT;
CREATE TABLE guest.own (order_id guest.figure REFERENCES store.orders (id));
-- setup:
SET ROLE guest;
CREATE TABLE guest.parents (id integer PRIMARY KEY);
INSERT INTO guest.parents VALUES (1);
GRANT REFERENCES ON guest.parents TO keeper;
-- setup:
SET ROLE keeper;
CREATE TABLE store.children (id integer REFERENCES guest.parents ON DELETE CASCADE);
INSERT INTO store.children VALUES (1);
GRANT TRIGGER ON store.children TO guest;
-- setup:
SET ROLE guest;
CREATE TRIGGER t BEFORE DELETE ON store.children FOR EACH ROW EXECUTE FUNCTION guest.payload_trigger();
-- attacks:
INSERT INTO guest.mine VALUES (ROW(1))
INSERT INTO guest.own VALUES (ROW(1))
UPDATE guest.own SET order_id = ROW(2)
DELETE FROM guest.parents
-- check:
SELECT NOT judge.breached()
-- check:
SELECT judge.told() LIKE '%function to_integer of role "guest" does not run with the rights of "keeper"%'
   AND judge.told() LIKE '%function payload_trigger of role "guest" does not run with the rights of "keeper"%'
