-- class: temp
-- caller: superuser
-- mode: role
-- must: no temporary object of any kind is made
-- attacks:
CREATE TEMP TABLE goods (a integer)
CREATE TEMP VIEW pg_class AS SELECT guest.payload('view')
CREATE TEMP SEQUENCE s
CREATE TABLE pg_temp.t AS SELECT 1 AS a
SELECT 1 AS a INTO TEMP t
SELECT 1 AS a INTO t
CREATE FUNCTION pg_temp.now() RETURNS timestamptz LANGUAGE sql AS 'SELECT guest.payload(''now''), NULL::timestamptz'
CREATE DOMAIN pg_temp.text AS pg_catalog.text CHECK (guest.payload('text'))
CREATE TYPE pg_temp.jsonb AS (a integer)
CREATE AGGREGATE pg_temp.sum(integer) (SFUNC = int4pl, STYPE = integer)
CREATE OPERATOR pg_temp.= (LEFTARG = text, RIGHTARG = text, PROCEDURE = texteq)
CREATE TEMP TABLE t ON COMMIT DROP AS SELECT 1
EXPLAIN ANALYZE CREATE TEMP TABLE t AS SELECT 1 AS a
DO $$ BEGIN CREATE TEMP TABLE t (a integer); END $$
DO $$ BEGIN EXECUTE 'CREATE TEMP TABLE t (a integer)'; EXCEPTION WHEN feature_not_supported THEN NULL; END $$
-- after:
SELECT 'x'::text, now() IS NOT NULL
-- check:
SELECT judge.none_fine('attack') AND judge.output('after') = 'x|t' AND NOT judge.breached()
-- check:
SELECT NOT EXISTS (SELECT FROM pg_namespace WHERE nspname LIKE 'pg_temp%')
