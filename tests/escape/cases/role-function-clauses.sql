-- class: role-escape
-- caller: superuser
-- mode: role
-- must: a SET clause of the role's own functions and procedures cannot change the user, and a definer function is no way up
-- setup:
SET ROLE guest;
CREATE FUNCTION guest.out_one() RETURNS boolean LANGUAGE sql AS 'SELECT guest.payload(''one'')';
ALTER FUNCTION guest.out_one() SET role = 'none';
CREATE FUNCTION guest.out_two() RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RETURN guest.payload(''two''); END';
ALTER FUNCTION guest.out_two() SET session_authorization = 'guest';
CREATE PROCEDURE guest.out_three() LANGUAGE plpgsql AS 'BEGIN PERFORM guest.payload(''three''); END';
ALTER PROCEDURE guest.out_three() SET role = 'guest';
CREATE FUNCTION guest.out_four() RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS $f$
BEGIN
    BEGIN SET LOCAL ROLE NONE; EXCEPTION WHEN OTHERS THEN NULL; END;
    RETURN guest.payload('four');
END $f$;
-- attacks:
SELECT guest.out_one()
SELECT guest.out_two()
CALL guest.out_three()
SELECT guest.out_four()
-- check:
SELECT NOT judge.fine('attack', 1) AND NOT judge.fine('attack', 2) AND NOT judge.fine('attack', 3) AND judge.fine('attack', 4)
-- check:
SELECT NOT judge.breached()
