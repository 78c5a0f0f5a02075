-- class: resource
-- caller: member
-- mode: readonly
-- time: 60s
-- limit: 600
-- must: large values and wide rows are cut and marked, and what is too large to cut is refused
-- attacks:
SELECT repeat('x', 50000000) AS v
SELECT repeat('ü', 20000000) AS v
SELECT repeat('x', 1000000000) AS v
SELECT repeat('x', 600000000) || repeat('y', 600000000) AS v
SELECT decode(repeat('ab', 20000000), 'hex') AS v
SELECT array_agg(g) AS v FROM generate_series(1, 3000000) g
SELECT jsonb_agg(g) AS v FROM generate_series(1, 1000000) g
SELECT ROW(repeat('x', 3000000), repeat('y', 3000000)) AS v
SELECT string_agg(md5(g::text), '') AS a, string_agg(md5(g::text), ',') AS b, string_agg(md5(g::text), ';') AS c FROM generate_series(1, 6000) g
SELECT repeat('x', 250000) AS v FROM generate_series(1, 50)
-- check:
SELECT bool_and(length(coalesce(output, '') || message) < 3000000) FROM judge.seen WHERE phase = 'attack'
-- check:
SELECT judge.output('attack', 1) LIKE '{"truncated": true%[truncated]"}]}' AND judge.output('attack', 5) LIKE '{"truncated": true%{"v": null}]}'
