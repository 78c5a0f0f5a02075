-- class: resource
-- caller: member
-- mode: role
-- limit: 30
-- must: the caller's own statement_timeout comes once, and ends the run even when the tool catches it
-- setup:
SET ROLE guest;
CREATE FUNCTION guest.deaf() RETURNS text LANGUAGE plpgsql AS $f$
BEGIN PERFORM pg_sleep(60); EXCEPTION WHEN query_canceled THEN RETURN 'deaf'; END $f$;
-- before:
SET statement_timeout = '400ms'
-- attacks:
DO $$ BEGIN LOOP BEGIN PERFORM pg_sleep(60); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END $$
DO $$ BEGIN BEGIN PERFORM pg_sleep(60); EXCEPTION WHEN query_canceled THEN NULL; END; END $$
DO $$ BEGIN BEGIN PERFORM pg_sleep(60); EXCEPTION WHEN query_canceled THEN RAISE 'another error'; END; END $$
SELECT guest.deaf() AS d
SELECT guest.deaf() AS d FROM generate_series(1, 100)
-- check:
SELECT bool_and(state = '57014' AND message = 'canceling statement due to statement timeout' AND ms < 5000) FROM judge.seen WHERE phase = 'attack'
