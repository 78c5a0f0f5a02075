-- Knowing beforehand: what a role could do if a tool ran as it, what a purpose still lacks, and what would run as whom.
-- Nothing here runs a tool, and nothing changes.

CREATE OR REPLACE FUNCTION aidb_internal.check_role(role text)
RETURNS TABLE (severity text, finding text, advice text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    WITH r AS (
        SELECT a.* FROM pg_roles a WHERE a.rolname = check_role.role
    ), findings (n, severity, finding, advice) AS (
        SELECT 0, 'error', format('role %L does not exist', check_role.role), format('CREATE ROLE %I NOLOGIN;', check_role.role)
        WHERE NOT EXISTS (SELECT FROM r)
        UNION ALL
        SELECT 1, 'error', 'is a superuser: nothing confines it', format('ALTER ROLE %I NOSUPERUSER;', r.rolname) FROM r WHERE r.rolsuper
        UNION ALL
        SELECT 1, 'error', 'bypasses row-level security', format('ALTER ROLE %I NOBYPASSRLS;', r.rolname) FROM r WHERE r.rolbypassrls
        UNION ALL
        SELECT 1, 'error', 'may create roles', format('ALTER ROLE %I NOCREATEROLE;', r.rolname) FROM r WHERE r.rolcreaterole
        UNION ALL
        SELECT 1, 'error', 'may replicate', format('ALTER ROLE %I NOREPLICATION;', r.rolname) FROM r WHERE r.rolreplication
        UNION ALL
        SELECT 1, 'error', format('is a member of %I, which reaches outside the database', p.rolname),
               format('REVOKE %I FROM %I;', p.rolname, r.rolname)
        FROM r, pg_roles p
        WHERE p.rolname IN ('pg_execute_server_program', 'pg_read_server_files', 'pg_write_server_files', 'pg_signal_backend')
          AND NOT r.rolsuper AND pg_has_role(r.oid, p.oid, 'MEMBER')
        UNION ALL
        -- inherited or not, as deep as memberships go: what a tool call refuses (c_shim/identity.c)
        SELECT 1, 'error', format('is a member of superuser %I', p.rolname), format('REVOKE %I FROM %I;', p.rolname, r.rolname)
        FROM r, pg_roles p
        WHERE p.rolsuper AND NOT r.rolsuper AND p.oid IN (
            WITH RECURSIVE above AS (
                SELECT m.roleid FROM pg_auth_members m WHERE m.member = r.oid
                UNION
                SELECT m.roleid FROM above a JOIN pg_auth_members m ON m.member = a.roleid
            )
            SELECT a.roleid FROM above a)
        UNION ALL
        SELECT 2, 'warning', format('may grant role %I to others (ADMIN OPTION)', g.rolname),
               format('REVOKE ADMIN OPTION FOR %I FROM %I;', g.rolname, r.rolname)
        FROM r JOIN pg_auth_members m ON m.member = r.oid AND m.admin_option JOIN pg_roles g ON g.oid = m.roleid
        UNION ALL
        SELECT 2, 'warning', 'can log in with a password: whoever knows it is outside the sandbox', format('ALTER ROLE %I NOLOGIN;', r.rolname)
        FROM r WHERE r.rolcanlogin AND NOT r.rolsuper
        UNION ALL
        SELECT 2, 'warning', 'may create schemas and extensions in this database',
               format('REVOKE CREATE ON DATABASE %I FROM %I;', current_database(), r.rolname)
        FROM r WHERE NOT r.rolsuper AND has_database_privilege(r.oid, current_database(), 'CREATE')
        UNION ALL
        SELECT 4, 'notice', 'may create temporary objects (a tool call may not; a session of the role may)',
               format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC;', current_database())
        FROM r WHERE NOT r.rolsuper AND has_database_privilege(r.oid, current_database(), 'TEMPORARY')
        UNION ALL
        SELECT 2, 'warning', format('may create objects in schema %I, where others may find them', n.nspname),
               format('REVOKE CREATE ON SCHEMA %I FROM %I;', n.nspname, r.rolname)
        FROM r, pg_namespace n
        WHERE NOT r.rolsuper AND n.nspname !~ '^pg_' AND n.nspowner <> r.oid AND has_schema_privilege(r.oid, n.oid, 'CREATE')
        UNION ALL
        SELECT 3, 'warning', format('owns %s: code of its triggers, defaults, policies and checks runs with the rights of whoever uses it', o.what),
               'Give the objects to a role that no tool runs as.'
        FROM r, LATERAL (
            SELECT format('%s tables, views or sequences', count(*)) AS what FROM pg_class c WHERE c.relowner = r.oid HAVING count(*) > 0
            UNION ALL
            SELECT format('%s functions', count(*)) FROM pg_proc p WHERE p.proowner = r.oid HAVING count(*) > 0
        ) o
        WHERE NOT r.rolsuper
        UNION ALL
        SELECT 3, 'warning', format('may put triggers on %s tables of others', count(*)), format('REVOKE TRIGGER ON ... FROM %I;', (SELECT q.rolname FROM r q))
        FROM r, pg_class c
        WHERE c.relkind IN ('r', 'p', 'v', 'f') AND c.relowner <> r.oid AND NOT r.rolsuper
          AND c.relnamespace NOT IN (SELECT n.oid FROM pg_namespace n WHERE n.nspname ~ '^pg_' OR n.nspname = 'information_schema')
          AND has_table_privilege(r.oid, c.oid, 'TRIGGER')
        HAVING count(*) > 0
        UNION ALL
        SELECT 3, 'warning', format('may call %s, which reaches other servers or files', f.oid::regprocedure),
               format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC;', f.oid::regprocedure)
        FROM r, pg_proc f
        WHERE NOT r.rolsuper AND f.prolang IN (SELECT l.oid FROM pg_language l WHERE l.lanname IN ('c', 'internal'))
          AND f.prosrc ~ '^(dblink|lo_|be_lo_(import|export)|pg_read_(binary_)?file|pg_ls_dir|postgres_fdw_disconnect)'
          AND has_function_privilege(r.oid, f.oid, 'EXECUTE') AND f.prosrc !~ '^dblink_(get_|is_|error|fdw)' AND f.proname <> 'pg_read_file_old'
    )
    SELECT f.severity, f.finding, f.advice FROM findings f ORDER BY f.n, f.finding;
END;
COMMENT ON FUNCTION aidb_internal.check_role(text) IS 'Behind aidb.check_role.';
REVOKE ALL ON FUNCTION aidb_internal.check_role(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.check_role(role text)
RETURNS TABLE (severity text, finding text, advice text)
LANGUAGE c STABLE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.check_role(text) IS
    'What makes a role a poor choice for tools to run as: one row for each finding, worst first (error: tools are refused; warning: it could plant code for others, or reach outside; notice: good to know), with the statement that mends it. No rows: nothing was found. Privileges: aidb_governance, aidb_auditor.';
REVOKE ALL ON FUNCTION aidb.check_role(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.check_role(text) TO aidb_governance, aidb_auditor;

-- What a role lacks for a SQL tool; problem instead, when the statement cannot be analysed (any more).
CREATE OR REPLACE FUNCTION aidb_internal.tool_missing(tool aidb_internal.sql_tools, role oid)
RETURNS TABLE (lack text, problem text)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN QUERY SELECT m, NULL::text FROM unnest(aidb_internal.missing_privileges(tool.statement, tool.types, role)) m;
EXCEPTION WHEN syntax_error_or_access_rule_violation OR invalid_schema_name THEN
    RETURN QUERY SELECT NULL::text, SQLERRM;
END
$$;
COMMENT ON FUNCTION aidb_internal.tool_missing(aidb_internal.sql_tools, oid) IS 'The privileges that a role lacks for a SQL tool.';
REVOKE ALL ON FUNCTION aidb_internal.tool_missing(aidb_internal.sql_tools, oid) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.check_purpose(name text)
RETURNS TABLE (severity text, agent text, tool text, finding text, advice text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    WITH p AS (
        SELECT q.*, r.oid AS role_now FROM aidb_internal.purpose_registry q LEFT JOIN pg_roles r ON r.rolname = q.role
        WHERE q.name = check_purpose.name
    ), findings (n, severity, agent, tool, finding, advice) AS (
        SELECT 0, 'error', NULL::text, NULL::text, format('purpose %L is not registered', check_purpose.name), 'Call aidb.create_purpose.'
        WHERE NOT EXISTS (SELECT FROM p)
        UNION ALL
        SELECT 0, 'error', NULL, NULL, format('purpose %L has been retired', p.name), 'aidb.create_purpose revives it.' FROM p WHERE p.deleted_at IS NOT NULL
        UNION ALL
        SELECT 1, 'error', NULL, NULL, format('role %L is not the one that the purpose was set to: it was dropped and created anew', p.role),
               format('SELECT aidb.update_purpose(%L, role => %L);', p.name, p.role)
        FROM p WHERE p.role_oid IS NOT NULL AND p.role_now IS NOT NULL AND p.role_oid::oid <> p.role_now
        UNION ALL
        SELECT 2, c.severity, NULL, NULL, format('role %I: %s', p.role, c.finding), c.advice
        FROM p, aidb_internal.check_role(p.role) c
        WHERE NOT (p.allow_elevated AND c.severity = 'error' AND p.role_now IS NOT NULL)
        UNION ALL
        SELECT 3, 'warning', NULL, NULL, format('role %I has no members: only superusers may call agents with this purpose', p.role),
               format('GRANT %I TO ...;', p.role)
        FROM p WHERE p.role_now IS NOT NULL AND NOT EXISTS (SELECT FROM pg_auth_members m WHERE m.roleid = p.role_now)
        UNION ALL
        SELECT 4, 'notice', NULL, NULL, 'no agent has this purpose', NULL
        FROM p WHERE NOT EXISTS (SELECT FROM aidb_internal.agents a WHERE a.purpose = p.name)
        UNION ALL
        SELECT 5, 'error', a.name, t.name, format('role %I may not use tool %s', p.role, t.name),
               format('GRANT EXECUTE ON FUNCTION %s TO %I;', t.function, p.role)
        FROM p
        JOIN aidb_internal.agents a ON a.purpose = p.name
        JOIN aidb_internal.native_tools t ON t.name = ANY (a.tools) AND t.name <> 'sleep'
        WHERE p.role_now IS NOT NULL AND NOT has_function_privilege(p.role_now, t.function::regprocedure, 'EXECUTE')
        UNION ALL
        SELECT 5, 'error', a.name, u.name, format('tool %s does not exist', u.name), format('Remove it with aidb.update_agent(%L, tools => ...).', a.name)
        FROM p
        JOIN aidb_internal.agents a ON a.purpose = p.name
        CROSS JOIN LATERAL unnest(a.tools) AS u (name)
        WHERE NOT EXISTS (SELECT FROM aidb.tools t WHERE t.name = u.name)
        UNION ALL
        SELECT 6, 'error', a.name, s.name, CASE WHEN l.lack IS NULL THEN format('the statement cannot be checked: %s', l.problem) ELSE format('role %I lacks %s', p.role, l.lack) END,
               CASE WHEN l.lack IS NULL THEN 'Correct it with aidb.update_sql_tool.' ELSE format('GRANT %s TO %I;', l.lack, p.role) END
        FROM p
        JOIN aidb_internal.agents a ON a.purpose = p.name
        JOIN aidb_internal.sql_tools s ON s.name = ANY (a.tools)
        CROSS JOIN LATERAL aidb_internal.tool_missing(s, p.role_now) AS l
        WHERE p.role_now IS NOT NULL
    )
    SELECT f.severity, f.agent, f.tool, f.finding, f.advice FROM findings f
    ORDER BY CASE f.severity WHEN 'error' THEN 1 WHEN 'warning' THEN 2 ELSE 3 END, f.n, f.agent, f.tool, f.finding;
END;
COMMENT ON FUNCTION aidb_internal.check_purpose(text) IS 'Behind aidb.check_purpose.';
REVOKE ALL ON FUNCTION aidb_internal.check_purpose(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.check_purpose(name text)
RETURNS TABLE (severity text, agent text, tool text, finding text, advice text)
LANGUAGE c STABLE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.check_purpose(text) IS
    'What a purpose still lacks, worst first: for each tool of each agent that carries it the GRANT that is missing, and what aidb.check_role says of its role. advice is the statement that mends a finding. No rows: nothing was found. Of run_sql_query and execute_sql, which may touch any table, only the right to use them is looked at. Privileges: aidb_governance, aidb_auditor, aidb_users.';
REVOKE ALL ON FUNCTION aidb.check_purpose(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.check_purpose(text) TO aidb_governance, aidb_auditor, aidb_users;

