-- class: cursor
-- caller: superuser
-- mode: role
-- txn: block
-- must: no cursor statement reaches the caller's cursors or leaves one
-- before:
DECLARE mine SCROLL CURSOR FOR SELECT line FROM store.ledger ORDER BY id
-- before:
FETCH 2 FROM mine
-- attacks:
FETCH 1 FROM mine
FETCH BACKWARD ALL FROM mine
MOVE 3 IN mine
CLOSE mine
CLOSE ALL
DECLARE fresh CURSOR FOR SELECT guest.payload('cursor')
DECLARE held CURSOR WITH HOLD FOR SELECT guest.payload('held cursor')
EXPLAIN ANALYZE DECLARE fresh CURSOR FOR SELECT 1
SELECT * FROM pg_cursors
SELECT cursor_to_xml('mine', 3, true, true, '')
SELECT cursor_to_xmlschema('mine', true, true, '')
DO $$ BEGIN EXECUTE 'DECLARE held CURSOR WITH HOLD FOR SELECT guest.payload(''held in do'')'; END $$
-- after:
FETCH 1 FROM mine
-- next:
FETCH 1 FROM held
-- check:
SELECT judge.none_fine('attack') AND judge.told() NOT LIKE '%HUSH%' AND judge.output('after') = 'HUSH-3' AND judge.state('next') = '34000' AND NOT judge.breached()
