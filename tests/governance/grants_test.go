package governance

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

func fakeCall(tool string, args map[string]any) fakemodel.Reply { return fakemodel.Call(tool, args) }

// samples are arguments with which each native tool can be called.
var samples = map[string]map[string]any{
	"run_sql_query": {"query": "SELECT 1 AS n"}, "execute_sql": {"statement": "SELECT 1 AS n"},
	"catalog_list_schemas": {}, "catalog_list_objects": {"schema": "public"}, "catalog_get_object_details": {"object_name": "granted"},
	"catalog_list_relations": {}, "list_agents": {}, "list_models": {}, "list_model_providers": {}, "get_model": {"model_name": "granted_model"},
	"generate_text": {"model_name": "granted_model", "input": "hello"},
}

var grant = regexp.MustCompile(`GRANT EXECUTE ON FUNCTION aidb\.\w+\([a-z, ]*\) TO granted_role`)

// A purpose's role needs EXECUTE on the function of a native tool and nothing else of aidb: no schema, no log, no telemetry.
// Without it the refusal is the very GRANT, and with it the tool works.
func TestNativeTools_NeedOneGrantEach(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	servertest.Exec(t, admin, "CREATE TABLE public.granted (n int); GRANT SELECT ON public.granted TO PUBLIC; CREATE ROLE granted_role; GRANT granted_role TO ann; "+
		"SELECT aidb.create_purpose('granted', 'granted_role'); ALTER DATABASE aidb SET aidb.otel_client = 'database'")
	defer servertest.Exec(t, admin, "ALTER DATABASE aidb RESET aidb.otel_client")
	servertest.Exec(t, ann, `SELECT aidb.create_model('granted_model', 'dummy', '{"responses": [{"response": "hi"}]}', validate => false)`)
	fresh := server.Conn(t, "ann") // with telemetry on, which must need no grant either
	require.Equal(t, "database", servertest.Value(t, fresh, "SELECT current_setting('aidb.otel_client')"))

	for _, row := range servertest.Rows(t, ann, "SELECT name FROM aidb.tools WHERE tool_type = 'native_tool' ORDER BY name") {
		tool := row["name"].(string)
		if tool == "sleep" || tool == "act" || tool == "describe_actions" { // touch nothing by themselves and need nothing
			continue
		}
		t.Run(tool, func(t *testing.T) {
			args, known := samples[tool]
			require.True(t, known, "a tool that this test does not know: how is it called?")
			name := "granted_" + tool
			agent(t, ann, name, "granted", []string{tool})
			text := result(t, fresh, name, fakeCall(tool, args))
			said, d := refusal(t, ann, text)
			require.Equal(t, "engine_privilege_denied", d["denial_reason"])
			require.Equal(t, tool, d["object"])
			require.Contains(t, said, "Tool error: permission denied for function "+tool)
			statement := grant.FindString(said)
			require.NotEmpty(t, statement, said)
			servertest.Exec(t, admin, statement)
			require.NotContains(t, result(t, fresh, name, fakeCall(tool, args)), "Tool error")
		})
	}
	for schema, may := range servertest.Rows(t, admin, `SELECT has_schema_privilege('granted_role', 'aidb', 'USAGE') AS aidb,
		has_schema_privilege('granted_role', 'aidb_internal', 'USAGE') AS aidb_internal, has_schema_privilege('granted_role', 'aidb_otel', 'USAGE') AS aidb_otel`)[0] {
		require.Equal(t, false, may, schema)
	}
	require.NotEqual(t, "0", servertest.Value(t, admin, "SELECT count(*) FROM aidb_otel.traces WHERE decision_status = 'allowed'"))
}

// With the grant on the tool, what the statement touches is judged as for any statement of the role, and the schema aidb is
// out of its reach.
func TestPurposeRole_StartsWithNothing(t *testing.T) {
	ann := server.Conn(t, "ann")
	purposeRole(t, "bare")
	agent(t, ann, "bare", "bare", both)
	require.Equal(t, `{"slept": 0}`, result(t, ann, "bare", fakeCall("sleep", map[string]any{"seconds": 0})))
	for _, relation := range []string{"aidb.agents", "aidb.decisions", "aidb_internal.action_log", "aidb_internal.decision_log", "aidb_otel.traces"} {
		text := result(t, ann, "bare", fakemodel.Query("SELECT * FROM "+relation))
		schema, _, _ := strings.Cut(relation, ".")
		requireRefused(t, ann, text, "permission denied for schema "+schema, "engine_privilege_denied")
	}
	for _, call := range []string{"SELECT aidb.create_purpose('x', 'y')", "SELECT aidb.run_sql_query('SELECT 1')", "SELECT * FROM aidb.agent_converse('bare', 'x')"} {
		requireRefused(t, ann, result(t, ann, "bare", execute(call)), "permission denied for schema aidb", "engine_privilege_denied")
	}
}
