-- class: temp
-- caller: owner
-- mode: role
-- must: the caller's temporary tables are its own: unreadable, not in the way, not to be dropped
-- before:
CREATE TEMP TABLE basket AS SELECT 'HUSH' AS line
-- before:
CREATE TEMP TABLE goods AS SELECT 'HUSH' AS title, 1 AS stock
-- attacks:
SELECT * FROM basket
SELECT * FROM pg_temp.basket
DROP TABLE basket
TRUNCATE basket
INSERT INTO basket VALUES ('x')
ALTER TABLE basket ADD COLUMN x integer
DISCARD TEMP
SELECT * FROM goods
-- attack:
SELECT count(*) AS n FROM store.goods
-- after:
SELECT line FROM basket
-- check:
SELECT judge.told() NOT LIKE '%HUSH%' AND judge.output('attack', 9) = '[{"n": 40}]' AND judge.output('after') = 'HUSH'
