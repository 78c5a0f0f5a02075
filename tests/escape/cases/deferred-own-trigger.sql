-- class: deferred
-- caller: superuser
-- mode: role
-- txn: block
-- must: a constraint trigger of guest's own table does not fire at the caller's COMMIT
-- setup:
SET ROLE guest;
CREATE TABLE guest.late (a integer);
CREATE CONSTRAINT TRIGGER late AFTER INSERT ON guest.late DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION guest.payload_trigger();
CREATE TABLE guest.early (a integer);
CREATE CONSTRAINT TRIGGER early AFTER INSERT ON guest.early DEFERRABLE INITIALLY IMMEDIATE
    FOR EACH ROW EXECUTE FUNCTION guest.payload_trigger();
CREATE FUNCTION guest.catches() RETURNS text LANGUAGE plpgsql AS $f$
BEGIN INSERT INTO guest.late VALUES (1); RETURN 'in'; EXCEPTION WHEN OTHERS THEN RETURN SQLERRM; END $f$;
-- attacks:
INSERT INTO guest.late VALUES (1)
WITH w AS (INSERT INTO guest.late VALUES (2) RETURNING a) SELECT a FROM w
SELECT guest.catches() AS v
SET CONSTRAINTS ALL DEFERRED
DO $$ BEGIN SET CONSTRAINTS ALL DEFERRED; INSERT INTO guest.early VALUES (1); END $$
INSERT INTO guest.early VALUES (2)
-- check:
SELECT judge.fine('commit') AND judge.fine('attack', 6) AND NOT judge.breached()
