package tool

import (
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// Each direct call is a decision, found by who made it.
func TestRunTool_IsADecision(t *testing.T) {
	ann := server.Conn(t, "ann", "aidb.principal=user:7")
	create(t, ann, "counted", "SELECT generate_series(1, ${n}) AS i", `aidb.tool_param('n', 'integer', 'x')`)
	run(t, ann, "counted", `{"n": 3}`)
	rows := servertest.Rows(t, ann, `SELECT tool, interaction_point, principal, caller, role, status, rows, agent, purpose, query_text
		FROM aidb.decisions WHERE tool = 'counted'`)
	require.Equal(t, []map[string]any{{
		"tool": "counted", "interaction_point": "sql_exec", "principal": "user:7", "caller": "ann", "role": "ann", "status": "allowed",
		"rows": int64(3), "agent": nil, "purpose": nil, "query_text": "SELECT generate_series(1, $1) AS i",
	}}, rows)
}

// What login roles do through tools can be bound to a purpose, without an agent.
func TestRunTool_HonoursTheDefaultPurpose(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	servertest.Exec(t, admin, `CREATE ROLE endpoint_role; CREATE ROLE endpoint LOGIN IN ROLE aidb_users, endpoint_role;
		CREATE TABLE public.only_purpose (a integer); INSERT INTO public.only_purpose VALUES (1); GRANT SELECT ON public.only_purpose TO endpoint_role;
		ALTER ROLE endpoint NOINHERIT; GRANT aidb_users TO endpoint;
		ALTER ROLE endpoint SET aidb.default_purpose = 'endpoint_purpose'`)
	servertest.Exec(t, admin, "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA aidb TO endpoint; GRANT USAGE ON SCHEMA aidb TO endpoint; GRANT SELECT ON ALL TABLES IN SCHEMA aidb TO endpoint")
	create(t, ann, "look", "SELECT a, current_user::text AS me FROM public.only_purpose", "")

	endpoint := server.Conn(t, "endpoint")
	require.Contains(t, refused(t, endpoint, "42501", "SELECT aidb.run_tool('look')"), "purpose 'endpoint_purpose' is not registered")
	servertest.Exec(t, admin, "SELECT aidb.create_purpose('endpoint_purpose', 'endpoint_role')")
	require.Equal(t, `[{"a": 1, "me": "endpoint_role"}]`, run(t, endpoint, "look", "{}"))
	rows := servertest.Rows(t, admin, "SELECT purpose, role, caller, status FROM aidb.decisions WHERE tool = 'look' AND status = 'allowed'")
	require.Equal(t, []map[string]any{{"purpose": "endpoint_purpose", "role": "endpoint_role", "caller": "endpoint", "status": "allowed"}}, rows)

	// A native tool is permitted to the purpose's role by EXECUTE on its function, here as in an agent.
	refused(t, endpoint, "42501", `SELECT aidb.run_tool('run_sql_query', '{"query": "SELECT 1 AS a"}')`)
	servertest.Exec(t, admin, "GRANT EXECUTE ON FUNCTION aidb.run_sql_query(text) TO endpoint_role")
	require.Equal(t, `[{"me": "endpoint_role"}]`, run(t, endpoint, "run_sql_query", `{"query": "SELECT current_user::text AS me"}`))

	// The session cannot lay it down, and a retired purpose never means "as the caller".
	require.Contains(t, refused(t, endpoint, "42501", "SET aidb.default_purpose = ''"), "permission denied to set parameter")
	servertest.Exec(t, admin, "SELECT aidb.delete_purpose('endpoint_purpose')")
	require.Contains(t, refused(t, endpoint, "42501", "SELECT aidb.run_tool('look')"), "purpose 'endpoint_purpose' has been retired")
}

// What is said beforehand is what happens, and saying it runs nothing.
func TestToolAllowed_SaysWhatWouldHappen(t *testing.T) {
	require.NoError(t, fixture())
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	servertest.Exec(t, admin, `CREATE TABLE public.vault (id integer, secret text); INSERT INTO public.vault VALUES (1, 'x');
		CREATE SCHEMA closed; CREATE TABLE closed.t (a integer); CREATE FUNCTION closed.f() RETURNS integer LANGUAGE sql STABLE AS 'SELECT 1';
		REVOKE EXECUTE ON FUNCTION closed.f() FROM PUBLIC; CREATE ROLE keeper_role; GRANT keeper_role TO ann; GRANT SELECT (id) ON public.vault TO keeper_role`)
	servertest.Exec(t, admin, "SELECT aidb.create_purpose('keeping', 'keeper_role')")
	tools := []struct {
		name, statement string
		missing         []any
	}{
		{"vault_ids", "SELECT id FROM public.vault", []any{}},
		{"vault_count", "SELECT count(*) FROM public.vault", []any{}},
		{"vault_all", "SELECT * FROM public.vault", []any{"SELECT on table public.vault"}},
		{"vault_where", "SELECT id FROM public.vault WHERE secret = 'x'", []any{"SELECT on table public.vault"}},
		{"closed_table", "SELECT a FROM closed.t", []any{"USAGE on schema closed", "SELECT on table closed.t"}},
		{"closed_function", "SELECT closed.f() AS a", []any{"EXECUTE on function closed.f()"}},
	}
	names := []string{}
	for _, c := range tools {
		create(t, ann, c.name, c.statement, "")
		names = append(names, c.name)
	}
	create(t, ann, "vault_write", "UPDATE public.vault SET secret = 'y' WHERE id = 1", "", "false")
	server.Agent(t, ann, "keeper", append(names, "vault_write", "run_sql_query"))
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('keeper', purpose => 'keeping')")
	for _, c := range tools {
		row := servertest.Rows(t, ann, "SELECT allowed, missing FROM aidb.tool_allowed('keeper', $1)", c.name)[0]
		require.Equal(t, c.missing, row["missing"], c.name)
		require.Equal(t, len(c.missing) == 0, row["allowed"], c.name)
	}
	row := servertest.Rows(t, ann, "SELECT * FROM aidb.tool_allowed('keeper', 'vault_write')")[0]
	require.Equal(t, false, row["allowed"])
	require.Equal(t, []any{"UPDATE on table public.vault"}, row["missing"])
	row = servertest.Rows(t, ann, "SELECT * FROM aidb.tool_allowed('keeper', 'run_sql_query')")[0]
	require.Equal(t, []any{"EXECUTE on function aidb.run_sql_query(text)"}, row["missing"])

	// One tool that is denied does not keep the agent from the others.
	server.Model.Script("keeper", fakemodel.Call("vault_all", map[string]any{}), fakemodel.Call("vault_ids", map[string]any{}), fakemodel.Say("done"))
	require.Equal(t, "done", servertest.MustAsk(t, ann, "keeper", "go").Message)
	requests := server.Model.Requests("keeper")
	turn := requests[len(requests)-1].Turn()
	require.Contains(t, turn[0].Result, "permission denied for table vault")
	require.Equal(t, `[{"id": 1}]`, turn[1].Result)

	matrix := servertest.Rows(t, admin, "SELECT * FROM aidb.tool_matrix('keeper') WHERE tool = 'vault_ids'")
	require.NotEmpty(t, matrix)
}
