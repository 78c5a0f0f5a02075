-- class: lock
-- caller: superuser
-- mode: role
-- txn: block
-- must: no advisory lock is taken, waited for or released
-- setup:
SET ROLE guest;
CREATE FUNCTION guest.locks() RETURNS boolean LANGUAGE plpgsql AS $f$ BEGIN RETURN pg_try_advisory_lock(5); END $f$;
CREATE VIEW guest.locking AS SELECT pg_advisory_xact_lock(6)::text AS v;
-- before:
SELECT pg_advisory_lock(42), pg_advisory_xact_lock(43), pg_advisory_lock_shared(1, 2)
-- attacks:
SELECT pg_advisory_lock(1)
SELECT pg_advisory_lock(1, 2)
SELECT pg_advisory_lock_shared(1)
SELECT pg_advisory_xact_lock(1)
SELECT pg_advisory_xact_lock_shared(1, 1)
SELECT pg_try_advisory_lock(1)
SELECT pg_try_advisory_lock_shared(1)
SELECT pg_try_advisory_xact_lock(1)
SELECT pg_try_advisory_xact_lock_shared(1)
SELECT pg_advisory_unlock(42)
SELECT pg_advisory_unlock(1, 2)
SELECT pg_advisory_unlock_shared(1, 2)
SELECT pg_advisory_unlock_all()
SELECT guest.locks()
SELECT v FROM guest.locking
SELECT count(*) FROM generate_series(1, 1000) g WHERE pg_try_advisory_lock(g)
INSERT INTO guest.pad (note) SELECT pg_advisory_unlock(42)::text
UPDATE guest.pad SET note = pg_advisory_unlock(42)::text
DO $$ BEGIN PERFORM pg_advisory_unlock_all(); EXCEPTION WHEN OTHERS THEN RAISE; END $$
-- after:
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND objsubid < 3
-- check:
SELECT judge.none_fine('attack') AND judge.output('after') = '3'
