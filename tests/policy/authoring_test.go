package policy

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// refused runs statements that must fail with a SQLSTATE.
func refused(t *testing.T, conn *pgx.Conn, state string, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		_, err := conn.Exec(t.Context(), sql)
		require.Equal(t, state, servertest.State(err), "%s: %v", sql, err)
	}
}

func TestAuthoring_IsGovernancesAlone(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	servertest.Exec(t, admin, "SELECT aidb.create_policy('auth', "+orders+")")
	refused(t, ann, "42501", "SELECT aidb.create_policy('mine', '{}')", "SELECT aidb.add_transition('auth', 'start', 'refund_order', NULL)",
		"SELECT aidb.remove_transition('auth', 'start', 'lookup_order')", "SELECT aidb.update_policy('auth', mode => 'log_only')", "SELECT aidb.delete_policy('auth')",
		"SELECT * FROM aidb.simulate_policy('auth', now())", "SELECT aidb_internal.undo_events('{1}')", "SELECT * FROM aidb_internal.policies")
	id := session(t, ann, "auth")
	allow(t, ann, id, "lookup_order")

	// Nobody but the guard writes, whatever they may do to data: the log is append-only.
	servertest.Exec(t, admin, "CREATE ROLE allwrite LOGIN IN ROLE pg_write_all_data, pg_read_all_data, aidb_governance, aidb_users, aidb_auditor")
	all := server.Conn(t, "allwrite")
	refused(t, all, "42501", "UPDATE aidb_internal.session_events SET tool_name = 'x'", "DELETE FROM aidb_internal.session_events", "TRUNCATE aidb_internal.session_events",
		"INSERT INTO aidb_internal.session_events (session_id, policy, tool_name, params, from_state, to_state, principal, rank) VALUES (gen_random_uuid(), 'auth', 'x', '{}', 'a', 'b', 'c', 0)",
		"INSERT INTO aidb_internal.policy_sessions (id, policy, principal, state, caller, opened_for) VALUES (gen_random_uuid(), 'auth', 'x', 'refunded', 'ann', 'ann')",
		"INSERT INTO aidb_internal.tool_transitions VALUES ('auth', 'cancelled', 'refund_order', 'refunded')", "UPDATE aidb.policy_sessions SET state = 'start'",
		"DELETE FROM aidb_internal.event_totals", "INSERT INTO aidb_internal.event_totals VALUES ('session', 'x', 'x', '', 9, 0, 0)",
		"INSERT INTO aidb.policies (name, initial_state) VALUES ('x', 'y')", "DELETE FROM aidb.tool_transitions",
		"UPDATE aidb_internal.policy_sessions SET state = 'start'", "DELETE FROM aidb_internal.tool_transitions", "UPDATE aidb_internal.policies SET mode = 'log_only'")
	require.Equal(t, "order_loaded", state(t, id))
	refuse(t, ann, "DENY: lookup_order not permitted from state order_loaded", id, "lookup_order")

	// Sessions are their caller's own.
	bob := server.Conn(t, "bob")
	refuse(t, bob, "belongs to another caller", id, "cancel_order")
	refused(t, bob, "42501", "SELECT aidb.start_policy_session('auth', 'x', '"+id+"')")
	require.Empty(t, servertest.Rows(t, bob, "SELECT FROM aidb.policy_sessions"))
	require.Empty(t, servertest.Rows(t, bob, "SELECT FROM aidb.session_events"))
	require.Len(t, servertest.Rows(t, ann, "SELECT FROM aidb.session_events WHERE session_id = $1::uuid", id), 1)
	require.Empty(t, servertest.Rows(t, server.Conn(t, "ann", "aidb.principal=customer:1"), "SELECT FROM aidb.session_events"))
}

func TestAuthoring_Refusals(t *testing.T) {
	admin := server.Admin(t)
	servertest.Exec(t, admin, "SELECT aidb.create_policy('ref', "+orders+")")
	refused(t, admin, "42710", "SELECT aidb.create_policy('ref', '{}')", "SELECT aidb.add_transition('ref', 'start', 'lookup_order', 'x')",
		"SELECT aidb.create_policy('twice', ARRAY[aidb.transition('a', 'x', 'b'), aidb.transition('a', 'x', 'c')])")
	refused(t, admin, "22023", "SELECT aidb.create_policy('', '{}')", "SELECT aidb.create_policy(NULL, '{}')", "SELECT aidb.create_policy('n', ARRAY[aidb.transition('', 'x', 'b')])",
		"SELECT aidb.create_policy('n', ARRAY[aidb.transition('a', ' ', 'b')])", "SELECT aidb.create_policy('n', ARRAY[NULL::jsonb])", "SELECT aidb.create_policy('n', ARRAY['{}'::jsonb])",
		"SELECT aidb.create_policy('n', '{}', mode => 'shadow')", "SELECT aidb.create_policy('n', '{}', mode => NULL)", "SELECT aidb.create_policy('n', '{}', initial_state => '')",
		"SELECT aidb.authorize_tool_call(gen_random_uuid(), repeat('x', 301))",
		"SELECT aidb.update_policy('ref', mode => 'x')", "SELECT aidb.policy_diagram('ref', 'svg')", "SELECT aidb.start_policy_session('ref', NULL)",
		`SELECT aidb.create_policy('n', ARRAY['{"from_state": "a", "tool_name": "x", "to_state": null, "when": "true"}'::jsonb])`)
	refused(t, admin, "42704", "SELECT aidb.update_policy('nil')", "SELECT aidb.delete_policy('nil')", "SELECT aidb.add_transition('nil', 'a', 'b', 'c')", "SELECT aidb.remove_transition('ref', 'a', 'b')",
		"SELECT * FROM aidb.check_policy('nil')", "SELECT aidb.policy_diagram('nil')", "SELECT aidb.start_policy_session('nil')", "SELECT aidb.create_purpose('pp', 'r', policy => 'nil')",
		"SELECT aidb.policy_diagram('ref', session_id => gen_random_uuid())")
	servertest.Exec(t, admin, "SELECT aidb.delete_policy('ref')")
	refused(t, admin, "55000", "SELECT aidb.delete_policy('ref')", "SELECT aidb.update_policy('ref', mode => 'log_only')", "SELECT aidb.create_purpose('pp', 'r', policy => 'ref')")
}

// From inside a tool call nothing of this can be reached, for any caller.
func TestAuthoring_IsOutOfReachOfTools(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	servertest.Exec(t, admin, `SELECT aidb.create_policy('reach', ARRAY[aidb.transition('start', 'execute_sql', NULL)]);
		CREATE ROLE reach_r IN ROLE aidb_governance, aidb_users; GRANT reach_r TO ann; GRANT EXECUTE ON FUNCTION aidb.execute_sql(text) TO reach_r;
		SELECT aidb.create_purpose('reach', 'reach_r', policy => 'reach')`)
	server.Agent(t, ann, "reach", []string{"execute_sql"})
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('reach', purpose => 'reach')")
	var calls []fakemodel.Reply
	statements := []string{
		"SELECT aidb.create_policy('from inside', '{}')", "SELECT aidb.add_transition('reach', 'start', 'x', NULL)", "SELECT aidb.remove_transition('reach', 'start', 'execute_sql')",
		"SELECT aidb.update_policy('reach', mode => 'log_only')", "SELECT aidb.delete_policy('reach')", "SELECT aidb.start_policy_session('reach')",
		"SELECT aidb.authorize_tool_call(aidb.conversation_id()::uuid, 'execute_sql')", "DO $$ BEGIN PERFORM aidb.delete_policy('reach'); END $$",
		"SELECT * FROM aidb.simulate_policy('reach', now())",
	}
	for _, sql := range statements {
		calls = append(calls, fakemodel.Call("execute_sql", map[string]any{"statement": sql}))
	}
	got, o := talk(t, ann, "reach", calls...)
	for i, sql := range statements {
		require.Contains(t, got[i], "cannot be called from inside a tool call", sql)
	}
	require.Empty(t, events(t, o.Conversation), "calls that failed did not happen")
	require.Equal(t, "1", servertest.Value(t, admin, "SELECT count(*) FROM aidb.tool_transitions WHERE policy = 'reach'"))
}

func TestReports(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	guarded(t, ann, "rep")
	servertest.Exec(t, admin, `SELECT aidb.remove_transition('rep', 'loaded', 'rep_refund'), aidb.add_transition('rep', 'island "x"', 'teleport', 'gone', 'params IS NOT NULL')`)
	var found []string
	for _, row := range servertest.Rows(t, ann, "SELECT severity || ': ' || finding AS f FROM aidb.check_policy('rep')") {
		found = append(found, row["f"].(string))
	}
	require.Equal(t, []string{
		"info: state 'cancelled' is a dead end: nothing is permitted from there", "info: state 'gone' is a dead end: nothing is permitted from there",
		"warning: state 'gone' cannot be reached from 'start'", `warning: state 'island "x"' cannot be reached from 'start'`,
		"warning: tool 'rep_refund' of agent 'rep' is permitted in no state", "warning: tool 'teleport' does not exist in aidb: right for a tool of an application only",
	}, found)

	id := session(t, ann, "rep")
	allow(t, ann, id, "rep_lookup")
	picture := servertest.Value(t, ann, "SELECT aidb.policy_diagram('rep', 'mermaid', $1::uuid)", id)
	require.Equal(t, `stateDiagram-v2
    state "start" as s1
    state "cancelled" as s2
    state "gone" as s3
    state "island #34;x#34;" as s4
    state "loaded" as s5
    [*] --> s1
    s1 --> s5 : rep_lookup
    s4 --> s3 : teleport [params IS NOT NULL]
    s5 --> s2 : rep_cancel
    s5 --> s5 : rep_lookup
    classDef current fill:gold,stroke:black,stroke-width:3px
    class s5 current
`, picture)
	dot := servertest.Value(t, ann, "SELECT aidb.policy_diagram('rep', 'dot', $1::uuid)", id)
	require.Contains(t, dot, `digraph "rep" {`)
	require.Contains(t, dot, `s4 [label="island \"x\""];`)
	require.Contains(t, dot, `s5 [label="loaded", style=filled, fillcolor=gold, penwidth=2];`)
}

func dumpAndRestore(t *testing.T, s *servertest.Server) {
	t.Helper()
	admin := s.Admin(t)
	servertest.Exec(t, admin, "CREATE ROLE gov LOGIN IN ROLE aidb_governance; CREATE TABLE public.dumped (v int); GRANT SELECT ON public.dumped TO gov")
	servertest.Exec(t, admin, "CREATE DATABASE restored")
	servertest.Exec(t, s.Conn(t, "gov"), `SELECT aidb.create_policy('dumped', ARRAY[aidb.transition('start', 'x', 'b', 'EXISTS (SELECT FROM dumped) AND aidb.event_count(session_id, ''x'') < 2'), aidb.transition('b', 'x', 'start')])`)
	servertest.Exec(t, admin, "INSERT INTO public.dumped VALUES (1)")
	ann := s.Conn(t, "ann")
	id := session(t, ann, "dumped")
	allow(t, ann, id, "x")
	file := filepath.Join(t.TempDir(), "dump.sql")
	bin := servertest.Value(t, admin, "SELECT setting FROM pg_config() WHERE name = 'BINDIR'")
	run := func(program string, args ...string) {
		t.Helper()
		args = append([]string{"-h", "127.0.0.1", "-p", strconv.Itoa(s.Port), "-U", "postgres"}, args...)
		out, err := exec.CommandContext(t.Context(), filepath.Join(bin, program), args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	run("pg_dump", "-d", servertest.Database, "-f", file)
	run("psql", "-X", "-q", "-d", "restored", "-v", "ON_ERROR_STOP=1", "-f", file)
	restored, err := s.Connect(t.Context(), "postgres", "restored")
	require.NoError(t, err)
	defer func() { _ = restored.Close(t.Context()) }()
	for _, relation := range []string{"policies", "tool_transitions", "policy_sessions", "session_events"} {
		digest := "SELECT count(*) || ' ' || md5(string_agg(r::text, '|' ORDER BY r::text)) FROM aidb_internal." + relation + " r"
		require.Equal(t, servertest.Value(t, admin, digest), servertest.Value(t, restored, digest), relation)
	}
	ann, err = s.Connect(t.Context(), "ann", "restored")
	require.NoError(t, err)
	defer func() { _ = ann.Close(t.Context()) }()
	require.Equal(t, "start", allow(t, ann, id, "x"))
	refuse(t, ann, "is false", id, "x")
}
