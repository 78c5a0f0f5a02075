-- class: plant
-- caller: owner
-- mode: role
-- txn: block
-- must: neither is it when a function of guest's own sets the path, nor when the call ends in an error
-- setup:
CREATE TYPE public.colour AS ENUM ('red');
SET check_function_bodies = off;
SET ROLE keeper;
CREATE FUNCTION store.paint(c text) RETURNS text LANGUAGE plpgsql AS $f$
DECLARE k colour; r goods%ROWTYPE;
BEGIN
    k := c;
    SELECT * INTO r FROM store.goods WHERE id = 1;
    RETURN concat(k, ' ', r.title);
END $f$;
SET ROLE guest;
CREATE DOMAIN guest.colour AS text CHECK (guest.payload('colour'));
CREATE DOMAIN guest.title AS text CHECK (guest.payload('row type'));
CREATE TABLE guest.goods (id integer, title guest.title);
CREATE FUNCTION guest.first_use(fail boolean) RETURNS text LANGUAGE plpgsql SET search_path = guest, public AS $f$
BEGIN
    BEGIN PERFORM store.paint('red'); EXCEPTION WHEN OTHERS THEN NULL; END;
    IF fail THEN RAISE EXCEPTION 'compiled'; END IF;
    RETURN '';
END $f$;
-- before:
SET search_path = store, public
-- attacks:
SELECT guest.first_use(false) AS v
SELECT guest.first_use(true) AS v
-- after:
SELECT store.paint('red')
-- check:
SELECT judge.output('after') = 'red thing 1' AND NOT judge.breached()
