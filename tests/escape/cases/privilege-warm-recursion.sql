-- class: privilege
-- caller: owner
-- mode: role
-- txn: block
-- must: a function that the caller is still inside of, with expressions already checked, is checked anew for guest
-- setup:
SET ROLE keeper;
CREATE FUNCTION store.closed() RETURNS text LANGUAGE plpgsql AS $f$ BEGIN RETURN 'HUSH-closed'; END $f$;
REVOKE EXECUTE ON FUNCTION store.closed() FROM PUBLIC;
CREATE FUNCTION store.open(deep boolean) RETURNS text LANGUAGE plpgsql AS $f$
DECLARE x text; y text;
BEGIN
    x := store.closed();
    IF deep THEN
        y := harness.ask('guest_writes', 'SELECT store.open(false) AS told');
    END IF;
    RETURN concat(x, ' / ', y);
END $f$;
GRANT EXECUTE ON FUNCTION store.open(boolean) TO guest;
-- before:
SELECT store.open(false)
-- attack:
SELECT store.open(false)
-- after:
SELECT store.open(true)
-- check:
SELECT judge.told() NOT LIKE '%HUSH%' AND judge.output('after') LIKE 'HUSH-closed / refused: %permission denied for function closed%'
