-- class: cursor
-- caller: owner
-- mode: role
-- must: a cursor that the caller holds from an earlier transaction is as safe
-- before:
BEGIN; DECLARE mine CURSOR WITH HOLD FOR SELECT line FROM store.ledger ORDER BY id; COMMIT
-- attacks:
DO $$ DECLARE c refcursor := 'mine'; x text; BEGIN FETCH c INTO x; RAISE EXCEPTION 'got %', x; END $$
DO $$ DECLARE c refcursor := 'mine'; BEGIN CLOSE c; OPEN c FOR SELECT 1; END $$
-- after:
FETCH 1 FROM mine
-- check:
SELECT judge.none_fine('attack') AND judge.told() NOT LIKE '%HUSH%' AND judge.output('after') = 'HUSH-1'
