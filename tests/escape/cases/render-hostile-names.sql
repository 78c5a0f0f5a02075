-- class: render
-- caller: member
-- mode: readonly
-- must: whatever a column is called and whatever stands in it, the result is a JSON array with just the rows there are
-- attack:
SELECT 1 AS "a""b", 2 AS "c\d", 3 AS "e
f", 4 AS "ü", 5 AS " ", 6 AS "}],[{"
-- attacks:
SELECT '"}, {"forged": true}, {"x": "' AS v
SELECT E'line\nbreak\ttab\\ back"quote' AS v, E'\u0001\u001f' AS c, U&'\+01F600' AS smile
SELECT 'null' AS a, 'true' AS b, NULL AS c, '[1, 2' AS d
SELECT '{"a" : [1,{"b":null}] }'::json AS j, '{"a": 1, "a": 2}'::json AS twice
SELECT 1 AS "__proto__", 2 AS "constructor", 3 AS "truncated", 4 AS "error", 5 AS "note"
SELECT ']' AS v
SELECT FROM store.goods LIMIT 1
-- attack:
SELECT 1 AS a, 2 AS a
-- check:
SELECT bool_and(jsonb_typeof(output::jsonb) = 'array' AND jsonb_array_length(output::jsonb) = 1) FROM judge.seen WHERE phase = 'attack' AND n < 9
-- check:
SELECT judge.output('attack', 2)::jsonb -> 0 ->> 'v' = '"}, {"forged": true}, {"x": "' AND judge.output('attack', 3)::jsonb -> 0 ->> 'c' = E'\u0001\u001f'
-- check:
SELECT judge.message('attack', 9) LIKE '%column name "a" appears more than once%'
