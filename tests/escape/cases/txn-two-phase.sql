-- class: txn
-- caller: superuser
-- mode: role
-- must: no transaction is prepared, and none that the caller prepared is ended
-- before:
BEGIN
-- before:
INSERT INTO store.orders VALUES (500)
-- before:
PREPARE TRANSACTION 'of the caller'
-- attacks:
COMMIT PREPARED 'of the caller'
ROLLBACK PREPARED 'of the caller'
DO $$ BEGIN COMMIT PREPARED 'of the caller'; END $$
DO $$ BEGIN EXECUTE 'ROLLBACK PREPARED ''of the caller'''; EXCEPTION WHEN OTHERS THEN RAISE; END $$
PREPARE TRANSACTION 'of guest'
DO $$ BEGIN PREPARE TRANSACTION 'of guest'; END $$
-- after:
SELECT string_agg(gid, ',') FROM pg_prepared_xacts
-- next:
ROLLBACK PREPARED 'of the caller'
-- check:
SELECT judge.none_fine('attack') AND judge.output('after') = 'of the caller' AND judge.fine('next')
