-- class: privilege
-- caller: superuser
-- mode: role
-- must: MERGE writes what the role may write, as the role, and its source and conditions see no more
-- setup:
SET ROLE guest;
CREATE FUNCTION guest.merge_trigger() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN PERFORM guest.payload('merge'); RETURN NEW; END $f$;
CREATE TRIGGER m BEFORE INSERT OR UPDATE ON guest.pad FOR EACH ROW EXECUTE FUNCTION guest.merge_trigger();
-- attacks:
MERGE INTO guest.pad p USING (SELECT id, line FROM store.ledger) s ON p.id = s.id WHEN MATCHED THEN UPDATE SET note = s.line
MERGE INTO store.ledger l USING (SELECT 1 AS id) s ON l.id = s.id WHEN MATCHED THEN DELETE
MERGE INTO guest.pad p USING (SELECT 1 AS id) s ON p.id = s.id WHEN MATCHED AND pg_try_advisory_lock(1) THEN DELETE
MERGE INTO guest.pad p USING (SELECT 1 AS id) s ON p.id = s.id WHEN MATCHED THEN UPDATE SET note = set_config('app.marker', 'merge', false)
-- attack:
MERGE INTO guest.pad p USING (SELECT 1 AS id) s ON p.id = s.id WHEN MATCHED THEN UPDATE SET note = 'merged'
-- check:
SELECT NOT judge.breached() AND judge.told() NOT LIKE '%HUSH%' AND (SELECT bool_and(state <> '') FROM judge.seen WHERE phase = 'attack' AND n < 5)
-- check:
SELECT current_setting('server_version_num')::integer < 150000 OR (judge.fine('attack', 5) AND (SELECT note = 'merged' FROM guest.pad WHERE id = 1))
