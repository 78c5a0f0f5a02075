-- class: cursor
-- caller: owner
-- mode: role
-- txn: block
-- must: PL/pgSQL cannot read, move or close the caller's cursor through a refcursor of its name, nor through a parameter
-- setup:
SET ROLE guest;
CREATE FUNCTION guest.reads(c refcursor) RETURNS text LANGUAGE plpgsql AS $f$ DECLARE x text; BEGIN FETCH c INTO x; RETURN x; END $f$;
-- before:
DECLARE mine SCROLL CURSOR FOR SELECT line FROM store.ledger ORDER BY id
-- attacks:
DO $$ DECLARE c refcursor := 'mine'; x text; BEGIN FETCH c INTO x; RAISE EXCEPTION 'got %', x; END $$
DO $$ DECLARE c refcursor := 'mine'; BEGIN MOVE FORWARD 3 FROM c; END $$
DO $$ DECLARE c refcursor := 'mine'; BEGIN CLOSE c; END $$
SELECT guest.reads('mine')
DO $$ DECLARE c refcursor := 'mine'; BEGIN FOR i IN 1..3 LOOP BEGIN MOVE c; EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END $$
-- after:
FETCH 1 FROM mine
-- check:
SELECT judge.told() NOT LIKE '%HUSH%' AND judge.output('after') = 'HUSH-1'
