-- class: ro-function
-- caller: member
-- mode: readonly
-- must: parallel workers, in which no filter is up, are not started even when a function of guest's asks for them
-- setup:
SET ROLE keeper;
CREATE TABLE store.many AS SELECT g AS id FROM generate_series(1, 50000) g;
GRANT SELECT ON store.many TO guest;
ANALYZE store.many;
SET ROLE guest;
CREATE FUNCTION guest.leaf(integer) RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE AS $f$ BEGIN RETURN pg_try_advisory_lock(99)::text; END $f$;
CREATE FUNCTION guest.where_am_i(integer) RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE AS 'SELECT pg_backend_pid()';
CREATE FUNCTION guest.in_parallel(q text) RETURNS SETOF text LANGUAGE plpgsql STABLE
    SET max_parallel_workers_per_gather = 2 SET parallel_setup_cost = 0 SET parallel_tuple_cost = 0
    SET min_parallel_table_scan_size = 0 SET parallel_leader_participation = off AS $f$
BEGIN RETURN QUERY EXECUTE q; END $f$;
-- attacks:
SELECT * FROM guest.in_parallel('SELECT DISTINCT guest.leaf(id) FROM store.many')
SELECT count(DISTINCT v) AS n FROM guest.in_parallel('SELECT guest.where_am_i(id)::text FROM store.many') v
-- check:
SELECT NOT judge.fine('attack', 1) AND judge.output('attack', 2) = '[{"n": 1}]'
