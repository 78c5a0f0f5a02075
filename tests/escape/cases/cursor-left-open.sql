-- class: cursor
-- caller: superuser
-- mode: role
-- txn: block
-- must: cursors that the call opens are gone with it, named or not
-- attacks:
DO $$ DECLARE c refcursor := 'left'; BEGIN OPEN c FOR SELECT guest.payload('left open'); END $$
DO $$ DECLARE c refcursor; BEGIN OPEN c FOR SELECT guest.payload('left unnamed'); END $$
DO $$ DECLARE c CURSOR FOR SELECT guest.payload('bound'); BEGIN OPEN c; BEGIN PERFORM 1/0; EXCEPTION WHEN OTHERS THEN NULL; END; END $$
-- after:
SELECT count(*) FROM pg_cursors WHERE statement LIKE '%payload%' AND statement NOT LIKE '%count%'
-- after:
FETCH 1 FROM "left"
-- check:
SELECT judge.all_fine('attack') AND judge.output('after') = '0' AND judge.state('after', 2) = '34000' AND NOT judge.breached()
