package retention

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/tests/servertest"
)

// Partitions go into a dump and come out of it, in both formats; what was dropped stays dropped, the chain whole, the next
// row goes to the right place.
func TestPartitions_SurviveDumpAndRestore(t *testing.T) {
	connect := database(t, "dumped")
	admin, ann := connect("postgres"), connect("ann")
	servertest.Exec(t, admin, "ALTER DATABASE dumped SET aidb.otel_client = 'database'")
	first := partition(t, admin, "decision_log", days("-40"), days("-30"))
	partition(t, admin, "decision_log", days("-30"), days("-20"))
	partition(t, admin, "action_log", days("-30"), days("-20"))
	fill(t, admin, 300, days("-40")+" + interval '1 hour'", "67 minutes")
	fill(t, admin, 5, days("-15"), "1 minute") // in the default partition
	servertest.Exec(t, admin, "SET aidb.retention_decision_log = '29d'")
	require.Contains(t, outcomes(t, admin), "decision_log "+first+" dropped")
	ann = connect("ann")
	servertest.Exec(t, ann, `SELECT aidb.create_model('dumped', 'dummy', '{"scope": "call", "responses": [
		{"tool_calls": [{"name": "run_sql_query", "arguments": {"query": "SELECT 1 AS n"}}]}, {"response": "done"}]}', validate => false)`)
	servertest.Exec(t, ann, "SELECT * FROM aidb.create_agent('dumped', 'x', 'dumped', tools => '{run_sql_query}')")
	conversation := servertest.MustAsk(t, ann, "dumped", "go").Conversation
	require.Empty(t, problems(t, admin))

	bin := servertest.Value(t, admin, "SELECT setting FROM pg_config() WHERE name = 'BINDIR'")
	run := func(program string, args ...string) {
		t.Helper()
		args = append([]string{"-h", "127.0.0.1", "-p", strconv.Itoa(server.Port), "-U", "postgres"}, args...)
		out, err := exec.CommandContext(t.Context(), filepath.Join(bin, program), args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	folder := t.TempDir()
	const listed = "SELECT string_agg(concat_ws(' ', kind, name, from_at, until_at, status, dropped_at, last_id), '|' ORDER BY kind, name) FROM aidb.log_partitions"
	const described = `SELECT string_agg(concat_ws(' ', c.oid::regclass, pg_get_expr(c.relpartbound, c.oid), c.relrowsecurity, c.relacl, c.reloptions, obj_description(c.oid), i.list), E'\n' ORDER BY c.oid::regclass::text)
		FROM pg_class c
		CROSS JOIN LATERAL (SELECT string_agg(d.def, ', ' ORDER BY d.def) AS list FROM (
			SELECT regexp_replace(pg_get_indexdef(x.indexrelid), 'INDEX \S+ ', '') AS def FROM pg_index x WHERE x.indrelid = c.oid) d) i
		WHERE c.relispartition AND c.relkind = 'r'`
	for format, restore := range map[string]func(into string){
		"plain": func(into string) {
			run("pg_dump", "-d", "dumped", "-f", filepath.Join(folder, "plain"))
			run("psql", "-X", "-q", "-1", "-d", into, "-v", "ON_ERROR_STOP=1", "-f", filepath.Join(folder, "plain"))
		},
		"custom": func(into string) {
			run("pg_dump", "-d", "dumped", "-Fc", "-f", filepath.Join(folder, "custom"))
			run("pg_restore", "-d", into, "--exit-on-error", "-j", "2", filepath.Join(folder, "custom"))
		},
		"through_the_root": func(into string) {
			run("pg_dump", "-d", "dumped", "--load-via-partition-root", "-f", filepath.Join(folder, "root"))
			run("psql", "-X", "-q", "-d", into, "-v", "ON_ERROR_STOP=1", "-f", filepath.Join(folder, "root"))
		},
	} {
		t.Run(format, func(t *testing.T) {
			into := "restored_" + format
			servertest.Exec(t, server.Admin(t), "CREATE DATABASE "+into)
			restore(into)
			restored := in(t, into)("postgres")
			for _, relation := range []string{"aidb_internal.decision_log", "aidb_internal.logged_steps", "aidb_otel.traces", "aidb_internal.agent_task_queue", "aidb_internal.log_partitions",
				"aidb_internal.kept_hashes", "aidb_internal.kept_counts"} {
				digest := "SELECT count(*) || ' ' || md5(string_agg(r::text || r.tableoid::regclass, '|' ORDER BY r::text)) FROM " + relation + " r"
				require.Equal(t, servertest.Value(t, admin, digest), servertest.Value(t, restored, digest), relation)
			}
			require.Equal(t, servertest.Value(t, admin, listed), servertest.Value(t, restored, listed))
			require.Equal(t, servertest.Value(t, admin, described), servertest.Value(t, restored, described))
			require.Empty(t, problems(t, restored))
			user := in(t, into)("ann")
			servertest.MustAsk(t, user, "dumped", "go on", "conversation_id => '"+conversation+"'")
			require.Empty(t, problems(t, restored))
			require.Equal(t, "1", servertest.Value(t, restored, "SELECT count(DISTINCT tableoid) FROM aidb_internal.logged_steps WHERE conversation_id = $1::uuid", conversation))
			servertest.Exec(t, restored, "SET aidb.retention_decision_log = '15d'")
			require.NotEmpty(t, outcomes(t, restored))
			require.Empty(t, problems(t, restored))
			servertest.Exec(t, restored, "DROP EXTENSION aidb")
		})
	}
}
