-- The tools of MCP servers: storing what a server lists, approving what changed, and reading them.

-- A name that no tool of another kind, and none of another server, has.
CREATE OR REPLACE FUNCTION aidb_internal.mcp_tool_name(server text, tool text)
RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT c.name
    FROM unnest(ARRAY[$2, $1 || '.' || $2]) WITH ORDINALITY c (name, n)
    WHERE NOT EXISTS (SELECT FROM aidb_internal.native_tools t WHERE t.name = c.name)
      AND NOT EXISTS (SELECT FROM aidb_internal.sql_tools t WHERE t.name = c.name)
      AND NOT EXISTS (SELECT FROM aidb_internal.mcp_tools t WHERE t.name = c.name AND (t.server, t.tool) <> ($1, $2))
    ORDER BY c.n LIMIT 1
$$;
COMMENT ON FUNCTION aidb_internal.mcp_tool_name(text, text) IS
    'The name that a server''s tool gets: its own, server.tool where that is taken, NULL where both are.';
REVOKE ALL ON FUNCTION aidb_internal.mcp_tool_name(text, text) FROM PUBLIC;

-- definitions: array of {tool, description, schema, output, hash}. Called by whoever has fetched it, which may be in the middle of an
-- agent's call: then another session that is at it is not waited for (wait false gives NULL), because its transaction may
-- last as long as its model thinks.
CREATE OR REPLACE FUNCTION aidb_internal.store_mcp_tools(server text, definitions jsonb, info jsonb, wait boolean)
RETURNS integer
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    s aidb_internal.mcp_servers;
    old aidb_internal.mcp_tools;
    d record;
    alias text;
BEGIN
    IF wait THEN
        SELECT * INTO s FROM aidb_internal.mcp_servers m WHERE m.name = server FOR UPDATE;
    ELSE
        SELECT * INTO s FROM aidb_internal.mcp_servers m WHERE m.name = server FOR UPDATE SKIP LOCKED;
    END IF;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    FOR d IN
        SELECT e ->> 'tool' AS tool, e ->> 'description' AS description, e -> 'schema' AS schema, e -> 'output' AS output,
               e ->> 'hash' AS hash
        FROM jsonb_array_elements(definitions) WITH ORDINALITY x (e, n)
        WHERE s.tool_filter IS NULL OR e ->> 'tool' = ANY (s.tool_filter)
        ORDER BY n
    LOOP
        SELECT * INTO old FROM aidb_internal.mcp_tools t WHERE t.server = s.name AND t.tool = d.tool;
        IF NOT FOUND OR NOT old.listed THEN
            alias := aidb_internal.mcp_tool_name(s.name, d.tool);
            IF old.tool IS NULL AND alias IS NOT NULL THEN
                -- Another session may be about to commit a tool of that name: it is waited for, and not seen until then.
                FOREACH alias IN ARRAY ARRAY[alias, s.name || '.' || d.tool, NULL] LOOP
                    EXIT WHEN alias IS NULL;
                    INSERT INTO aidb_internal.mcp_tools (server, tool, name, description, input_schema, output_schema, hash, approved_by)
                    VALUES (s.name, d.tool, alias, d.description, d.schema, d.output, d.hash, aidb_internal.caller())
                    ON CONFLICT ON CONSTRAINT mcp_tools_name_key DO NOTHING;
                    EXIT WHEN FOUND;
                END LOOP;
            END IF;
            IF alias IS NULL THEN
                RAISE WARNING 'tool % of MCP server % is left out: its name is taken', aidb_internal.quoted(d.tool), aidb_internal.quoted(s.name);
                CONTINUE;
            ELSIF alias <> d.tool AND alias IS DISTINCT FROM old.name THEN
                RAISE NOTICE 'tool % of MCP server % is named %: the name is taken', aidb_internal.quoted(d.tool), aidb_internal.quoted(s.name), aidb_internal.quoted(alias);
            END IF;
        END IF;
        IF old.tool IS NULL THEN
            NULL; -- it is in
        ELSIF old.hash = d.hash THEN
            UPDATE aidb_internal.mcp_tools t SET
                listed = true, name = CASE WHEN old.listed THEN t.name ELSE alias END,
                new_description = NULL, new_input_schema = NULL, new_output_schema = NULL, new_hash = NULL, changed_at = NULL
            WHERE t.server = s.name AND t.tool = d.tool AND NOT (t.listed AND t.new_hash IS NULL);
        ELSIF old.new_hash IS DISTINCT FROM d.hash OR NOT old.listed THEN
            UPDATE aidb_internal.mcp_tools t SET
                listed = true, name = CASE WHEN old.listed THEN t.name ELSE alias END,
                new_description = d.description, new_input_schema = d.schema, new_output_schema = d.output, new_hash = d.hash,
                changed_at = clock_timestamp()
            WHERE t.server = s.name AND t.tool = d.tool;
            RAISE WARNING 'tool % is in quarantine: MCP server % has changed its definition', aidb_internal.quoted(old.name), aidb_internal.quoted(s.name)
                USING HINT = 'See the view aidb.mcp_tools; aidb.approve_mcp_tool accepts the new definition.';
        END IF;
    END LOOP;
    UPDATE aidb_internal.mcp_tools t SET listed = false
    WHERE t.server = s.name AND t.listed
      AND (NOT EXISTS (SELECT FROM jsonb_array_elements(definitions) e WHERE e ->> 'tool' = t.tool)
           OR NOT coalesce(t.tool = ANY (s.tool_filter), true));
    UPDATE aidb_internal.mcp_servers m SET fetched_at = clock_timestamp(), server_info = info WHERE m.name = s.name;
    RETURN (SELECT count(*) FROM aidb_internal.mcp_tools t WHERE t.server = s.name AND t.listed);
END
$$;
COMMENT ON FUNCTION aidb_internal.store_mcp_tools(text, jsonb, jsonb, boolean) IS
    'Stores what a server lists and returns how many of its tools there are now.';
REVOKE ALL ON FUNCTION aidb_internal.store_mcp_tools(text, jsonb, jsonb, boolean) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.judged_mcp_tool(name text, what text)
RETURNS aidb_internal.mcp_tools
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    t aidb_internal.mcp_tools;
    owner regrole;
BEGIN
    SELECT m.* INTO t FROM aidb_internal.mcp_tools m WHERE m.name = judged_mcp_tool.name FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'MCP tool % not found', aidb_internal.quoted(judged_mcp_tool.name) USING ERRCODE = 'undefined_object';
    END IF;
    SELECT s.owner INTO owner FROM aidb_internal.mcp_servers s WHERE s.name = t.server;
    IF NOT aidb_internal.caller_owns(owner) AND NOT pg_has_role(aidb_internal.caller(), 'aidb_governance', 'MEMBER') THEN
        RAISE EXCEPTION 'MCP server % is owned by role %; only its owner or a member of aidb_governance may % its tools',
            aidb_internal.quoted(t.server), aidb_internal.quoted(pg_get_userbyid(owner)::text), what USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN t;
END
$$;
COMMENT ON FUNCTION aidb_internal.judged_mcp_tool(text, text) IS
    'The tool of that name of an MCP server, locked; raises when there is none, or the caller neither owns the server nor governs.';
REVOKE ALL ON FUNCTION aidb_internal.judged_mcp_tool(text, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.approve_mcp_tool(name text, hash text)
RETURNS text
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    t aidb_internal.mcp_tools := aidb_internal.judged_mcp_tool(name, 'approve');
BEGIN
    IF t.new_hash IS NULL THEN
        RAISE EXCEPTION 'tool % is not in quarantine', aidb_internal.quoted(name) USING ERRCODE = 'object_not_in_prerequisite_state';
    ELSIF hash IS NOT NULL AND hash <> t.new_hash THEN
        RAISE EXCEPTION 'the definition of tool % that waits for approval is another one', aidb_internal.quoted(name)
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Look at aidb.mcp_tools again.';
    END IF;
    UPDATE aidb_internal.mcp_tools m SET
        description = t.new_description, input_schema = t.new_input_schema, output_schema = t.new_output_schema, hash = t.new_hash,
        new_description = NULL, new_input_schema = NULL, new_output_schema = NULL, new_hash = NULL, changed_at = NULL, idempotent = false,
        approved_at = clock_timestamp(), approved_by = aidb_internal.caller()
    WHERE m.server = t.server AND m.tool = t.tool;
    RETURN name;
END
$$;
COMMENT ON FUNCTION aidb_internal.approve_mcp_tool(text, text) IS 'Behind aidb.approve_mcp_tool.';
REVOKE ALL ON FUNCTION aidb_internal.approve_mcp_tool(text, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.approve_mcp_tool(name text, hash text DEFAULT NULL)
RETURNS text
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.approve_mcp_tool(text, text) IS
    'Accepts the changed definition of an MCP server''s tool, which then can be used again, and returns the tool''s name. What waits is in aidb.mcp_tools (new_description, new_input_schema, new_output_schema). hash: the new_hash that was looked at; when another one waits meanwhile, nothing is approved. Raises 42704 when there is no such tool, 55000 when nothing waits or it is another definition, and 42501 for all but the server''s owner and members of aidb_governance. Privileges: aidb_users, aidb_governance.';
REVOKE ALL ON FUNCTION aidb.approve_mcp_tool(text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.approve_mcp_tool(text, text) TO aidb_users, aidb_governance;

-- A person's word, not the server's: its own idempotentHint is not looked at.
CREATE OR REPLACE FUNCTION aidb_internal.declare_idempotent(name text, idempotent boolean)
RETURNS text
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    t aidb_internal.mcp_tools := aidb_internal.judged_mcp_tool(name, 'say this of');
BEGIN
    UPDATE aidb_internal.mcp_tools m SET idempotent = coalesce(declare_idempotent.idempotent, false)
    WHERE m.server = t.server AND m.tool = t.tool;
    RETURN name;
END
$$;
COMMENT ON FUNCTION aidb_internal.declare_idempotent(text, boolean) IS 'Behind aidb.declare_idempotent.';
REVOKE ALL ON FUNCTION aidb_internal.declare_idempotent(text, boolean) FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb.declare_idempotent(name text, idempotent boolean DEFAULT true)
RETURNS text
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_owner_call';
COMMENT ON FUNCTION aidb.declare_idempotent(text, boolean) IS
    'Says that calling a tool of an MCP server twice with the same arguments does what calling it once does; false takes that back, and so does aidb.approve_mcp_tool. Such a tool is called again when a background task, or a confirmation, was interrupted after the call had been sent; any other is not, because nobody knows whether it was carried out. Returns the tool''s name. Raises 42704 when there is no such tool, and 42501 for all but the server''s owner and members of aidb_governance. Privileges: aidb_users, aidb_governance.';
REVOKE ALL ON FUNCTION aidb.declare_idempotent(text, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.declare_idempotent(text, boolean) TO aidb_users, aidb_governance;

CREATE OR REPLACE VIEW aidb.mcp_tools AS
SELECT
    t.name,
    t.server,
    t.tool,
    CASE WHEN NOT t.listed THEN 'withdrawn' WHEN t.new_hash IS NOT NULL THEN 'quarantined' ELSE 'approved' END AS status,
    t.description,
    t.input_schema,
    t.hash,
    t.new_description,
    t.new_input_schema,
    t.new_hash,
    t.approved_at,
    t.approved_by,
    t.changed_at,
    s.fetched_at,
    now() - s.fetched_at AS age,
    coalesce(now() - s.fetched_at > coalesce(nullif(current_setting('aidb.mcp_stale_after', true), ''), '1h')::interval, true) AS stale,
    t.idempotent,
    t.output_schema,
    t.new_output_schema
FROM aidb_internal.mcp_tools t
JOIN aidb_internal.mcp_servers s ON s.name = t.server;
COMMENT ON VIEW aidb.mcp_tools IS
    'Tools of registered MCP servers. Their texts are the servers'' own: read them before you approve. Privileges: SELECT for aidb_users, aidb_governance and aidb_auditor.';
COMMENT ON COLUMN aidb.mcp_tools.name IS 'The name in aidb.tools.';
COMMENT ON COLUMN aidb.mcp_tools.tool IS 'The name that the server gives it.';
COMMENT ON COLUMN aidb.mcp_tools.status IS 'approved; quarantined: its definition has changed and it is not used until aidb.approve_mcp_tool; withdrawn: the server no longer lists it, or tool_filter leaves it out.';
COMMENT ON COLUMN aidb.mcp_tools.description IS 'As imported or last approved: what models are shown.';
COMMENT ON COLUMN aidb.mcp_tools.output_schema IS 'Of its structured content, where the server says so.';
COMMENT ON COLUMN aidb.mcp_tools.hash IS 'SHA-256 of the definition: name, title, description and schemas.';
COMMENT ON COLUMN aidb.mcp_tools.new_hash IS 'Of the changed definition that waits for approval.';
COMMENT ON COLUMN aidb.mcp_tools.age IS 'How long ago the server''s list was fetched.';
COMMENT ON COLUMN aidb.mcp_tools.stale IS 'The list is older than aidb.mcp_stale_after: it is fetched again before the next call.';
COMMENT ON COLUMN aidb.mcp_tools.idempotent IS 'It may be called again when it is not known whether it was: see aidb.declare_idempotent.';
REVOKE ALL ON aidb.mcp_tools FROM PUBLIC;
GRANT SELECT ON aidb.mcp_tools TO aidb_users, aidb_governance, aidb_auditor;

-- Implemented in Go, which makes the schemas that models are shown.
CREATE OR REPLACE FUNCTION aidb.get_mcp_tools()
RETURNS TABLE (name text, description text, input_schema jsonb, output_schema jsonb)
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_go_call';
COMMENT ON FUNCTION aidb.get_mcp_tools() IS
    'Every tool of aidb.tools in the shape of an MCP tools/list: name, description and a JSON Schema of its arguments, by name; output_schema is that of the array of rows of an SQL tool with a return_type_hint, that of the structured content of an MCP server''s tool which has one, else NULL. Tools in quarantine are left out. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.get_mcp_tools() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.get_mcp_tools() TO aidb_users;
