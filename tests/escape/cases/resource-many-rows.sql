-- class: resource
-- caller: member
-- mode: readonly
-- limit: 300
-- time: 10s
-- must: a thousand million rows: with a limit, a stream that is cut, a deadline or the end of the temporary files, but never all of them
-- attacks:
SELECT generate_series(1, 1000000000) AS g
SELECT g FROM generate_series(1, 1000000000) g LIMIT 3
SELECT a.id AS a, b.id AS b FROM store.goods a, store.goods b, store.goods c, store.goods d, store.goods e
WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT i FROM n
WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n
SELECT count(*) FROM generate_series(1, 1000000000) a, generate_series(1, 1000000000) b
-- check:
SELECT judge.output('attack', 1) LIKE '{"truncated": true%' AND judge.output('attack', 3) LIKE '{"truncated": true%' AND judge.output('attack', 4) LIKE '{"truncated": true%'
-- check:
SELECT judge.message('attack', 5) LIKE '%exceeded its time limit%' AND judge.message('attack', 6) ~ 'exceeded its time limit|temporary file size exceeds "?temp_file_limit' AND judge.ms('attack', 6) < 60000
