-- class: lock
-- caller: owner
-- mode: role
-- txn: block
-- must: not even when the condition comes out of an inlined function, a view, or stands over a subquery or statistics on expressions
-- setup:
SET ROLE guest;
CREATE OPERATOR guest.~+ (LEFTARG = integer, RIGHTARG = integer, PROCEDURE = pg_catalog.pg_try_advisory_lock, RESTRICT = eqsel, JOIN = eqjoinsel);
CREATE FUNCTION guest.keeps(integer) RETURNS boolean LANGUAGE sql AS 'SELECT $1 OPERATOR(guest.~+) 77';
CREATE FUNCTION guest.pairs(integer, integer) RETURNS boolean LANGUAGE sql AS 'SELECT $1 OPERATOR(guest.~+) $2';
CREATE FUNCTION guest.rows() RETURNS SETOF integer LANGUAGE sql STABLE AS 'SELECT stock FROM store.goods WHERE stock OPERATOR(guest.~+) 78';
CREATE VIEW guest.kept AS SELECT * FROM store.goods WHERE stock OPERATOR(guest.~+) 77;
CREATE TABLE guest.numbers AS SELECT g % 5 AS a FROM generate_series(1, 500) g;
CREATE STATISTICS guest.more ON (a + 1), (a + 2) FROM guest.numbers;
CREATE TABLE guest.parts (a integer) PARTITION BY LIST (a);
CREATE TABLE guest.part PARTITION OF guest.parts FOR VALUES IN (0, 1, 2, 3, 4);
INSERT INTO guest.parts SELECT a FROM guest.numbers;
ANALYZE guest.numbers, guest.parts;
-- attacks:
SELECT count(*) AS n FROM store.goods WHERE guest.keeps(stock)
SELECT count(*) AS n FROM (SELECT stock FROM store.goods OFFSET 0) s WHERE guest.keeps(stock)
WITH s AS MATERIALIZED (SELECT stock FROM store.goods) SELECT count(*) AS n FROM s WHERE guest.keeps(stock)
SELECT count(*) AS n FROM (SELECT stock FROM store.goods GROUP BY stock) s WHERE guest.keeps(stock)
SELECT count(*) AS n FROM guest.numbers WHERE guest.keeps(a + 1)
SELECT count(*) AS n FROM guest.parts WHERE guest.keeps(a)
SELECT count(*) AS n FROM guest.kept
SELECT * FROM guest.rows()
SELECT count(*) AS n FROM store.goods g JOIN guest.numbers m ON guest.pairs(g.stock, m.a)
SELECT (SELECT count(*) FROM store.goods WHERE guest.keeps(stock)) AS n
UPDATE store.goods SET title = title WHERE guest.keeps(stock)
DELETE FROM store.goods WHERE guest.keeps(stock)
MERGE INTO store.goods g USING guest.numbers m ON guest.pairs(g.stock, m.a) WHEN MATCHED THEN DO NOTHING
DO $$ BEGIN PERFORM FROM store.goods WHERE guest.keeps(stock); END $$
DO $$ BEGIN BEGIN PERFORM FROM store.goods WHERE guest.keeps(stock); EXCEPTION WHEN OTHERS THEN NULL; END; END $$
-- check:
SELECT count(*) = 14 FROM judge.seen WHERE phase = 'attack' AND state <> ''
