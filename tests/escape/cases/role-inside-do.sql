-- class: role-escape
-- caller: superuser
-- mode: role
-- txn: block
-- must: a DO block cannot change its user either, however the words are put together and whichever error it catches
-- attack:
DO $$ BEGIN EXECUTE concat('RE', 'SET ', 'RO', 'LE'); PERFORM guest.payload('reset'); END $$
-- attack:
DO $$
DECLARE word text;
BEGIN
    FOREACH word IN ARRAY ARRAY['SET ROLE postgres', 'RESET ROLE', 'SET SESSION AUTHORIZATION DEFAULT', 'RESET ALL', 'DISCARD ALL',
                                'SET LOCAL session_authorization TO DEFAULT', 'SET LOCAL ROLE NONE'] LOOP
        BEGIN
            EXECUTE word;
        EXCEPTION WHEN OTHERS THEN
            PERFORM guest.payload('caught ' || word);
        END;
        PERFORM guest.payload('after ' || word);
    END LOOP;
END $$
-- attack:
DO $outer$ BEGIN EXECUTE 'DO $inner$ BEGIN SET ROLE NONE; PERFORM guest.payload(''nested''); END $inner$'; END $outer$
-- after:
SELECT current_user, session_user
-- check:
SELECT judge.output('after') = 'postgres|postgres' AND judge.fine('attack', 2) AND NOT judge.fine('attack', 1) AND NOT judge.fine('attack', 3)
-- check:
SELECT NOT judge.breached()
