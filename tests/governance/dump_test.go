package governance

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/servertest"
)

// The log goes into a dump and comes out of it as it was: still intact, and the next run goes on with it.
func TestDecisions_SurviveDumpAndRestore(t *testing.T) {
	admin := server.Admin(t)
	servertest.Exec(t, admin, "CREATE DATABASE dumped")
	servertest.Exec(t, admin, "CREATE DATABASE restored")
	servertest.Exec(t, admin, "CREATE ROLE dumped_r; GRANT dumped_r TO ann")
	in := func(database, role string) *pgx.Conn {
		conn, err := server.Connect(t.Context(), role, database)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close(t.Context()) })
		return conn
	}
	servertest.Exec(t, in("dumped", "postgres"), `CREATE EXTENSION aidb; GRANT EXECUTE ON FUNCTION aidb.run_sql_query(text) TO dumped_r;
		SELECT aidb.create_purpose('dumped', 'dumped_r', 'with a description'); SELECT aidb.create_purpose('retired', 'dumped_r'); SELECT aidb.delete_purpose('retired')`)
	ann := in("dumped", "ann")
	servertest.Exec(t, ann, `SELECT aidb.create_model('dumped', 'dummy', '{"scope": "call", "responses": [
		{"tool_calls": [{"name": "run_sql_query", "arguments": {"query": "SELECT current_user AS me, ''ünï'' AS u"}}]},
		{"tool_calls": [{"name": "run_sql_query", "arguments": {"query": "SELECT * FROM nothing"}}]}, {"response": "done"}]}', validate => false)`)
	servertest.Exec(t, ann, "SELECT * FROM aidb.create_agent('dumped', 'x', 'dumped', tools => '{run_sql_query}', purpose => 'dumped')")
	for range 3 {
		servertest.MustAsk(t, ann, "dumped", "go")
	}

	file := filepath.Join(t.TempDir(), "dump.sql")
	bin := servertest.Value(t, admin, "SELECT setting FROM pg_config() WHERE name = 'BINDIR'")
	run := func(program string, args ...string) {
		t.Helper()
		args = append([]string{"-h", "127.0.0.1", "-p", strconv.Itoa(server.Port), "-U", "postgres"}, args...)
		out, err := exec.CommandContext(t.Context(), filepath.Join(bin, program), args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	run("pg_dump", "-d", "dumped", "-f", file)
	dump, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Regexp(t, `(?m)^COPY aidb_internal\.callers [^\n]*\n(?:\w+\t\w+\t[^\n]*\n)*ann\tann\t`, string(dump), "the role goes by its name, since it has another oid elsewhere")
	run("psql", "-X", "-q", "-d", "restored", "-v", "ON_ERROR_STOP=1", "-f", file)

	for _, relation := range []string{"aidb_internal.decision_log", "aidb_internal.action_log", "aidb_internal.agent_task_queue", "aidb_internal.purpose_registry", "aidb_internal.agents"} {
		digest := "SELECT count(*) || ' ' || md5(string_agg(r::text, '|' ORDER BY r::text)) FROM " + relation + " r"
		require.Equal(t, servertest.Value(t, in("dumped", "postgres"), digest), servertest.Value(t, in("restored", "postgres"), digest), relation)
	}
	restored := in("restored", "postgres")
	require.Equal(t, "9", servertest.Value(t, restored, "SELECT count(*) FROM aidb.decisions"))
	require.Equal(t, "9", servertest.Value(t, in("restored", "ann"), "SELECT count(*) FROM aidb.decisions"), "whose it was, theirs it is")
	require.Empty(t, problems(t, restored))
	servertest.MustAsk(t, in("restored", "ann"), "dumped", "go")
	require.Equal(t, "12", servertest.Value(t, restored, "SELECT count(*) FROM aidb.decisions"))
	require.Empty(t, problems(t, restored))
	servertest.Exec(t, restored, "DELETE FROM aidb_internal.decision_log WHERE task_id = (SELECT id FROM aidb_internal.agent_task_queue ORDER BY created_at LIMIT 1)")
	require.NotEmpty(t, problems(t, restored))
}
