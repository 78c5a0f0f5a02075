-- class: deferred
-- caller: owner
-- mode: role
-- txn: block
-- must: the caller's own pending constraint is checked when it would have been, not earlier and not as guest
-- before:
INSERT INTO store.lines VALUES (1, 77)
-- attacks:
INSERT INTO store.lines VALUES (2, 1)
SET CONSTRAINTS ALL IMMEDIATE
DO $$ BEGIN SET CONSTRAINTS ALL IMMEDIATE; END $$
UPDATE store.goods SET stock = stock WHERE id = 1
-- after:
INSERT INTO store.orders VALUES (77)
-- check:
SELECT judge.fine('attack', 4) AND judge.fine('commit') AND (SELECT count(*) = 1 FROM store.lines)
