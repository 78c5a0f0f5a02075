-- class: lock
-- caller: owner
-- mode: readonly
-- txn: block
-- must: a read-only call locks no table and no row, and leaves none locked
-- attacks:
LOCK TABLE store.goods
LOCK TABLE guest.pad IN ACCESS EXCLUSIVE MODE NOWAIT
SELECT * FROM guest.pad FOR UPDATE
SELECT * FROM guest.pad FOR KEY SHARE SKIP LOCKED
SELECT * FROM (SELECT * FROM guest.pad FOR SHARE) s
WITH l AS (SELECT * FROM guest.pad FOR NO KEY UPDATE) SELECT count(*) FROM l
SELECT (SELECT id FROM guest.pad LIMIT 1 FOR UPDATE) AS id
SELECT count(*) FROM guest.pad, pg_advisory_xact_lock(1)
VACUUM guest.pad
ANALYZE guest.pad
REINDEX TABLE guest.pad
CLUSTER guest.pad
-- check:
SELECT judge.none_fine('attack')
