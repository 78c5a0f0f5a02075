-- Running agents, models and tools. All of these are implemented in Go; aidb_go_call hands over the function's name, its
-- arguments and who calls. None of them can be called from inside a tool call.

CREATE OR REPLACE FUNCTION aidb.agent_converse(
    agent_name text,
    prompt text,
    conversation_id text DEFAULT NULL,
    read_only boolean DEFAULT NULL,
    output_type jsonb DEFAULT NULL,
    debug boolean DEFAULT NULL
)
RETURNS TABLE (message text, conversation_id text, error text)
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_go_call';
COMMENT ON FUNCTION aidb.agent_converse(text, text, text, boolean, jsonb, boolean) IS
    'Gives a prompt to an agent and waits for its answer. Always one row: message and conversation_id, or error alone; a failure of the agent, its model or its limits does not raise, so the transaction goes on. conversation_id: continues that conversation, which must be the caller''s own and the agent''s; NULL begins one. read_only: only tools that are known not to write are offered, nothing but the decisions is stored, and conversation_id is NULL in the result; NULL means false, and true on a standby. output_type: overrides the agent''s for this call; a JSON null asks for free text. With an output type message is JSON text that is valid against it: an answer that is not goes back to the model with all that is wrong, twice at most, and then the call ends with an error. debug: every step is also sent as a NOTICE, cut at 2000 characters and without secrets (see aidb.redaction). read_only and debug go for the agents that it delegates to, too; their tools run as this agent''s do (see aidb.delegation_role), and at most 10 delegations follow one another. Everything is written in the caller''s transaction and goes with its rollback. Cancelling the statement ends the call at once and raises 57014. Privileges: aidb_users; tools run with the rights of the role behind the agent''s purpose, of which the caller must be a member, or of the caller.';
REVOKE ALL ON FUNCTION aidb.agent_converse(text, text, text, boolean, jsonb, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.agent_converse(text, text, text, boolean, jsonb, boolean) TO aidb_users;

CREATE OR REPLACE FUNCTION aidb.run_tool(name text, arguments jsonb DEFAULT '{}')
RETURNS jsonb
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_go_call';
COMMENT ON FUNCTION aidb.run_tool(text, jsonb) IS
    'Runs one tool of aidb.tools as the caller, within the same limits as in an agent''s call. No agent''s purpose applies; where aidb.default_purpose is set, the tool runs as that purpose''s role, of which the caller must be a member, and needs the same grants. The decision is recorded. Tools that return rows yield a JSON array of objects. arguments: an object; NULL is {}. Raises 42704 when there is no such tool, 22023 for an argument that is missing, unknown or of the wrong type, and whatever the tool''s SQL raises. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.run_tool(text, jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.run_tool(text, jsonb) TO aidb_users;

CREATE OR REPLACE FUNCTION aidb.run_sql_query(query text)
RETURNS jsonb
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_go_call';
COMMENT ON FUNCTION aidb.run_sql_query(text) IS
    'Runs one read-only query as the caller and returns its rows as a JSON array of objects. It cannot write, and what it returns is cut at aidb.max_tool_rows and aidb.max_tool_bytes. Stands behind the tool run_sql_query: a purpose''s role needs EXECUTE on it to use the tool. Raises what the query raises. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.run_sql_query(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.run_sql_query(text) TO aidb_users;

CREATE OR REPLACE FUNCTION aidb.execute_sql(statement text)
RETURNS jsonb
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_go_call';
COMMENT ON FUNCTION aidb.execute_sql(text) IS
    'Executes one statement that may write, as the caller, and returns its rows as a JSON array of objects, or {"rows_affected": n}. Stands behind the tool execute_sql: a purpose''s role needs EXECUTE on it to use the tool. Raises what the statement raises. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.execute_sql(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.execute_sql(text) TO aidb_users;

CREATE OR REPLACE FUNCTION aidb.sleep(seconds numeric)
RETURNS void
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_go_call';
COMMENT ON FUNCTION aidb.sleep(numeric) IS
    'Waits. Stands behind the tool sleep, which every agent is offered. Raises 22023 when seconds is NULL or negative. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.sleep(numeric) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.sleep(numeric) TO aidb_users;

CREATE OR REPLACE FUNCTION aidb.generate_text(model_name text, input text, inference_config json DEFAULT NULL)
RETURNS text
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_go_call';
COMMENT ON FUNCTION aidb.generate_text(text, text, json) IS
    'Sends one text to a model, without any agent, and returns its answer. inference_config: options of this call, see aidb.inference_config; what it leaves out comes from the model''s config. Nothing is stored. Raises 42704 when there is no such model, and the provider''s failure. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.generate_text(text, text, json) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.generate_text(text, text, json) TO aidb_users;

CREATE OR REPLACE FUNCTION aidb.generate_text_batch(model_name text, input text[], inference_config json DEFAULT NULL)
RETURNS SETOF text
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_go_call';
COMMENT ON FUNCTION aidb.generate_text_batch(text, text[], json) IS
    'aidb.generate_text for each element of input, answers in the same order. Raises when any of them fails. Privileges: aidb_users.';
REVOKE ALL ON FUNCTION aidb.generate_text_batch(text, text[], json) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION aidb.generate_text_batch(text, text[], json) TO aidb_users;

-- For the tests of the seam between C and Go, which need faults that can only be made from inside.
CREATE OR REPLACE FUNCTION aidb_internal.test_go(fault text, options text)
RETURNS text
LANGUAGE c VOLATILE
AS 'MODULE_PATHNAME', 'aidb_test_go';
COMMENT ON FUNCTION aidb_internal.test_go(text, text) IS
    'Makes the Go runtime of this session misbehave. For tests: refuses everybody but a superuser with aidb.test_hooks on.';
REVOKE ALL ON FUNCTION aidb_internal.test_go(text, text) FROM PUBLIC;

