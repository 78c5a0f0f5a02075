-- class: plant
-- caller: superuser
-- mode: readonly
-- must: a type of guest's that stands first in guest's own path is not compiled into an application's function for the caller
-- setup:
SET check_function_bodies = off;
SET ROLE keeper;
CREATE FUNCTION store.reckon() RETURNS text LANGUAGE plpgsql STABLE AS $f$
DECLARE s state;
BEGIN s := 'new'; RETURN s::text; END $f$;
SET ROLE guest;
CREATE DOMAIN guest.state AS text CHECK (guest.payload('compiled type'));
-- before:
SET search_path = "$user", store
-- attack:
SELECT store.reckon() AS v
-- after:
SELECT store.reckon()
-- check:
SELECT judge.output('after') = 'new' AND NOT judge.breached()
