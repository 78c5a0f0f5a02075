-- class: cursor
-- caller: owner
-- mode: role
-- txn: block
-- must: code that runs while rows are turned into JSON has no more reach than the rest
-- setup:
SET ROLE guest;
CREATE TYPE guest.mood AS ENUM ('fine');
CREATE FUNCTION guest.mood_json(guest.mood) RETURNS json LANGUAGE plpgsql AS $f$
DECLARE c refcursor := 'mine'; x text;
BEGIN
    BEGIN FETCH c INTO x; EXCEPTION WHEN OTHERS THEN x := 'refused'; END;
    BEGIN PERFORM pg_catalog.set_config('work_mem', '7MB', false); EXCEPTION WHEN OTHERS THEN NULL; END;
    PERFORM guest.payload('json cast');
    RETURN to_json(x);
END $f$;
CREATE CAST (guest.mood AS json) WITH FUNCTION guest.mood_json(guest.mood);
-- before:
DECLARE mine CURSOR FOR SELECT line FROM store.ledger ORDER BY id
-- attack:
SELECT 'fine'::guest.mood AS v
-- after:
FETCH 1 FROM mine
-- check:
SELECT judge.output('attack') = '[{"v": "refused"}]' AND judge.output('after') = 'HUSH-1' AND NOT judge.breached()
