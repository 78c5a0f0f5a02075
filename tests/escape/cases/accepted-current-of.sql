-- class: accepted
-- caller: owner
-- mode: role
-- txn: block
-- must: WHERE CURRENT OF the caller's cursor tells which row it is at, of a table that guest may change anyway, and moves nothing
-- before:
DECLARE mine CURSOR FOR SELECT id FROM store.goods ORDER BY id FOR UPDATE
-- before:
FETCH 2 FROM mine
-- attack:
UPDATE store.goods SET stock = 5 WHERE CURRENT OF mine RETURNING id
-- attack:
DELETE FROM store.ledger WHERE CURRENT OF mine
-- after:
FETCH 1 FROM mine
-- check:
SELECT NOT judge.fine('attack', 2) AND judge.output('after') = '3'
