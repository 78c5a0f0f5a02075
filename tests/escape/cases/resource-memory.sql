-- class: resource
-- caller: member
-- mode: role
-- time: 8s
-- limit: 100
-- must: statements that ask for much memory end with an error or their time, and the session goes on
-- attacks:
SELECT length(string_agg(repeat('x', 10000000), '')) AS n FROM generate_series(1, 200)
SELECT cardinality(array_fill(1, ARRAY[20000, 20000])) AS n
SELECT length(lpad('x', 1100000000)) AS n
SELECT length(repeat(repeat('x', 1000000), 2000)) AS n
SELECT length(replace(repeat('x', 1000000), 'x', repeat('y', 10000))) AS n
SELECT length(format('%1000000000s%1000000000s', 'a', 'b')) AS n
SELECT length(regexp_replace(repeat('x', 1000000), 'x', repeat('y', 10000), 'g')) AS n
SELECT length(jsonb_agg(repeat('x', 1000000))::text) AS n FROM generate_series(1, 2000)
SELECT array_length(regexp_split_to_array(repeat('x,', 3000000), ','), 1) AS n
SELECT length(string_agg(g::text, ',' ORDER BY g DESC)) AS n FROM generate_series(1, 30000000) g
SELECT count(*) FROM (SELECT g FROM generate_series(1, 3000000) g GROUP BY CUBE (g, g % 2, g % 3, g % 5, g % 7)) s
-- after:
SELECT 1
-- check:
SELECT judge.output('after') = '1' AND bool_and(ms < 30000) FROM judge.seen
