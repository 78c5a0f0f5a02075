-- class: plant
-- caller: owner
-- mode: readonly
-- must: extra checks of PL/pgSQL that guest asks for do not get compiled into anybody's functions
-- setup:
SET ROLE keeper;
CREATE FUNCTION store.first_title() RETURNS text LANGUAGE plpgsql STABLE AS $f$
DECLARE v text; BEGIN SELECT title INTO v FROM store.goods ORDER BY id; RETURN v; END $f$;
SET ROLE guest;
CREATE FUNCTION guest.strict() RETURNS text LANGUAGE plpgsql STABLE AS $f$ BEGIN RETURN store.first_title(); END $f$;
ALTER FUNCTION guest.strict() SET plpgsql.extra_errors = 'all';
-- attack:
SELECT guest.strict() AS v
-- after:
SELECT store.first_title()
-- check:
SELECT judge.output('after') = 'thing 1'
