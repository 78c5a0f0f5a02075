-- class: deferred
-- caller: owner
-- mode: role
-- txn: block
-- must: what the caller has deferred itself is neither checked early nor dropped: it runs at its own commit, as itself
-- before:
INSERT INTO store.lines VALUES (1, 77)
-- attack:
UPDATE store.goods SET stock = stock + 1 WHERE id = 1
-- attack:
SELECT 1 / 0
-- after:
INSERT INTO store.orders VALUES (77)
-- check:
SELECT judge.all_fine('after') AND judge.fine('commit') AND EXISTS (SELECT FROM store.lines WHERE order_id = 77)
