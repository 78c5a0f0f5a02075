-- class: privilege
-- caller: owner
-- mode: readonly
-- must: views show what they are for: one with the rights of its reader shows nothing more, one with a barrier no row to a function of the role's, one of the role's own nothing of others
-- setup:
SET ROLE keeper;
CREATE VIEW store.as_reader AS SELECT line FROM store.ledger;
-- 14 has no such option: there the view is the reader's by other means
DO $d$ BEGIN ALTER VIEW store.as_reader SET (security_invoker = true); EXCEPTION WHEN OTHERS THEN EXECUTE 'REVOKE ALL ON store.as_reader FROM PUBLIC'; END $d$;
CREATE VIEW store.barred WITH (security_barrier) AS SELECT id, line FROM store.ledger WHERE id = 1;
CREATE VIEW store.through_public AS SELECT line FROM store.as_reader;
DO $d$ BEGIN ALTER VIEW store.through_public SET (security_invoker = true); EXCEPTION WHEN OTHERS THEN NULL; END $d$;
GRANT SELECT ON store.as_reader, store.barred, store.through_public TO guest;
-- setup:
GRANT SELECT ON store.ledger TO guest;
SET ROLE guest;
CREATE VIEW guest.of_ledger AS SELECT * FROM store.ledger;
CREATE VIEW guest.locks AS SELECT pg_try_advisory_lock(id) AS v FROM store.goods;
CREATE VIEW guest.sets AS SELECT set_config('app.marker', 'view', false) AS v;
CREATE VIEW guest.shares AS SELECT * FROM store.goods FOR SHARE;
CREATE FUNCTION guest.spies(text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE COST 0.00001 AS $f$ BEGIN RAISE EXCEPTION 'spied %', $1; END $f$;
GRANT SELECT ON guest.of_ledger TO keeper;
-- setup:
REVOKE SELECT ON store.ledger FROM guest;
-- attacks:
SELECT line FROM store.as_reader
SELECT line FROM store.through_public
SELECT * FROM guest.of_ledger
SELECT line FROM store.barred WHERE guest.spies(line) AND id = 2
SELECT line FROM store.barred b WHERE id = 2 AND line::integer > 0
EXPLAIN ANALYZE SELECT line FROM store.barred WHERE guest.spies(line)
SELECT v FROM guest.locks
SELECT v FROM guest.sets
SELECT id FROM guest.shares
-- check:
SELECT judge.told() !~ 'HUSH-([2-9]|10)' AND judge.message('attack', 1) LIKE '%permission denied for table ledger%'
   AND judge.message('attack', 3) LIKE '%permission denied for table ledger%'
-- check:
SELECT bool_and(state <> '') FROM judge.seen WHERE phase = 'attack' AND n IN (7, 8, 9)
