-- What is registered. Visible to all aidb_users alike.

CREATE OR REPLACE VIEW aidb.agents AS
SELECT
    a.id,
    a.name,
    a.instructions,
    a.model,
    a.purpose,
    a.delegates,
    a.tools,
    a.output_type,
    a.input_token_budget,
    a.output_token_budget,
    a.max_iterations,
    a.timeout_seconds,
    a.budget_strategy,
    a.preset,
    a.created_at,
    a.updated_at,
    pg_get_userbyid(a.owner)::text AS owner,
    a.enabled,
    a.cost_budget,
    a.tree_token_budget,
    a.tree_cost_budget,
    a.compaction,
    a.policy,
    a.tool_exposure,
    a.confirm_replies
FROM aidb_internal.agents a;
COMMENT ON VIEW aidb.agents IS
    'Registered agents. Privileges: SELECT for aidb_users and aidb_auditor.';
COMMENT ON COLUMN aidb.agents.model IS 'Name of the model; it may be registered later.';
COMMENT ON COLUMN aidb.agents.purpose IS 'Name of the purpose whose role tool calls run as; NULL: they run as the caller.';
COMMENT ON COLUMN aidb.agents.delegates IS 'Agents that are offered to the model as tools.';
COMMENT ON COLUMN aidb.agents.tools IS 'Tools the model may call. sleep is offered besides these.';
COMMENT ON COLUMN aidb.agents.output_type IS 'Shape that answers must have; NULL: free text.';
COMMENT ON COLUMN aidb.agents.input_token_budget IS 'Input tokens a call may use over all its model requests; NULL: no limit.';
COMMENT ON COLUMN aidb.agents.output_token_budget IS 'Output tokens a call may use; NULL: no limit.';
COMMENT ON COLUMN aidb.agents.max_iterations IS 'Rounds a call may take. NULL: the ceiling of 25, which is 21 and 3 grace rounds with attempt_complete.';
COMMENT ON COLUMN aidb.agents.timeout_seconds IS 'Seconds a call may take; NULL: 300. The argument of create_agent is called timeout.';
COMMENT ON COLUMN aidb.agents.budget_strategy IS 'What happens when a budget is exceeded.';
COMMENT ON COLUMN aidb.agents.preset IS 'Stored, without effect.';
COMMENT ON COLUMN aidb.agents.owner IS 'Role that may change or delete the agent, besides its members and superusers.';
COMMENT ON COLUMN aidb.agents.cost_budget IS 'What the model calls of a call may cost, by the price in the model''s config; NULL: no limit.';
COMMENT ON COLUMN aidb.agents.tree_token_budget IS 'Tokens, input and output, that a call may use together with all that is delegated in it; NULL: no limit.';
COMMENT ON COLUMN aidb.agents.tree_cost_budget IS 'What a call may cost together with all that is delegated in it; NULL: no limit.';
COMMENT ON COLUMN aidb.agents.compaction IS 'When and how a long conversation is made shorter: threshold, keep_turns, pin, model; NULL: the defaults.';
COMMENT ON COLUMN aidb.agents.policy IS 'Temporal policy that its tool calls obey, besides that of its purpose; NULL: none of its own.';
COMMENT ON COLUMN aidb.agents.tool_exposure IS 'direct: each tool is a function for the model. catalog: it sees describe_actions, act and the tools that only read.';
COMMENT ON COLUMN aidb.agents.confirm_replies IS 'true: the next prompt of a conversation in which an action waits is read as the answer to it.';
REVOKE ALL ON aidb.agents FROM PUBLIC;
GRANT SELECT ON aidb.agents TO aidb_users, aidb_auditor;

CREATE OR REPLACE VIEW aidb.tools AS
SELECT t.name, t.description, t.tool_type, t.params, t.read_only,
       coalesce(k.risk, t.risk, CASE WHEN t.read_only THEN 'read' END) AS risk
FROM (
    SELECT n.name, n.description, 'native_tool'::text AS tool_type, n.params, n.read_only, n.risk
    FROM aidb_internal.native_tools n
    UNION ALL
    SELECT s.name, s.description, 'sql_tool', s.params, s.read_only, s.risk
    FROM aidb_internal.sql_tools s
    UNION ALL
    SELECT m.name, m.description, 'mcp_tool', m.input_schema, false, NULL
    FROM aidb_internal.mcp_tools m WHERE m.listed
) t
LEFT JOIN aidb_internal.tool_classes k ON k.tool = t.name;
COMMENT ON VIEW aidb.tools IS
    'The tools that agents may list and aidb.run_tool can run. Privileges: SELECT for aidb_users and aidb_auditor.';
COMMENT ON COLUMN aidb.tools.tool_type IS 'native_tool: built into the extension. sql_tool: a stored statement. mcp_tool: of a registered MCP server, see aidb.mcp_tools.';
COMMENT ON COLUMN aidb.tools.params IS 'Array of {name, type, description, required} with default and enum where there are any; type is an SQL type name. A parameter of a SQL tool also has base, the type beneath its domain, and labels, those of its enum type when the tool was registered. Of an mcp_tool: the JSON Schema object that its server gave; aidb.get_mcp_tools() has a schema for every tool.';
COMMENT ON COLUMN aidb.tools.risk IS 'read, safe (runs at once), confirm (waits for a person) or forbidden: what aidb.classify_tool said, else the tool''s owner or the extension. NULL: nobody has said; see aidb.unclassified_tools.';
COMMENT ON COLUMN aidb.tools.read_only IS 'Known never to write: such a tool is offered in read-only runs too. Never true of an mcp_tool.';
REVOKE ALL ON aidb.tools FROM PUBLIC;
GRANT SELECT ON aidb.tools TO aidb_users, aidb_auditor;

CREATE OR REPLACE FUNCTION aidb.list_native_tools()
RETURNS SETOF aidb.tools
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT t.* FROM aidb.tools t WHERE t.tool_type = 'native_tool' ORDER BY t.name;
END;
COMMENT ON FUNCTION aidb.list_native_tools() IS
    'The rows of aidb.tools that are built into the extension. Privileges: aidb_users, aidb_auditor.';
REVOKE ALL ON FUNCTION aidb.list_native_tools() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.list_native_tools() TO aidb_users, aidb_auditor;

CREATE OR REPLACE FUNCTION aidb.list_cached_mcp_tools()
RETURNS SETOF aidb.tools
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT t.* FROM aidb.tools t WHERE t.tool_type = 'mcp_tool' ORDER BY t.name;
END;
COMMENT ON FUNCTION aidb.list_cached_mcp_tools() IS
    'The rows of aidb.tools that are of MCP servers, as they were last fetched: no server is asked. aidb.mcp_tools says of which server, and how old. Privileges: aidb_users, aidb_auditor.';
REVOKE ALL ON FUNCTION aidb.list_cached_mcp_tools() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.list_cached_mcp_tools() TO aidb_users, aidb_auditor;

CREATE OR REPLACE VIEW aidb.model_providers AS
SELECT
    p.name::name AS server_name,
    p.description AS server_description,
    p.options AS server_options
FROM aidb_internal.providers p;
COMMENT ON VIEW aidb.model_providers IS
    'Providers that aidb.create_model accepts. Privileges: SELECT for aidb_users and aidb_auditor.';
COMMENT ON COLUMN aidb.model_providers.server_options IS 'Defaults, as option=value.';
REVOKE ALL ON aidb.model_providers FROM PUBLIC;
GRANT SELECT ON aidb.model_providers TO aidb_users, aidb_auditor;

-- Queries and user information are taken out of addresses: that is where keys hide that nobody called a key.
CREATE OR REPLACE VIEW aidb.models AS
SELECT
    m.name,
    m.provider,
    ARRAY(
        SELECT o.key || '=' || CASE
                   WHEN o.key = 'url' THEN regexp_replace(regexp_replace(o.value, '(?<=//)[^/?#]*@', ''), '[?#].*$', '')
                   ELSE o.value
               END
        FROM jsonb_each_text(m.config) o
        WHERE o.value IS NOT NULL
        ORDER BY o.key COLLATE "C"
    ) || CASE m.credential_source WHEN 'none' THEN ARRAY[]::text[] ELSE ARRAY['credentials=' || m.credential_source] END AS options,
    p.functions
FROM aidb_internal.models m
LEFT JOIN aidb_internal.providers p ON p.name = m.provider;
COMMENT ON VIEW aidb.models IS
    'Registered models. No column ever holds a secret. Privileges: SELECT for aidb_users and aidb_auditor.';
COMMENT ON COLUMN aidb.models.options IS 'The config as option=value, and credentials=stored, environment or file where the model has one.';
COMMENT ON COLUMN aidb.models.functions IS 'What the model can be used for.';
REVOKE ALL ON aidb.models FROM PUBLIC;
GRANT SELECT ON aidb.models TO aidb_users, aidb_auditor;

-- Plain columns of one table: an attempt to write through it is answered with "permission denied for view".
CREATE OR REPLACE VIEW aidb.purpose_registry AS
SELECT
    p.name,
    p.role,
    p.description,
    p.created_at,
    p.updated_at,
    p.deleted_at,
    p.policy,
    p.allowed_servers
FROM aidb_internal.purpose_registry p;
COMMENT ON VIEW aidb.purpose_registry IS
    'Purposes and the roles they resolve to, retired ones included. Privileges: SELECT for aidb_users, aidb_governance and aidb_auditor; nobody may write.';
COMMENT ON COLUMN aidb.purpose_registry.role IS 'The role that tool calls of agents with this purpose run as.';
COMMENT ON COLUMN aidb.purpose_registry.updated_at IS 'Last time the purpose was created, changed, retired or revived.';
COMMENT ON COLUMN aidb.purpose_registry.deleted_at IS 'When it was retired; NULL: live.';
COMMENT ON COLUMN aidb.purpose_registry.policy IS 'Temporal policy that tool calls of all its agents obey; NULL: none.';
COMMENT ON COLUMN aidb.purpose_registry.allowed_servers IS 'MCP servers whose tools its agents may call; NULL: all.';
REVOKE ALL ON aidb.purpose_registry FROM PUBLIC;
GRANT SELECT ON aidb.purpose_registry TO aidb_users, aidb_governance, aidb_auditor;

