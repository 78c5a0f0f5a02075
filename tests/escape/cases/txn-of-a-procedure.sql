-- class: txn
-- caller: superuser
-- mode: role
-- must: a caller that is itself a procedure which commits can call agents before and after, and a tool cannot commit for it
-- before:
CREATE PROCEDURE safe.work() LANGUAGE plpgsql AS $f$
DECLARE told text;
BEGIN
    INSERT INTO safe.breach VALUES ('one', '');
    told := harness.ask('guest_writes', 'DO $d$ BEGIN COMMIT; END $d$');
    COMMIT;
    INSERT INTO safe.breach VALUES ('two', told);
    told := harness.ask('guest_writes', 'DO $d$ BEGIN ROLLBACK; END $d$');
    ROLLBACK;
    INSERT INTO safe.breach VALUES ('three', told);
END $f$
-- before:
CALL safe.work()
-- attack:
SELECT 1 AS one
-- check:
SELECT judge.all_fine('before') AND (SELECT string_agg(who, ',' ORDER BY who) = 'one,three' FROM safe.breach) AND (SELECT how LIKE 'refused: %invalid transaction termination%' FROM safe.breach WHERE who = 'three')
