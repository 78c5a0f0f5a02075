-- class: leak
-- caller: superuser
-- mode: role
-- must: numbers that the caller has drawn from a sequence are not told
-- setup:
CREATE SEQUENCE safe.numbers START 987123;
-- before:
SELECT nextval('safe.numbers')
-- attacks:
SELECT lastval() AS v
SELECT currval('safe.numbers') AS v
SELECT last_value FROM safe.numbers
SELECT pg_sequence_last_value('safe.numbers'::regclass) AS v
SELECT last_value FROM pg_sequences WHERE sequencename = 'numbers' AND last_value IS NOT NULL
SELECT setval('safe.numbers', 1)
SELECT nextval('safe.numbers')
DO $$ BEGIN RAISE EXCEPTION '%', lastval(); END $$
-- after:
SELECT lastval()
-- check:
SELECT judge.told() NOT LIKE '%987123%' AND judge.output('after') = '987123'
