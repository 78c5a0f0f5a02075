-- class: cursor
-- caller: superuser
-- mode: role
-- txn: block
-- must: nor under that of a cursor that was read to its end
-- before:
DECLARE mine CURSOR FOR SELECT g FROM generate_series(1, 2) g
-- before:
FETCH ALL FROM mine
-- attack:
DO $$ DECLARE c refcursor := 'mine'; BEGIN CLOSE c; OPEN c FOR SELECT guest.payload('done cursor'); END $$
-- after:
FETCH 1 FROM mine
-- check:
SELECT judge.output('after') = '' AND judge.fine('after') AND NOT judge.breached()
