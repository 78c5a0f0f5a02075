-- class: resource
-- caller: member
-- mode: role
-- time: 3s
-- must: error texts of any size are cut
-- attacks:
DO $$ BEGIN RAISE EXCEPTION '%', repeat('x', 10000000); END $$
DO $$ BEGIN RAISE EXCEPTION 'm' USING DETAIL = repeat('ü', 4000000), HINT = repeat('h', 4000000), TABLE = repeat('t', 1000000); END $$
DO $$ BEGIN RAISE EXCEPTION '%', repeat('x', 100000000); END $$
SELECT repeat('x', 1000000)::integer
SELECT repeat('x', 1000000)::timestamptz
SELECT ('{' || repeat('x', 1000000))::json
-- check:
SELECT judge.none_fine('attack') AND (SELECT max(length(message)) < 40000 FROM judge.seen)
