-- Who is calling, and on whose behalf.

-- The functions of schema aidb that change or read the catalog are one C function, aidb_owner_call. It runs the function
-- of the same name and arguments in aidb_internal with the rights of the extension's owner, under a search_path of
-- pg_catalog, pg_temp; what is below tells that function who called. A volatile function refuses to run inside a tool
-- call, so no agent can rewrite agents, models or purposes; a stable one only reads, and may.
CREATE OR REPLACE FUNCTION aidb_internal.caller()
RETURNS text
LANGUAGE c STABLE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'aidb_caller';
COMMENT ON FUNCTION aidb_internal.caller() IS
    'Name of the role that called the function of schema aidb that is running now.';
REVOKE ALL ON FUNCTION aidb_internal.caller() FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.caller_principal()
RETURNS text
LANGUAGE c STABLE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'aidb_caller_principal';
COMMENT ON FUNCTION aidb_internal.caller_principal() IS
    'The end user behind aidb_internal.caller(): the setting aidb.principal, else the caller''s name.';
REVOKE ALL ON FUNCTION aidb_internal.caller_principal() FROM PUBLIC;

CREATE OR REPLACE FUNCTION aidb_internal.caller_oid()
RETURNS regrole
LANGUAGE sql STABLE PARALLEL RESTRICTED
AS $$ SELECT r.oid::regrole FROM pg_roles r WHERE r.rolname = aidb_internal.caller() $$;
COMMENT ON FUNCTION aidb_internal.caller_oid() IS
    'aidb_internal.caller() as a role, for ownership.';
REVOKE ALL ON FUNCTION aidb_internal.caller_oid() FROM PUBLIC;

-- These three are for the policies and views of applications: USING (owner = aidb.principal()) narrows what an agent
-- reads to the person it works for. A policy's functions are permission-checked as whoever reads the table, which under
-- a purpose is a role with no rights in aidb: hence EXECUTE for everybody. They say nothing outside a tool call.
CREATE OR REPLACE FUNCTION aidb.principal()
RETURNS text
LANGUAGE c STABLE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'aidb_tool_principal';
COMMENT ON FUNCTION aidb.principal() IS
    'The end user for whom the running tool call works: aidb.principal as it was set when the agent was called, else the caller''s role name. NULL outside a tool call. No tool argument, tool SQL or model output can change it, so row security policies may rely on it. Privileges: everybody.';
GRANT EXECUTE ON FUNCTION aidb.principal() TO PUBLIC;

CREATE OR REPLACE FUNCTION aidb.conversation_id()
RETURNS text
LANGUAGE c STABLE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'aidb_tool_conversation_id';
COMMENT ON FUNCTION aidb.conversation_id() IS
    'The conversation that the running tool call belongs to. NULL outside a tool call, and in read-only runs. Privileges: everybody.';
GRANT EXECUTE ON FUNCTION aidb.conversation_id() TO PUBLIC;

CREATE OR REPLACE FUNCTION aidb.agent_name()
RETURNS text
LANGUAGE c STABLE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'aidb_tool_agent_name';
COMMENT ON FUNCTION aidb.agent_name() IS
    'The agent whose tool call is running. NULL outside a tool call. Privileges: everybody.';
GRANT EXECUTE ON FUNCTION aidb.agent_name() TO PUBLIC;

