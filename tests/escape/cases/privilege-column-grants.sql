-- class: privilege
-- caller: member
-- mode: role
-- must: rights on single columns hold, in RETURNING and in conditions too
-- setup:
SET ROLE keeper;
CREATE TABLE store.people (id integer, name text, salary integer);
INSERT INTO store.people VALUES (1, 'ann', 777123);
GRANT SELECT (id, name), UPDATE (name) ON store.people TO guest;
-- attacks:
SELECT salary FROM store.people
SELECT p::text FROM store.people p
UPDATE store.people SET name = 'x' WHERE salary > 700000
UPDATE store.people SET name = 'y' RETURNING salary
UPDATE store.people SET salary = 0
SELECT row_to_json(p) FROM store.people p
SELECT id FROM store.people ORDER BY salary
DELETE FROM store.people
-- attack:
UPDATE store.people SET name = 'bob' WHERE id = 1 RETURNING name
-- check:
SELECT judge.told() NOT LIKE '%777123%' AND judge.fine('attack', 9) AND (SELECT count(*) = 8 FROM judge.seen WHERE phase = 'attack' AND state <> '')
