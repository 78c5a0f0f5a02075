-- class: role-escape
-- caller: superuser
-- mode: role
-- must: no spelling of SET or RESET of the role or the session's user gets through, and nothing after it runs with more rights
-- attacks:
RESET ROLE
SET ROLE postgres
SET ROLE NONE
SET LOCAL ROLE keeper
SET SESSION ROLE keeper
SET role TO DEFAULT
SET "role" = 'postgres'
set/**/role/* x */postgres
SET ROLE 'postgres'
SET SESSION AUTHORIZATION postgres
SET LOCAL SESSION AUTHORIZATION DEFAULT
SET SESSION AUTHORIZATION DEFAULT
RESET SESSION AUTHORIZATION
RESET ALL
DISCARD ALL
SET session_authorization = 'postgres'
SET ROLE U&"\006b\0065eper"
-- attack:
SELECT guest.payload('after the attempts')
-- check:
SELECT bool_and(state <> '') FROM judge.seen WHERE phase = 'attack' AND n <= 17
-- check:
SELECT NOT judge.breached()
