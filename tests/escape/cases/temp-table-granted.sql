-- class: temp
-- caller: owner
-- mode: readonly
-- must: writing to a temporary table is writing too, even one that guest was given
-- before:
CREATE TEMP TABLE basket (line text); GRANT ALL ON basket TO guest; INSERT INTO basket VALUES ('kept')
-- attacks:
INSERT INTO pg_temp.basket VALUES ('x')
UPDATE pg_temp.basket SET line = 'x'
DELETE FROM pg_temp.basket
WITH d AS (DELETE FROM pg_temp.basket RETURNING line) SELECT * FROM d
TRUNCATE pg_temp.basket
-- attack:
SELECT line FROM pg_temp.basket
-- after:
TABLE basket
-- check:
SELECT judge.output('after') = 'kept' AND judge.output('attack', 6) LIKE '%kept%' AND (SELECT count(*) = 5 FROM judge.seen WHERE phase = 'attack' AND state <> '')
