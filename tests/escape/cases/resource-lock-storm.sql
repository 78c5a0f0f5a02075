-- class: lock
-- caller: owner
-- mode: readonly
-- must: a storm of locks, over a thousand tables or by looking at who waits for whom, ends with the call and leaves none
-- setup:
SET ROLE keeper;
CREATE TABLE store.many (a integer) PARTITION BY LIST (a);
DO $d$ BEGIN FOR i IN 1..300 LOOP EXECUTE format('CREATE TABLE store.many_%s PARTITION OF store.many FOR VALUES IN (%s)', i, i); END LOOP; END $d$;
GRANT SELECT ON store.many TO guest;
-- attacks:
SELECT count(*) FROM store.many
SELECT count(*) FROM store.many a, store.many b, store.many c
EXPLAIN SELECT * FROM store.many a JOIN store.many b USING (a)
SELECT count(pg_blocking_pids(g)) FROM generate_series(1, 2000) g
SELECT count(*) FROM pg_locks a, pg_locks b
-- after:
SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'relation' AND relation::regclass::text LIKE 'store.%'
-- check:
SELECT judge.output('after') = '0'
