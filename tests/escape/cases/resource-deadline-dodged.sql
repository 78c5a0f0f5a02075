-- class: resource
-- caller: owner
-- mode: role
-- limit: 60
-- time: 2s
-- must: catching the cancellation, in a loop, in a function, nested, does not buy time
-- setup:
SET ROLE guest;
CREATE FUNCTION guest.stubborn() RETURNS void LANGUAGE plpgsql AS $f$
BEGIN LOOP BEGIN PERFORM pg_sleep(60); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END $f$;
CREATE FUNCTION guest.stubborn_twice() RETURNS void LANGUAGE plpgsql SET statement_timeout = 0 AS $f$
BEGIN LOOP BEGIN PERFORM guest.stubborn(); EXCEPTION WHEN OTHERS OR query_canceled THEN NULL; END; END LOOP; END $f$;
-- attack:
SELECT guest.stubborn_twice()
-- attack:
DO $$ BEGIN LOOP BEGIN PERFORM count(*) FROM generate_series(1, 100000); EXCEPTION WHEN OTHERS OR query_canceled OR assert_failure THEN NULL; END; END LOOP; END $$
-- check:
SELECT bool_and(message LIKE '%exceeded its time limit%' AND ms < 8000) FROM judge.seen WHERE phase = 'attack'
