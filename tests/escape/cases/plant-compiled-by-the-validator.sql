-- class: plant
-- caller: superuser
-- mode: role
-- must: nor by calling the language's validator, which compiles a function without running it
-- setup:
SET check_function_bodies = off;
SET ROLE keeper;
CREATE FUNCTION store.reckon() RETURNS text LANGUAGE plpgsql STABLE AS $f$
DECLARE s state;
BEGIN s := 'new'; RETURN s::text; END $f$;
SET ROLE guest;
CREATE DOMAIN guest.state AS text CHECK (guest.payload('validated type'));
-- before:
SET search_path = "$user", store
-- attacks:
SELECT plpgsql_validator('store.reckon'::regproc) AS v
DO $$ BEGIN PERFORM plpgsql_validator('store.reckon'::regproc); EXCEPTION WHEN insufficient_privilege THEN NULL; END $$
-- after:
SELECT store.reckon()
-- check:
SELECT judge.output('after') = 'new' AND NOT judge.breached()
