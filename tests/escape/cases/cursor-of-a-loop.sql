-- class: cursor
-- caller: superuser
-- mode: role
-- txn: block
-- must: the unnamed portal of a FOR loop that calls the agent in its body can be neither read, moved nor closed
-- before:
CREATE TEMP TABLE looped (n integer, told text)
-- before:
DO $$
DECLARE r record;
BEGIN
    FOR r IN SELECT id, line FROM store.ledger ORDER BY id LOOP
        INSERT INTO looped VALUES (r.id, harness.ask('guest_writes', $q$
            DO $d$
            DECLARE c refcursor; x integer; y text; heard text := '';
            BEGIN
                FOR i IN 1..40 LOOP
                    c := '<unnamed portal ' || i || '>';
                    BEGIN FETCH c INTO x, y; heard := heard || ' ' || coalesce(y, ''); EXCEPTION WHEN OTHERS THEN NULL; END;
                    BEGIN MOVE FORWARD 2 FROM c; heard := heard || ' moved'; EXCEPTION WHEN OTHERS THEN NULL; END;
                    BEGIN CLOSE c; heard := heard || ' closed'; EXCEPTION WHEN OTHERS THEN NULL; END;
                END LOOP;
                RAISE EXCEPTION 'heard:%', heard;
            END $d$ $q$));
    END LOOP;
END $$
-- attack:
SELECT 1 AS one
-- after:
SELECT count(*), count(DISTINCT n), bool_or(told LIKE '%HUSH%'), bool_or(told LIKE '%moved%'), bool_or(told LIKE '%closed%') FROM looped
-- check:
SELECT judge.output('after') = '10|10|f|f|f'
