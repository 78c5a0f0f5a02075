package tasks

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// Everything that is in the database is in its dump, tasks in the middle of their work too: they go on where they are
// restored, from their last step, whatever becomes of the first ones.
func TestDump_CarriesTasksAndAllElse(t *testing.T) {
	s := servertest.Start(t, conf())
	admin, ann := s.Admin(t), s.Conn(t, "ann")
	in := func(database, role string) *pgx.Conn {
		conn, err := s.Connect(t.Context(), role, database)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close(t.Context()) })
		return conn
	}
	servertest.Exec(t, admin, `CREATE ROLE pen; GRANT pen TO ann; CREATE TABLE effects (task text, n int); GRANT INSERT ON effects TO pen;
		GRANT EXECUTE ON FUNCTION aidb.execute_sql(text) TO pen; SELECT aidb.create_purpose('writing', 'pen');
		SELECT aidb.create_sql_tool('shut', 'closes', 'INSERT INTO effects VALUES (''shut'', ${id})', aidb.tool_params(aidb.tool_param('id', 'int', 'which')), read_only => false, risk => 'confirm');
		GRANT INSERT ON effects TO ann;
		SELECT aidb.create_policy('order', ARRAY[aidb.transition('start', 'shut', 'end')]);
		SELECT aidb.add_redaction('badge', pattern => 'ID-[0-9]+'); SELECT aidb.set_quota('ann', tokens => 1000000000)`)
	// a task that hangs after its second effect, one of a delegating agent, one that is queued behind the first, one that is over
	var hung atomic.Int64
	s.Model.Answer("writer", func(r fakemodel.Request) fakemodel.Reply {
		if reply := writer(r); !r.Offers("writer") && len(r.Messages) >= 6 {
			hung.Add(1)
			return fakemodel.Reply{Hang: true}
		} else {
			return reply
		}
	})
	// a stored key would be in no dump, and its model would have to be registered again
	for _, model := range []string{"writer", "closer", "over"} {
		servertest.Exec(t, admin, fmt.Sprintf(`SELECT aidb.create_model('%[1]s', 'openai_completions', '{"model": "%[1]s", "url": "%[2]s"}', validate => false)`, model, s.Model.URL()))
	}
	s.Model.Script("closer", fakemodel.Call("shut", map[string]any{"id": 7}), fakemodel.Say("it waits for you"))
	s.Model.Script("over", fakemodel.Say("over"))
	servertest.Exec(t, admin, `SELECT * FROM aidb.create_agent('writer', 'x', 'writer', tools => '{execute_sql}', purpose => 'writing');
		SELECT * FROM aidb.create_agent('boss', 'x', 'writer', delegates => '{writer}', purpose => 'writing')`)
	servertest.Exec(t, ann, "SELECT * FROM aidb.create_agent('closer', 'x', 'closer', tools => '{shut}', policy => 'order')")
	servertest.Exec(t, ann, "SELECT * FROM aidb.create_agent('over', 'x', 'over')")
	open := []task{submit(t, ann, "writer", "one"), submit(t, ann, "boss", "two")}
	require.NoError(t, s.Model.WaitFor(t.Context(), "the second effects", func() bool { return hung.Load() == 2 && s.Model.InFlight("writer") == 2 }))
	open = append(open, submit(t, ann, "writer", "three", "conversation_id => '"+open[0].Conversation+"'"))
	require.Equal(t, "over", wait(t, ann, submit(t, ann, "over", "go")).Message)
	servertest.MustAsk(t, ann, "closer", "close seven")
	require.Equal(t, "1", servertest.Value(t, ann, "SELECT count(*) FROM aidb.pending_actions"))
	servertest.Exec(t, admin, "SELECT * FROM aidb.create_agent('brief', 'x', 'over'); SELECT aidb.delete_agent('brief')")

	// as they were in the dump's snapshot
	servertest.Exec(t, admin, "BEGIN ISOLATION LEVEL REPEATABLE READ")
	snapshot := servertest.Value(t, admin, "SELECT pg_export_snapshot()")
	relations := servertest.Rows(t, admin, "SELECT c.oid::regclass::text AS name FROM pg_class c WHERE c.oid IN (SELECT unnest(extconfig) FROM pg_extension WHERE extname = 'aidb') AND c.relkind IN ('r', 'p')")
	require.NotEmpty(t, relations)
	digest := func(conn *pgx.Conn, relation string) string {
		columns := "r::text"
		if relation == "aidb_internal.agent_task_queue" { // its new keeper has looked after the tasks already
			columns = "(to_jsonb(r) - '{status, worker, phase, phase_at, attempts}'::text[])::text"
		}
		return servertest.Value(t, conn, fmt.Sprintf("SELECT count(*) || ' ' || md5(string_agg(%s, '|' ORDER BY %s)) FROM %s r", columns, columns, relation))
	}
	before := map[string]string{}
	for _, r := range relations {
		before[r["name"].(string)] = digest(admin, r["name"].(string))
	}
	file := filepath.Join(t.TempDir(), "dump")
	bin := servertest.Value(t, admin, "SELECT setting FROM pg_config() WHERE name = 'BINDIR'")
	run := func(program string, args ...string) {
		t.Helper()
		args = append([]string{"-h", "127.0.0.1", "-p", strconv.Itoa(s.Port), "-U", "postgres"}, args...)
		out, err := exec.CommandContext(t.Context(), filepath.Join(bin, program), args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	run("pg_dump", "-Fc", "-d", servertest.Database, "--snapshot", snapshot, "-f", file)
	servertest.Exec(t, admin, "COMMIT")

	// nothing is run where it is restored until that is wanted
	servertest.Exec(t, admin, "ALTER SYSTEM SET aidb.max_workers = 0")
	servertest.Exec(t, admin, "SELECT pg_reload_conf()")
	servertest.Exec(t, admin, "CREATE DATABASE restored")
	run("pg_restore", "-d", "restored", "--exit-on-error", "-j", "4", file)
	restored := in("restored", "postgres")
	for _, r := range relations {
		name := r["name"].(string)
		require.Equal(t, before[name], digest(restored, name), name)
	}
	require.Empty(t, servertest.Rows(t, restored, "SELECT * FROM aidb.verify_decisions()"))
	mine := in("restored", "ann")
	until(t, mine, "SELECT count(*) FILTER (WHERE status = 'RECOVERY') = 2 AND count(*) FILTER (WHERE status = 'PENDING') = 1 FROM aidb.running_tasks")
	require.Equal(t, "", servertest.Value(t, mine, "SELECT string_agg(coalesce(token, ''), '') FROM aidb.pending_actions"), "what confirms is in no dump")
	require.Equal(t, "0", servertest.Value(t, restored, "SELECT count(*) FROM pg_stat_activity WHERE datname = 'restored' AND backend_type = 'aidb worker'"))

	s.Model.Answer("writer", writer)
	servertest.Exec(t, admin, "ALTER SYSTEM RESET aidb.max_workers")
	servertest.Exec(t, admin, "SELECT pg_reload_conf()")
	for i, conn := range []*pgx.Conn{mine, ann} {
		for _, k := range open {
			require.Equal(t, "SUCCESS", wait(t, conn, k).Status, "%d", i)
		}
		root := []*pgx.Conn{restored, admin}[i]
		require.Equal(t, "one 0 1, one 1 1, one 2 1, two 0 1, two 1 1, two 2 1",
			servertest.Value(t, root, "SELECT string_agg(concat_ws(' ', task, n, k), ', ' ORDER BY task, n) FROM (SELECT task, n, count(*) k FROM effects WHERE task <> 'three' GROUP BY 1, 2) e"))
		require.Empty(t, servertest.Rows(t, root, "SELECT * FROM aidb.verify_decisions()"))
	}
	require.Equal(t, "over", wait(t, mine, submit(t, mine, "over", "and again")).Message)
	servertest.Exec(t, restored, "SELECT aidb.create_sql_tool('later', 'x', 'SELECT 1', '[]')")
	require.Empty(t, s.Crashes())
}
