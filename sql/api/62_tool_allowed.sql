-- Knowing beforehand what a tool may do. Nothing here runs a tool: privileges are found by analysing its statement.

-- What a role lacks for a SQL tool: an array of privileges, or a text where the statement names something that is not there.
CREATE OR REPLACE FUNCTION aidb_internal.tool_lacks(statement text, types text[], role oid)
RETURNS jsonb
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN to_jsonb(aidb_internal.missing_privileges(statement, types, role));
EXCEPTION
    WHEN syntax_error_or_access_rule_violation OR invalid_catalog_name OR invalid_schema_name THEN
        RETURN to_jsonb(SQLERRM);
END
$$;
COMMENT ON FUNCTION aidb_internal.tool_lacks(text, text[], oid) IS
    'The privileges that a role lacks for a statement, or why that cannot be said.';
REVOKE ALL ON FUNCTION aidb_internal.tool_lacks(text, text[], oid) FROM PUBLIC;

-- All at once: an agent may have hundreds of tools, and its model waits for the list. off says that the class stops the
-- tool for whoever calls.
CREATE OR REPLACE FUNCTION aidb_internal.tools_allowed_as(names text[], role name, caller name, purpose text)
RETURNS TABLE (name text, allowed boolean, reason text, missing text[], off boolean)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    who constant oid := (SELECT r.oid FROM pg_roles r WHERE r.rolname = role);
    actions constant boolean := current_setting('aidb.actions')::boolean;
    unclassified constant text := current_setting('aidb.unclassified_tools');
    allowed_servers constant text[] := (SELECT p.allowed_servers FROM aidb_internal.purpose_registry p WHERE p.name = purpose);
    as_superuser constant boolean := purpose IS NULL AND (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = caller)
        AND NOT coalesce(nullif(current_setting('aidb.allow_superuser_tools', true), '')::boolean, false);
    lacks jsonb;
BEGIN
    BEGIN
        SELECT jsonb_object_agg(s.name, aidb_internal.missing_privileges(s.statement, s.types, who)) INTO lacks
        FROM aidb_internal.sql_tools s WHERE s.name = ANY (names) AND who IS NOT NULL;
    EXCEPTION
        WHEN syntax_error_or_access_rule_violation OR invalid_catalog_name OR invalid_schema_name THEN
            SELECT jsonb_object_agg(s.name, aidb_internal.tool_lacks(s.statement, s.types, who)) INTO lacks
            FROM aidb_internal.sql_tools s WHERE s.name = ANY (names);
    END;
    RETURN QUERY
        SELECT u.name, x.reason IS NULL, x.reason, v.missing, c.off IS NOT NULL
        FROM unnest(names) WITH ORDINALITY AS u (name, n)
        LEFT JOIN aidb.tools t ON t.name = u.name
        LEFT JOIN aidb_internal.native_tools f ON f.name = u.name
        LEFT JOIN aidb_internal.mcp_tools m ON m.name = u.name AND m.listed
        CROSS JOIN LATERAL (
            SELECT CASE
                WHEN t.name IS NULL THEN NULL
                WHEN NOT actions AND t.risk IS DISTINCT FROM 'read' THEN 'actions are switched off (aidb.actions)'
                WHEN t.risk = 'forbidden' THEN format('tool %s is forbidden', aidb_internal.quoted(u.name))
                WHEN t.risk IS NULL AND unclassified = 'deny' THEN format('tool %s is not classified', aidb_internal.quoted(u.name))
            END AS off
            OFFSET 0 -- once, not at each place that names it
        ) c
        CROSS JOIN LATERAL (
            SELECT CASE
                WHEN lacks -> u.name = '[]' THEN '{}'
                WHEN jsonb_typeof(lacks -> u.name) = 'array' THEN ARRAY(SELECT jsonb_array_elements_text(lacks -> u.name))
                -- without a function it needs no grant: what it leads to is checked by itself
                WHEN f.function IS NOT NULL AND u.name <> 'sleep' AND who IS NOT NULL AND NOT has_function_privilege(who, f.function::regprocedure, 'EXECUTE')
                    AND NOT (u.name = 'execute_sql' AND purpose IS NULL)
                    THEN ARRAY['EXECUTE on function ' || f.function]
                ELSE '{}'
            END AS missing
            OFFSET 0
        ) v
        CROSS JOIN LATERAL (
            SELECT CASE
                WHEN who IS NULL THEN format('role "%s" does not exist', role)
                WHEN jsonb_typeof(lacks -> u.name) = 'string' THEN lacks ->> u.name
                WHEN c.off IS NOT NULL THEN c.off
                WHEN t.name IS NULL THEN format('tool %s not found in aidb.tools', aidb_internal.quoted(u.name))
                WHEN m.name IS NOT NULL AND NOT m.server = ANY (allowed_servers)
                    THEN format('MCP server %s is not allowed for purpose %s', aidb_internal.quoted(m.server), aidb_internal.quoted(purpose))
                WHEN m.new_hash IS NOT NULL
                    THEN format('tool %s is in quarantine: MCP server %s has changed its definition', aidb_internal.quoted(u.name), aidb_internal.quoted(m.server))
                WHEN u.name = 'execute_sql' AND purpose IS NULL THEN 'tool ''execute_sql'' needs an agent with a purpose'
                WHEN cardinality(v.missing) > 0 THEN format('role %s lacks privileges', aidb_internal.quoted(role::text))
                WHEN as_superuser AND m.name IS NULL AND NOT t.read_only THEN 'tools that write do not run as a superuser'
            END AS reason
            OFFSET 0
        ) x
        ORDER BY u.n;
END
$$;
COMMENT ON FUNCTION aidb_internal.tools_allowed_as(text[], name, name, text) IS
    'Whether a role may use each of these tools, and what it lacks.';
REVOKE ALL ON FUNCTION aidb_internal.tools_allowed_as(text[], name, name, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.tool_allowed_as(tool_name text, role name, caller name, purpose text)
RETURNS TABLE (allowed boolean, reason text, missing text[])
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT t.allowed, t.reason, t.missing FROM aidb_internal.tools_allowed_as(ARRAY[tool_name], role, caller, purpose) t;
END;
COMMENT ON FUNCTION aidb_internal.tool_allowed_as(text, name, name, text) IS
    'Whether a role may use a tool, and what it lacks.';
REVOKE ALL ON FUNCTION aidb_internal.tool_allowed_as(text, name, name, text) FROM PUBLIC;

-- The role that an agent's tools run as for a caller, or why they do not run at all.
CREATE OR REPLACE FUNCTION aidb_internal.acting_role(agent aidb_internal.agents, caller name, OUT role name, OUT refusal text)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    p aidb_internal.purpose_registry;
BEGIN
    role := caller;
    IF NOT agent.enabled THEN
        refusal := format('agent ''%s'' is disabled', agent.name);
        RETURN;
    END IF;
    IF agent.purpose IS NULL THEN
        RETURN;
    END IF;
    SELECT * INTO p FROM aidb_internal.purpose_registry q WHERE q.name = agent.purpose;
    IF NOT FOUND THEN
        refusal := format('purpose ''%s'' is not registered', agent.purpose);
        RETURN;
    END IF;
    role := p.role;
    refusal := CASE
        WHEN p.deleted_at IS NOT NULL THEN format('purpose ''%s'' has been retired', agent.purpose)
        WHEN NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = p.role) THEN format('role ''%s'' does not exist', p.role)
        WHEN p.role_oid IS NOT NULL AND p.role_oid::oid <> (SELECT r.oid FROM pg_roles r WHERE r.rolname = p.role)
            THEN format('role ''%s'' is not the one that the purpose was set to', p.role)
        WHEN NOT pg_has_role(caller, p.role, 'MEMBER') THEN format('current user is not a member of role ''%s''', p.role)
        WHEN NOT p.allow_elevated THEN
            (SELECT format('role ''%s'' %s', p.role, c.finding) FROM aidb_internal.check_role(p.role) c WHERE c.severity = 'error' LIMIT 1)
    END;
END
$$;
COMMENT ON FUNCTION aidb_internal.acting_role(aidb_internal.agents, name) IS
    'What an agent''s tools would run as if that role called it.';
REVOKE ALL ON FUNCTION aidb_internal.acting_role(aidb_internal.agents, name) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.agent_row(name text)
RETURNS aidb_internal.agents
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    a aidb_internal.agents;
BEGIN
    SELECT * INTO a FROM aidb_internal.agents g WHERE g.name = agent_row.name;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'agent % not found', aidb_internal.quoted(name) USING ERRCODE = 'undefined_object';
    END IF;
    RETURN a;
END
$$;
COMMENT ON FUNCTION aidb_internal.agent_row(text) IS 'The agent of that name; raises when there is none.';
REVOKE ALL ON FUNCTION aidb_internal.agent_row(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.offered_tools(agent aidb_internal.agents)
RETURNS text[]
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT agent.tools || ARRAY(
        SELECT c.name FROM (VALUES (1, 'sleep', true), (2, 'describe_actions', false), (3, 'act', false)) AS c (n, name, always)
        WHERE (c.always OR agent.tool_exposure = 'catalog') AND c.name <> ALL (agent.tools) ORDER BY c.n);
END;
COMMENT ON FUNCTION aidb_internal.offered_tools(aidb_internal.agents) IS
    'The tools that an agent lists, and those that its model is offered besides.';
REVOKE ALL ON FUNCTION aidb_internal.offered_tools(aidb_internal.agents) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.tool_allowed(agent_name text, tool_name text)
RETURNS TABLE (allowed boolean, reason text, missing text[])
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    a aidb_internal.agents := aidb_internal.agent_row(agent_name);
    caller constant name := aidb_internal.caller();
    acting record := aidb_internal.acting_role(a, caller);
BEGIN
    IF tool_name <> ALL (aidb_internal.offered_tools(a)) THEN
        acting.refusal := format('tool %s is not one of the agent''s', aidb_internal.quoted(tool_name));
    END IF;
    IF acting.refusal IS NOT NULL THEN
        RETURN QUERY SELECT false, acting.refusal::text, '{}'::text[];
    ELSE
        RETURN QUERY SELECT * FROM aidb_internal.tool_allowed_as(tool_name, acting.role, caller, a.purpose);
    END IF;
END
$$;
COMMENT ON FUNCTION aidb_internal.tool_allowed(text, text) IS 'Behind aidb.tool_allowed.';
REVOKE ALL ON FUNCTION aidb_internal.tool_allowed(text, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.tool_allowed(agent_name text, tool_name text)
RETURNS TABLE (allowed boolean, reason text, missing text[])
LANGUAGE c STABLE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.tool_allowed(text, text) IS
    'Whether the present user could use a tool of an agent now: one row. missing: each privilege that the role lacks, found by analysing the tool''s statement under it, without running it; what views, triggers and functions do beneath is not looked at. Raises 42704 when there is no such agent. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.tool_allowed(text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.tool_allowed(text, text) TO aidb_users;

-- A role that cannot log in may call, too: after SET ROLE.
CREATE OR REPLACE FUNCTION aidb_internal.tool_matrix(agent_name text)
RETURNS TABLE (tool text, caller text, runs_as text, allowed boolean, reason text, missing text[])
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT t.tool, r.rolname::text, w.role::text, coalesce(t.allowed, false), coalesce(w.refusal, t.reason), coalesce(t.missing, '{}')
    FROM aidb_internal.agent_row(agent_name) a
    CROSS JOIN LATERAL aidb_internal.offered_tools(a) o
    CROSS JOIN pg_roles r
    CROSS JOIN LATERAL aidb_internal.acting_role(a, r.rolname) w
    -- one look at all tools for each role
    CROSS JOIN LATERAL ROWS FROM (unnest(o), aidb_internal.tools_allowed_as(CASE WHEN w.refusal IS NULL THEN o ELSE '{}' END, w.role, r.rolname, a.purpose))
        WITH ORDINALITY AS t (tool, name, allowed, reason, missing, off, n)
    WHERE has_function_privilege(r.oid, 'aidb.agent_converse(text, text, text, boolean, jsonb, boolean)'::regprocedure, 'EXECUTE')
    ORDER BY t.n, r.rolname;
END;
COMMENT ON FUNCTION aidb_internal.tool_matrix(text) IS 'Behind aidb.tool_matrix.';
REVOKE ALL ON FUNCTION aidb_internal.tool_matrix(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.tool_matrix(agent_name text)
RETURNS TABLE (tool text, caller text, runs_as text, allowed boolean, reason text, missing text[])
LANGUAGE c STABLE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.tool_matrix(text) IS
    'aidb.tool_allowed for every tool of an agent and every role that may call agents, by itself or after SET ROLE: one row for each pair. For a role that this agent would refuse, such as one that is no member of its purpose''s role, the reason is in each row. The catalog shows privileges to everybody, and so does this. Raises 42704 when there is no such agent. Privileges: aidb_users, aidb_governance, aidb_auditor.';
REVOKE ALL ON FUNCTION aidb.tool_matrix(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.tool_matrix(text) TO aidb_users, aidb_governance, aidb_auditor;

-- Explaining an agent.
CREATE OR REPLACE FUNCTION aidb_internal.explain_agent(name text)
RETURNS TABLE (tool text, read_only boolean, runs_as text, allowed boolean, reason text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT u.name, t.read_only, w.role::text, coalesce(x.allowed, false) AND m.name IS NOT NULL,
           coalesce(w.refusal, CASE WHEN m.name IS NULL THEN 'Model not found: ' || a.model END,
                    x.reason || CASE WHEN cardinality(x.missing) > 0 THEN ': ' || array_to_string(x.missing, ', ') ELSE '' END)
    FROM aidb_internal.agent_row(explain_agent.name) a
    CROSS JOIN LATERAL aidb_internal.acting_role(a, aidb_internal.caller()::name) w
    CROSS JOIN LATERAL unnest(aidb_internal.offered_tools(a)) WITH ORDINALITY AS u (name, n)
    LEFT JOIN aidb_internal.models m ON m.name = a.model
    LEFT JOIN aidb.tools t ON t.name = u.name
    LEFT JOIN LATERAL aidb_internal.tool_allowed_as(u.name, w.role, aidb_internal.caller()::name, a.purpose) x ON w.refusal IS NULL
    ORDER BY u.n;
END;
COMMENT ON FUNCTION aidb_internal.explain_agent(text) IS 'Behind aidb.explain_agent.';
REVOKE ALL ON FUNCTION aidb_internal.explain_agent(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.explain_agent(name text)
RETURNS TABLE (tool text, read_only boolean, runs_as text, allowed boolean, reason text)
LANGUAGE c STABLE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.explain_agent(text) IS
    'What an agent''s tools would run as if the present user called it now, and whether they may: one row a tool; reason says what is missing. Nothing is run; of run_sql_query and execute_sql, which may touch any table, only the right to use them is looked at. Raises 42704 when there is no such agent. Privileges: aidb_users, aidb_governance, aidb_auditor.';
REVOKE ALL ON FUNCTION aidb.explain_agent(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.explain_agent(text) TO aidb_users, aidb_governance, aidb_auditor;
