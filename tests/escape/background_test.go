package escape

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/cluster"
)

// The same attacks in background tasks. There the transaction is the tool call's own and commits as the role, so constraints
// that are checked at the end are allowed; all else has to hold as it does in a session of the caller's: no code of the
// role's runs as anybody else, nothing is written by a reading call, and the worker is afterwards what it was. A worker
// serves one tool call after the other, for everybody: what one of them left would be there for the next.

// inBackground are the classes whose cases say something about a worker. The others are about the caller's own session, or
// take all the time that they are given.
var inBackground = []string{
	"role-escape", "guc", "prepared", "deferred", "temp", "plant", "files", "fdw", "txn", "lock", "notify", "lo",
	"ro-statement", "ro-function", "ro-toggle", "nested", "internal",
}

func TestCases_InTheBackground(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	own, err := cluster.New(ctx, cluster.Options{Preload: true, Conf: []string{
		"autovacuum = off", "max_prepared_transactions = 5", "log_min_messages = warning", "max_worker_processes = 32", "aidb.worker_idle_timeout = 5",
	}})
	require.NoError(t, err)
	shared := server
	server = own
	defer func() {
		server = shared
		require.Empty(t, own.Crashes())
		require.Empty(t, leaks.FindAllString(own.Log(), -1))
		own.Remove()
	}()
	require.NoError(t, makeTemplate(ctx))
	require.NoError(t, script(ctx, template, workerState))

	n := 0
	for _, c := range allCases(t) {
		if !slices.Contains(inBackground, c.header["class"]) || c.header["time"] != "" || len(c.attacks()) == 0 {
			continue
		}
		n++
		t.Run(c.name, func(t *testing.T) { c.runInBackground(t) })
	}
	require.Greater(t, n, 50)
}

// workerState is a tool's own look at the process it runs in: a function of the superuser's, so that it sees everything.
const workerState = `
CREATE FUNCTION harness.worker() RETURNS text LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
    SELECT concat_ws(' ',
        (SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory' AND objsubid < 3), 'advisory locks,',
        (SELECT count(*) FROM pg_listening_channels()), 'channels,',
        (SELECT count(*) FROM pg_class WHERE relnamespace = pg_my_temp_schema()), 'temporary tables,',
        current_setting('app.marker', true), current_setting('transaction_read_only'), current_setting('statement_timeout'), current_setting('row_security'))
$f$;
GRANT EXECUTE ON FUNCTION harness.worker() TO PUBLIC;`

// background has the agent run a statement as a tool call of a background task.
func background(ctx context.Context, t *testing.T, conn *pgx.Conn, agent, statement string) string {
	t.Helper()
	var task, conversation, refused, status string
	require.NoError(t, conn.QueryRow(ctx, "SELECT coalesce(task_id::text, ''), coalesce(conversation_id, ''), coalesce(error, '') FROM aidb.agent_submit($1, $2)",
		agent, statement).Scan(&task, &conversation, &refused))
	require.Empty(t, refused, statement)
	require.NoError(t, conn.QueryRow(ctx, "SELECT status::text FROM aidb.wait_task($1::uuid, '50 s')", task).Scan(&status))
	require.Contains(t, []string{"SUCCESS", "ERROR", "TIMEOUT"}, status, statement)
	var told string
	require.NoError(t, conn.QueryRow(ctx, "SELECT coalesce(harness.answer($1)::text, '')", conversation).Scan(&told))
	return told
}

func (c *escapeCase) runInBackground(t *testing.T) {
	db := database(t)
	admin := connect(t, "postgres", db)
	for name := range strings.FieldsSeq(c.header["needs"]) {
		if s := execute(t.Context(), admin, "CREATE EXTENSION "+name); s.state != "" {
			t.Skipf("needs extension %s: %s", name, s.message)
		}
	}
	for _, sql := range c.of("setup") {
		s := execute(t.Context(), admin, sql)
		require.Empty(t, s.state, "setup: %s\n%s", s.message, sql)
		do(t, admin, "RESET ROLE")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	conn := connect(t, callers[c.header["caller"]], db)
	agent, readOnly := "guest_writes", c.header["mode"] == "readonly"
	switch {
	case c.header["agent"] == "bare":
		agent = "bare_reads"
	case readOnly:
		agent = "guest_reads"
	}
	const look = "SELECT current_user AS u, harness.worker() AS w"
	before := background(ctx, t, conn, agent, look)
	stored := digest(t, admin)
	var told []string
	for _, sql := range c.attacks() {
		told = append(told, fmt.Sprintf("%.200s\n    -> %.400s", sql, background(ctx, t, conn, agent, sql)))
	}
	require.Equal(t, before, background(ctx, t, conn, agent, look), "the worker is not what it was\n%v", told)
	require.Equal(t, "f", value(t, admin, "SELECT judge.breached()"), "%s\n%v", c.header["must"], told)
	if readOnly {
		require.Empty(t, written(stored, digest(t, admin)), "a reading call wrote\n%v", told)
	}
}
