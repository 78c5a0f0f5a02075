-- class: accepted
-- caller: owner
-- mode: role
-- txn: block
-- must: rows that a writing call locks stay locked until the caller's transaction ends, as after any statement
-- attack:
SELECT id FROM store.goods WHERE id = 1 FOR UPDATE
-- after:
SELECT count(*) > 0 FROM pg_locks WHERE pid = pg_backend_pid() AND relation = 'store.goods'::regclass AND mode = 'RowShareLock'
-- check:
SELECT judge.output('after') = 't'
