-- class: txn
-- caller: superuser
-- mode: role
-- txn: block
-- savepoint: off
-- must: an error that a tool raises is an answer, whatever its code claims: cancelled, shut down, deadlocked, internal
-- before:
INSERT INTO safe.breach VALUES ('caller', 'before')
-- before:
DO $$
DECLARE code text; told text;
BEGIN
    FOREACH code IN ARRAY ARRAY['57014', '57P01', '57P02', '57P03', '57P05', '40001', '40P01', '25P02', '25006', '08006', '53200', '54001', '55P03',
                                'XX000', 'XX001', 'P0001', 'P0004', '42501', '0A000', 'F0001', 'IA002', 'ZZZZZ', '01000', '02000'] LOOP
        told := harness.ask('guest_writes', format('DO $d$ BEGIN RAISE EXCEPTION ''claimed'' USING ERRCODE = %L; END $d$', code));
        IF told NOT LIKE 'refused: %claimed%' THEN
            RAISE EXCEPTION 'code %: %', code, told;
        END IF;
    END LOOP;
END $$
-- attack:
SELECT 1 AS one
-- after:
SELECT who FROM safe.breach
-- check:
SELECT judge.fine('before', 2) AND judge.output('after') = 'caller' AND judge.fine('commit')
