-- class: cursor
-- caller: superuser
-- mode: role
-- txn: block
-- must: nor under that of a cursor whose query has failed, which could be closed and opened anew
-- before:
DECLARE mine CURSOR FOR SELECT 1 / (g - 2) FROM generate_series(1, 5) g
-- before:
SAVEPOINT s
-- before:
FETCH 3 FROM mine
-- before:
ROLLBACK TO s
-- attack:
DO $$ DECLARE c refcursor := 'mine'; BEGIN CLOSE c; OPEN c FOR SELECT guest.payload('failed cursor'); END $$
-- after:
FETCH 1 FROM mine
-- check:
SELECT judge.state('before', 3) = '22012' AND NOT judge.fine('after') AND NOT judge.breached()
