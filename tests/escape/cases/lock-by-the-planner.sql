-- class: lock
-- caller: superuser
-- mode: readonly
-- must: nor by an operator that only the planner calls, to estimate how many rows a condition keeps
-- setup:
SET ROLE guest;
CREATE OPERATOR guest.~+ (LEFTARG = integer, RIGHTARG = integer, PROCEDURE = pg_catalog.pg_try_advisory_lock, RESTRICT = eqsel, JOIN = eqjoinsel);
CREATE OPERATOR guest.~- (LEFTARG = integer, RIGHTARG = integer, PROCEDURE = pg_catalog.pg_advisory_unlock, RESTRICT = eqsel);
CREATE OPERATOR guest.~< (LEFTARG = integer, RIGHTARG = integer, PROCEDURE = pg_catalog.pg_try_advisory_lock_shared, RESTRICT = scalarltsel);
CREATE OPERATOR guest.~? (LEFTARG = integer, RIGHTARG = integer, PROCEDURE = pg_catalog.pg_try_advisory_lock, RESTRICT = matchingsel);
-- before:
SELECT pg_advisory_lock(g, 9) FROM generate_series(0, 4) g
-- attacks:
SELECT count(*) AS n FROM store.goods WHERE stock OPERATOR(guest.~+) 77
EXPLAIN SELECT * FROM store.goods WHERE stock OPERATOR(guest.~+) 77
SELECT count(*) AS n FROM store.goods WHERE stock OPERATOR(guest.~-) 9
EXPLAIN SELECT * FROM store.goods WHERE stock OPERATOR(guest.~-) 9
EXPLAIN SELECT * FROM store.goods WHERE id OPERATOR(guest.~<) 12
EXPLAIN SELECT * FROM store.goods WHERE id OPERATOR(guest.~?) 12
EXPLAIN SELECT * FROM store.goods WHERE NOT stock OPERATOR(guest.~+) 77
EXPLAIN SELECT * FROM store.goods WHERE stock OPERATOR(guest.~+) ANY (ARRAY[77, 78])
EXPLAIN SELECT * FROM store.goods WHERE stock OPERATOR(guest.~+) ALL (ARRAY[77, 78])
EXPLAIN SELECT * FROM store.goods a JOIN store.goods b ON a.stock OPERATOR(guest.~+) b.stock
EXPLAIN SELECT * FROM store.goods a WHERE EXISTS (SELECT FROM store.goods b WHERE a.stock OPERATOR(guest.~+) b.stock)
EXPLAIN SELECT * FROM (SELECT stock FROM store.goods OFFSET 0) s WHERE stock OPERATOR(guest.~+) 77
EXPLAIN SELECT count(*) FROM store.goods GROUP BY stock HAVING stock OPERATOR(guest.~+) 77
EXPLAIN SELECT * FROM store.goods WHERE CASE WHEN stock OPERATOR(guest.~+) 77 THEN true END
-- check:
SELECT judge.none_fine('attack')
