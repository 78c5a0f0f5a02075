-- class: plant
-- caller: member
-- mode: readonly
-- must: registering a statement as a tool, and asking whether it is allowed, run no code of whoever wrote it
-- setup:
CREATE SCHEMA clerk AUTHORIZATION clerk;
-- before:
CREATE FUNCTION clerk.climbs() RETURNS boolean LANGUAGE plpgsql AS $f$
BEGIN INSERT INTO safe.breach VALUES (current_user, 'registration'); ALTER ROLE clerk SUPERUSER; RETURN true; EXCEPTION WHEN insufficient_privilege THEN RETURN true; END $f$;
CREATE FUNCTION clerk.pure() RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN clerk.climbs(); END';
-- before:
CREATE DOMAIN clerk.checked AS text CHECK (clerk.climbs());
CREATE DOMAIN clerk.folded AS text CHECK (clerk.pure());
CREATE TYPE clerk.pair AS (a clerk.checked);
CREATE VIEW clerk.look AS SELECT 'x'::clerk.folded AS v, clerk.pure() AS w;
CREATE FUNCTION clerk.pure_text(text DEFAULT clerk.pure()::text) RETURNS text LANGUAGE sql STABLE AS $f$ SELECT '{x}'::clerk.checked[]::text $f$
-- before:
DO $$
DECLARE s text; n integer := 0;
BEGIN
    FOREACH s IN ARRAY ARRAY['SELECT ''x''::clerk.folded AS v', 'SELECT ''{x}''::clerk.checked[] AS v', 'SELECT ''(x)''::clerk.pair AS v', 'SELECT * FROM clerk.look',
                             'SELECT clerk.pure() AS v', 'SELECT clerk.pure_text() AS v', 'SELECT 1 AS v WHERE clerk.pure()', 'SELECT ROW(''x'')::clerk.pair AS v',
                             'VALUES (''{{x}}''::clerk.checked[])', 'EXPLAIN SELECT ''{x}''::clerk.checked[] AS v'] LOOP
        FOR r IN 1..2 LOOP
            n := n + 1;
            BEGIN
                PERFORM aidb.create_sql_tool('tool_' || n, 'd', s, '[]', read_only => r = 1);
                PERFORM aidb.create_agent('agent_' || n, 'i', 'reads', tools => ARRAY['tool_' || n], purpose => 'guest');
                PERFORM * FROM aidb.tool_allowed('agent_' || n, 'tool_' || n);
            EXCEPTION WHEN OTHERS THEN NULL;
            END;
        END LOOP;
    END LOOP;
    BEGIN PERFORM aidb.create_sql_tool('typed', 'd', 'SELECT ${a} AS v', '[{"name": "a", "type": "clerk.folded", "description": "x"}]'); EXCEPTION WHEN OTHERS THEN NULL; END;
END $$
-- attack:
SELECT 1 AS one
-- check:
SELECT bool_or(t.allowed IS NOT NULL) FROM aidb.agents a, LATERAL aidb.tool_matrix(a.name) t WHERE a.name LIKE 'agent%'
-- check:
SELECT count(*) > 5 FROM aidb.agents WHERE name LIKE 'agent%'
-- check:
SELECT judge.all_fine('before') AND NOT rolsuper AND NOT EXISTS (SELECT FROM safe.breach WHERE who <> 'clerk') FROM pg_roles WHERE rolname = 'clerk'
