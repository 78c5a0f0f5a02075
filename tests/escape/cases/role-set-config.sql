-- class: role-escape
-- caller: superuser
-- mode: role
-- must: set_config is out of reach as a function, through an aggregate, an operator, a view, a rule, a domain and a default
-- setup:
SET ROLE guest;
CREATE AGGREGATE guest.settings(text, boolean) (SFUNC = pg_catalog.set_config, STYPE = text, INITCOND = 'role');
CREATE FUNCTION guest.become(text, text) RETURNS text LANGUAGE sql AS 'SELECT pg_catalog.set_config($1, $2, false)';
CREATE OPERATOR guest.==> (LEFTARG = text, RIGHTARG = text, PROCEDURE = guest.become);
CREATE VIEW guest.becoming AS SELECT pg_catalog.set_config('role', 'postgres', false) AS v;
CREATE FUNCTION guest.is_set(text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $f$
BEGIN RETURN pg_catalog.set_config('role', $1, false) IS NOT NULL; END $f$;
CREATE DOMAIN guest.roles AS text CHECK (guest.is_set(VALUE));
CREATE TABLE guest.setters (a text DEFAULT pg_catalog.set_config('role', 'postgres', false), b integer);
CREATE RULE setter AS ON DELETE TO guest.setters DO INSTEAD SELECT pg_catalog.set_config('role', 'postgres', false);
-- attacks:
SELECT set_config('role', 'postgres', false)
SELECT set_config('role', NULL, true)
SELECT pg_catalog.set_config('session_authorization', 'postgres', true)
SELECT guest.settings('postgres', false)
SELECT guest.settings('postgres', false) OVER ()
SELECT 'role' OPERATOR(guest.==>) 'postgres'
SELECT v FROM guest.becoming
SELECT 'postgres'::guest.roles
INSERT INTO guest.setters (b) VALUES (1)
DELETE FROM guest.setters
UPDATE pg_settings SET setting = 'postgres' WHERE name = 'role'
SELECT s.v FROM generate_series(1, 2) g, LATERAL set_config('role', 'postgres', g = 1) AS s(v)
SELECT CASE WHEN random() < 2 THEN set_config('role', 'postgres', true) END
DO $$ DECLARE v text := set_config('role', 'postgres', false); BEGIN PERFORM guest.payload('do'); END $$
VALUES (set_config('role', 'none', false))
SELECT count(*) FILTER (WHERE set_config('role', 'none', false) = 'none') FROM store.goods
SELECT array_agg(id ORDER BY set_config('role', 'none', false)) FROM store.goods
INSERT INTO guest.pad (note) VALUES ('x') RETURNING set_config('role', 'none', false)
-- check:
SELECT judge.none_fine('attack')
-- check:
SELECT NOT judge.breached()
