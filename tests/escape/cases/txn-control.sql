-- class: txn
-- caller: superuser
-- mode: role
-- txn: block
-- savepoint: off
-- must: the caller's transaction and savepoints can be neither ended nor rolled back, and what it did stays
-- setup:
SET ROLE guest;
CREATE PROCEDURE guest.commits() LANGUAGE plpgsql AS $f$ BEGIN COMMIT; END $f$;
CREATE PROCEDURE guest.tries() LANGUAGE plpgsql AS $f$ BEGIN BEGIN COMMIT; EXCEPTION WHEN OTHERS THEN NULL; END; BEGIN ROLLBACK; EXCEPTION WHEN OTHERS THEN NULL; END; END $f$;
-- before:
INSERT INTO safe.breach VALUES ('caller', 'before')
-- before:
SAVEPOINT mine
-- before:
DO $$
DECLARE s text;
BEGIN
    FOREACH s IN ARRAY ARRAY['COMMIT', 'ROLLBACK', 'ABORT', 'END', 'BEGIN', 'START TRANSACTION', 'SAVEPOINT x', 'ROLLBACK TO mine', 'ROLLBACK TO SAVEPOINT mine',
        'RELEASE mine', 'PREPARE TRANSACTION ''x''', 'COMMIT PREPARED ''x''', 'ROLLBACK AND CHAIN', 'SET TRANSACTION READ ONLY',
        'DO $x$ BEGIN COMMIT; END $x$', 'DO $x$ BEGIN ROLLBACK; END $x$', 'DO $x$ BEGIN EXECUTE ''COMMIT''; END $x$', 'CALL guest.commits()'] LOOP
        IF harness.ask('guest_writes', s) NOT LIKE 'refused: %' THEN
            RAISE EXCEPTION '% went through', s;
        END IF;
    END LOOP;
END $$
-- attack:
CALL guest.tries()
-- after:
SELECT who, how FROM safe.breach
-- after:
ROLLBACK TO mine
-- after:
INSERT INTO safe.breach VALUES ('caller', 'after')
-- check:
SELECT judge.fine('before', 3) AND judge.output('after') = 'caller|before' AND judge.all_fine('after') AND judge.fine('commit') AND (SELECT count(*) = 2 FROM safe.breach)
