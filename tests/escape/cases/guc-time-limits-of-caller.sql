-- class: guc
-- caller: member
-- mode: role
-- txn: block
-- limit: 30
-- must: a function that sets time limits for itself does not put off the caller's own
-- setup:
SET ROLE guest;
CREATE FUNCTION guest.timeless() RETURNS text LANGUAGE plpgsql SET statement_timeout = 0 SET lock_timeout = 0 SET idle_in_transaction_session_timeout = 0 AS $f$
BEGIN PERFORM pg_sleep(20); RETURN 'slept'; END $f$;
-- before:
SET statement_timeout = '700ms'
-- attack:
SELECT guest.timeless() AS v
-- after:
SELECT current_setting('statement_timeout')
-- check:
SELECT judge.state('attack') = '57014' AND judge.message('attack') = 'canceling statement due to statement timeout' AND judge.ms('attack') < 10000 AND judge.output('after') = '700ms'
