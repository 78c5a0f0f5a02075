-- class: resource
-- caller: owner
-- mode: readonly
-- time: 3s
-- must: a recursion without an end, in WITH, in a lateral join or over itself, ends when the call's time is over
-- attacks:
WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r
WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n FROM r) SELECT count(*) FROM r
WITH RECURSIVE r AS (SELECT '{1}'::integer[] AS n UNION ALL SELECT n || n FROM r) SELECT count(*) FROM r
WITH RECURSIVE r AS (SELECT 1 AS n UNION SELECT n + 1 FROM r) SELECT n FROM r WHERE n < 0
SELECT count(*) FROM generate_series(1, 100000) a, LATERAL generate_series(1, a) b, LATERAL generate_series(1, b) c
SELECT count(*) FROM store.goods a, store.goods b, store.goods c, store.goods d, store.goods e, store.goods f
-- check:
SELECT bool_and(state <> '' AND ms < 15000) FROM judge.seen WHERE phase = 'attack'
