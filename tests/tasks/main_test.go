// Package tasks proves what is promised of background tasks, through SQL, on servers that have the library preloaded.
package tasks

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/cluster"
	"aidb/tests/servertest"
)

// patience is how long anything may take before it counts as lost.
const patience = 30 * time.Second

var server *servertest.Server

func TestMain(m *testing.M) { servertest.Main(m, conf("track_commit_timestamp = on"), &server) }

func conf(more ...string) cluster.Options {
	return cluster.Options{Preload: true, Conf: append([]string{"max_worker_processes = 32", "aidb.worker_idle_timeout = 5"}, more...)}
}

// task is a submitted task.
type task struct{ ID, Conversation string }

// submit hands a prompt to an agent. Further arguments are SQL, such as "read_only => true".
func submit(t testing.TB, conn *pgx.Conn, agent, prompt string, args ...string) task {
	t.Helper()
	sql := "SELECT task_id::text, conversation_id, coalesce(error, '') FROM aidb.agent_submit($1, $2"
	for _, a := range args {
		sql += ", " + a
	}
	var k task
	var refusal string
	require.NoError(t, conn.QueryRow(t.Context(), sql+")", agent, prompt).Scan(&k.ID, &k.Conversation, &refusal))
	require.Empty(t, refusal)
	return k
}

// result is the row of aidb.agent_task.
type result struct {
	Status, Message, Error string
	Rounds                 int
}

const resultColumns = "status::text, coalesce(message, ''), coalesce(error, ''), rounds"

// wait waits for a task to be over.
func wait(t testing.TB, conn *pgx.Conn, k task) result {
	t.Helper()
	rows, err := conn.Query(t.Context(), "SELECT "+resultColumns+" FROM aidb.wait_task($1::uuid, $2::interval)", k.ID, patience.String())
	require.NoError(t, err)
	r, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[result])
	require.NoError(t, err)
	return r
}

// until waits until an SQL condition holds.
func until(t testing.TB, conn *pgx.Conn, condition string, args ...any) {
	t.Helper()
	require.True(t, cluster.Wait(patience, func() bool { return servertest.Value(t, conn, condition, args...) == "true" }), condition)
}
