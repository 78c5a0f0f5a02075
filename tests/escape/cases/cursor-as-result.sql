-- class: cursor
-- caller: superuser
-- mode: role
-- txn: block
-- must: a cursor that a function returns is gone after the call, under any name, in any language, and the caller's name for one is never taken
-- setup:
SET ROLE guest;
CREATE FUNCTION guest.opens(c refcursor) RETURNS refcursor LANGUAGE plpgsql AS $f$ BEGIN OPEN c FOR SELECT guest.payload('cursor'); RETURN c; END $f$;
CREATE FUNCTION guest.opens_unnamed() RETURNS refcursor LANGUAGE plpgsql AS $f$ DECLARE c refcursor; v boolean; BEGIN OPEN c SCROLL FOR SELECT guest.payload('unnamed') FROM generate_series(1, 3); FETCH c INTO v; RETURN c; END $f$;
CREATE FUNCTION guest.opens_bound() RETURNS refcursor LANGUAGE plpgsql AS $f$ DECLARE c CURSOR (n integer) FOR SELECT guest.payload('bound') FROM generate_series(1, n); BEGIN OPEN c(3); RETURN c; END $f$;
CREATE FUNCTION guest.opens_dynamic(c refcursor, q text) RETURNS refcursor LANGUAGE plpgsql AS $f$ BEGIN OPEN c FOR EXECUTE q; RETURN c; END $f$;
CREATE FUNCTION guest.opens_and_fails(c refcursor) RETURNS refcursor LANGUAGE plpgsql AS $f$ BEGIN BEGIN OPEN c FOR SELECT guest.payload('failed'); PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN OPEN c FOR SELECT guest.payload('again'); END; RETURN c; END $f$;
-- before:
DECLARE mine CURSOR FOR SELECT 'mine'::text
-- attacks:
SELECT guest.opens('left') AS c
SELECT guest.opens('mine') AS c
SELECT guest.opens('') AS c
SELECT guest.opens('<unnamed portal 1>') AS c
SELECT guest.opens_unnamed() AS c
SELECT guest.opens_bound() AS c
SELECT guest.opens_dynamic('dynamic', 'UPDATE guest.pad SET note = note RETURNING guest.payload(''returning'')') AS c
SELECT guest.opens_and_fails('twice') AS c
SELECT c::text FROM guest.opens('in_from') c
-- after:
SELECT count(*) FROM pg_cursors WHERE name IN ('left', 'dynamic', 'twice', 'in_from', 'c')
-- after:
FETCH ALL FROM mine
-- check:
SELECT judge.output('after', 1) = '0' AND judge.output('after', 2) = 'mine' AND NOT judge.breached()
