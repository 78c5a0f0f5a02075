-- class: guc
-- caller: owner
-- mode: readonly
-- must: the setting that a policy of the application asks is the caller's, in whatever way code of the role's tries to change it for itself
-- setup:
SET ROLE keeper;
CREATE TABLE store.tenants (tenant text, body text);
INSERT INTO store.tenants VALUES ('one', 'of one'), ('two', 'of two');
ALTER TABLE store.tenants ENABLE ROW LEVEL SECURITY;
CREATE POLICY by_setting ON store.tenants TO guest USING (tenant = current_setting('app.tenant', true));
CREATE TABLE store.principals (LIKE store.tenants);
INSERT INTO store.principals TABLE store.tenants;
ALTER TABLE store.principals ENABLE ROW LEVEL SECURITY;
-- keeper may not name the function by itself: the superuser makes the policy
GRANT SELECT ON store.tenants, store.principals TO guest;
-- setup:
CREATE POLICY by_principal ON store.principals TO guest USING (tenant = aidb.principal());
SET ROLE guest;
-- 15 and later let nobody but a superuser make a function that sets a setting which no library defines
DO $d$ BEGIN
    CREATE FUNCTION guest.as_two() RETURNS text LANGUAGE sql STABLE SET app.tenant = 'two' AS $f$ SELECT string_agg(body, ',') FROM store.tenants WHERE body <> '' $f$;
EXCEPTION WHEN OTHERS THEN NULL; END $d$;
CREATE FUNCTION guest.becomes(word text) RETURNS text LANGUAGE plpgsql AS $f$
BEGIN BEGIN EXECUTE word; EXCEPTION WHEN OTHERS THEN NULL; END; RETURN (SELECT string_agg(body, ',') FROM store.tenants); END $f$;
CREATE FUNCTION guest.becomes_stable(word text) RETURNS text LANGUAGE plpgsql STABLE AS $f$ BEGIN RETURN guest.becomes(word); END $f$;
DO $d$ BEGIN
    CREATE FUNCTION guest.as_principal_two() RETURNS text LANGUAGE sql STABLE SET aidb.principal = 'two' AS $f$ SELECT string_agg(body, ',') FROM store.principals $f$;
EXCEPTION WHEN OTHERS THEN NULL; END $d$;
-- before:
SET app.tenant = 'one'
-- before:
SET aidb.principal = 'one'
-- attacks:
SELECT body FROM store.tenants
SELECT body FROM store.principals
SELECT guest.as_principal_two() AS v
SELECT guest.as_two() AS v
SELECT guest.becomes_stable('SET app.tenant = ''two''') AS v
SELECT guest.becomes_stable('SET LOCAL app.tenant TO two') AS v
SELECT guest.becomes_stable('SELECT set_config(''app.tenant'', ''two'', true)') AS v
SELECT guest.becomes_stable('RESET app.tenant') AS v
UPDATE pg_settings SET setting = 'two' WHERE name = 'app.tenant'
-- after:
SELECT current_setting('app.tenant'), current_setting('aidb.principal')
-- check:
SELECT judge.told() NOT LIKE '%of two%' OR current_setting('server_version_num')::integer < 150000
-- check:
SELECT judge.output('attack', 1) = '[{"body": "of one"}]' AND judge.output('attack', 2) = '[{"body": "of one"}]' AND NOT judge.fine('attack', 3)
   AND judge.output('after') = 'one|one'
