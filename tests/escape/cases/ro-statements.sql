-- class: ro-statement
-- caller: superuser
-- mode: readonly
-- must: no statement that writes is run, and none that is something else than a query
-- setup:
CREATE PROCEDURE store.proc() LANGUAGE sql AS 'INSERT INTO store.goods (title) VALUES (''proc'')';
GRANT EXECUTE ON PROCEDURE store.proc() TO guest;
-- attacks:
INSERT INTO store.goods (title) VALUES ('x')
INSERT INTO store.goods (title) SELECT 'x'
INSERT INTO store.goods (title) VALUES ('x') RETURNING id
UPDATE store.goods SET stock = 0
DELETE FROM store.goods
MERGE INTO store.goods g USING (VALUES (1)) v (id) ON g.id = v.id WHEN MATCHED THEN DELETE
TRUNCATE guest.pad
WITH w AS (INSERT INTO guest.pad (note) VALUES ('x') RETURNING id) SELECT * FROM w
WITH w AS (UPDATE guest.pad SET note = 'x' RETURNING id) SELECT * FROM w
WITH w AS (DELETE FROM guest.pad) SELECT 1 AS one
SELECT * FROM (WITH w AS (DELETE FROM guest.pad RETURNING id) SELECT * FROM w) s
SELECT 1 AS a INTO guest.made
SELECT 1 AS a INTO TEMP made
CREATE TABLE guest.made AS SELECT 1 AS a
CALL store.proc()
DO $$ BEGIN NULL; END $$
EXPLAIN ANALYZE INSERT INTO guest.pad (note) VALUES ('x')
EXPLAIN ANALYZE UPDATE guest.pad SET note = 'x'
EXPLAIN (ANALYZE true, FORMAT json) DELETE FROM guest.pad
EXPLAIN ANALYZE WITH w AS (DELETE FROM guest.pad RETURNING id) SELECT * FROM w
EXPLAIN ANALYZE CREATE TABLE guest.made AS SELECT 1 AS a
EXPLAIN ANALYZE SELECT 1 AS a INTO guest.made
EXPLAIN ANALYZE EXECUTE nothing
EXPLAIN ANALYZE DECLARE c CURSOR FOR SELECT 1
EXPLAIN ANALYZE REFRESH MATERIALIZED VIEW guest.mv
SELECT * FROM guest.pad FOR UPDATE
COMMENT ON TABLE guest.pad IS 'x'
GRANT SELECT ON guest.pad TO PUBLIC
ALTER TABLE guest.pad ADD COLUMN x integer
DROP TABLE guest.pad
VACUUM
ANALYZE
CHECKPOINT
REINDEX SCHEMA guest
NOTIFY x
LISTEN x
LOCK guest.pad
PREPARE p AS SELECT 1
DISCARD ALL
SET work_mem = '1MB'
BEGIN
DELETE FROM pg_class
UPDATE pg_settings SET setting = '1MB' WHERE name = 'work_mem'
-- check:
SELECT judge.none_fine('attack')
