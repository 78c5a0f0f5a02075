-- class: cursor
-- caller: superuser
-- mode: role
-- txn: block
-- must: no other query can be put under the name of the caller's cursor
-- before:
DECLARE mine CURSOR FOR SELECT 'right'
-- attacks:
DO $$ DECLARE c refcursor := 'mine'; BEGIN CLOSE c; OPEN c FOR SELECT guest.payload('replaced'); END $$
DO $$ DECLARE c refcursor := 'mine'; BEGIN OPEN c FOR SELECT guest.payload('opened'); END $$
DO $$ DECLARE c refcursor := 'mine'; BEGIN BEGIN CLOSE c; EXCEPTION WHEN OTHERS THEN NULL; END; OPEN c FOR SELECT guest.payload('after error'); END $$
-- after:
FETCH 1 FROM mine
-- check:
SELECT judge.none_fine('attack') AND judge.output('after') = 'right' AND NOT judge.breached()
