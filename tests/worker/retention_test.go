// Package worker proves what the background worker does, on a server of its own that has the library preloaded.
package worker

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aidb/tests/cluster"
	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

func TestWorker_KeepsTheLogWithinItsRetention(t *testing.T) {
	s := servertest.Start(t, cluster.Options{Preload: true, Conf: []string{
		"aidb.log_retention_days = 30", "aidb.maintenance_naptime = 1",
	}})
	// the database did not exist when the server started
	servertest.Exec(t, s.Admin(t), "ALTER SYSTEM SET aidb.maintenance_database = '"+servertest.Database+"'")
	require.NoError(t, s.Stop(t.Context(), "fast"))
	require.NoError(t, s.Cluster.Start(t.Context()))
	admin := s.Admin(t)
	require.Equal(t, "1", servertest.Value(t, admin, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'aidb maintenance worker'"))

	s.Agent(t, admin, "a", nil, fakemodel.Reply{Content: "hi"})
	old := servertest.MustAsk(t, admin, "a", "long ago")
	fresh := servertest.MustAsk(t, admin, "a", "just now")
	for _, table := range []string{"action_log", "agent_task_queue"} {
		servertest.Exec(t, admin, "UPDATE aidb_internal."+table+" SET created_at = created_at - interval '31 days' WHERE conversation_id = $1::uuid", old.Conversation)
	}
	require.True(t, cluster.Wait(30*time.Second, func() bool {
		return servertest.Value(t, admin, "SELECT count(*) FROM aidb_internal.action_log WHERE conversation_id = $1::uuid", old.Conversation) == "0"
	}), "the old conversation is still there")
	require.Equal(t, "0", servertest.Value(t, admin, "SELECT count(*) FROM aidb_internal.agent_task_queue WHERE conversation_id = $1::uuid", old.Conversation))
	require.Equal(t, "1", servertest.Value(t, admin, "SELECT count(*) FROM aidb_internal.agent_task_queue WHERE conversation_id = $1::uuid", fresh.Conversation))
	require.NotEqual(t, "0", servertest.Value(t, admin, "SELECT count(*) FROM aidb.decisions WHERE conversation_id = $1::uuid", old.Conversation),
		"decisions are not the log: they stay")

	// It ends with the server, and nothing of it is left.
	require.NoError(t, s.Stop(context.Background(), "fast"))
	require.Empty(t, s.Processes())
	require.Empty(t, s.Crashes())
}
