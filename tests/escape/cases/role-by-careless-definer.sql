-- class: role-escape
-- caller: owner
-- mode: role
-- must: a SECURITY DEFINER function that forgot its search_path does not run what the role planted in its way
-- setup:
GRANT CREATE ON SCHEMA public TO guest;
SET ROLE keeper;
CREATE FUNCTION store.careless() RETURNS integer LANGUAGE plpgsql SECURITY DEFINER AS $f$
BEGIN RETURN helper(1); END $f$;
CREATE FUNCTION store.careless_operator() RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS $f$
BEGIN RETURN 1 === 1; END $f$;
GRANT EXECUTE ON FUNCTION store.careless(), store.careless_operator() TO guest;
-- setup:
SET ROLE guest;
CREATE FUNCTION public.helper(n integer) RETURNS integer LANGUAGE sql AS $f$ SELECT CASE WHEN guest.payload('helper') THEN 1 END $f$;
CREATE FUNCTION public.same(integer, integer) RETURNS boolean LANGUAGE plpgsql AS $f$ BEGIN RETURN guest.payload('same'); END $f$;
CREATE OPERATOR public.=== (LEFTARG = integer, RIGHTARG = integer, FUNCTION = public.same);
-- attacks:
SELECT store.careless() AS n
SELECT store.careless_operator() AS n
-- check:
SELECT judge.none_fine('attack') AND NOT judge.breached()
