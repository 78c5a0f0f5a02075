-- class: lock
-- caller: member
-- mode: readonly
-- must: nor by an operator that an estimator calls in the place of the one written: its negator, its commutator, in the condition of a partial index
-- setup:
SET ROLE guest;
CREATE OPERATOR guest.=! (LEFTARG = integer, RIGHTARG = integer, FUNCTION = pg_try_advisory_lock, NEGATOR = OPERATOR(guest.<!), RESTRICT = eqsel, JOIN = eqjoinsel);
CREATE OPERATOR guest.<! (LEFTARG = integer, RIGHTARG = integer, FUNCTION = int4ne, NEGATOR = OPERATOR(guest.=!), RESTRICT = neqsel, JOIN = neqjoinsel);
CREATE OPERATOR guest.<% (LEFTARG = integer, RIGHTARG = integer, FUNCTION = int4lt, COMMUTATOR = OPERATOR(guest.%>), RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR guest.%> (LEFTARG = integer, RIGHTARG = integer, FUNCTION = pg_try_advisory_lock, COMMUTATOR = OPERATOR(guest.<%), RESTRICT = scalargtsel, JOIN = scalargtjoinsel);
CREATE TABLE guest.sheet (a integer, b integer);
INSERT INTO guest.sheet SELECT g % 7, g FROM generate_series(1, 20000) g;
CREATE INDEX ON guest.sheet (b) WHERE a OPERATOR(guest.<!) 3;
ANALYZE guest.sheet;
-- attacks:
EXPLAIN SELECT * FROM store.goods WHERE stock OPERATOR(guest.<!) 3
EXPLAIN SELECT * FROM store.goods WHERE stock OPERATOR(guest.<!) ANY (ARRAY[1, 2, 3])
EXPLAIN SELECT * FROM store.goods WHERE NOT stock OPERATOR(guest.<!) 3
EXPLAIN SELECT * FROM store.goods a JOIN store.goods b ON a.stock OPERATOR(guest.<!) b.stock
EXPLAIN SELECT * FROM store.goods WHERE 3 OPERATOR(guest.<%) stock
EXPLAIN WITH g AS MATERIALIZED (SELECT stock FROM store.goods) SELECT * FROM g WHERE stock OPERATOR(guest.<!) 3
EXPLAIN SELECT b FROM guest.sheet WHERE b = 5
-- check:
SELECT judge.none_fine('attack')
