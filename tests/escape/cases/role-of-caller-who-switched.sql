-- class: role-escape
-- caller: superuser
-- mode: role
-- txn: block
-- must: a caller that has itself switched roles comes back as what it had switched to, and the session's user stays out of reach
-- before:
SET ROLE clerk
-- attacks:
RESET ROLE
SET ROLE NONE
SET SESSION AUTHORIZATION DEFAULT
-- attack:
DO $$ BEGIN PERFORM guest.payload(current_user || ' for ' || session_user); END $$
-- after:
SELECT current_user, session_user, current_setting('role')
-- check:
SELECT judge.output('after') = 'clerk|postgres|clerk' AND NOT judge.breached()
