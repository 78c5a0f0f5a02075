package tasks

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/cluster"
	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// Two machines: while the primary runs tasks that write, its standby answers read-only agents, and sees what the tasks
// have done. Then the primary is lost in the middle of them, the standby is promoted, and the tasks go on there.
func TestStandby_AnswersThenTakesOver(t *testing.T) {
	s := servertest.Start(t, conf("aidb.model_retries = 10", "aidb.model_retry_delay = 50"))
	admin := s.Admin(t)
	s.Model.Answer("writer", writer)
	servertest.Exec(t, admin, `CREATE ROLE pen; GRANT pen TO ann, bob; CREATE TABLE effects (task text, n int); GRANT INSERT ON effects TO pen; GRANT SELECT ON effects TO bob;
		GRANT EXECUTE ON FUNCTION aidb.execute_sql(text) TO pen; SELECT aidb.create_purpose('writing', 'pen')`)
	s.RegisterModel(t, admin, "writer", s.Model.URL())
	servertest.Exec(t, admin, `SELECT * FROM aidb.create_agent('writer', 'x', 'writer', tools => '{execute_sql}', purpose => 'writing');
		SELECT * FROM aidb.create_agent('boss', 'x', 'writer', delegates => '{writer}', purpose => 'writing')`)
	s.Agent(t, s.Conn(t, "bob"), "counter", []string{"run_sql_query"})
	s.Model.Answer("counter", func(r fakemodel.Request) fakemodel.Reply {
		for _, m := range r.Messages {
			if m.Role == "tool" {
				return fakemodel.Say("counted")
			}
		}
		return fakemodel.Query("SELECT count(*) FROM effects")
	})
	standby, err := s.Standby(t.Context())
	require.NoError(t, err)
	t.Cleanup(standby.Remove)
	require.NoError(t, standby.CatchUp(t.Context(), s.Cluster))
	connect := func(c *cluster.Cluster, role string) *pgx.Conn {
		conn, err := c.Connect(t.Context(), role, servertest.Database)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		return conn
	}

	// readers on the standby, while there is one
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var asked, failed atomic.Int64
	var promoting atomic.Bool // a call after it is no longer read-only, and has a conversation
	var group sync.WaitGroup
	for range 2 {
		bob := connect(standby, "bob")
		group.Go(func() {
			for ctx.Err() == nil {
				o, err := servertest.Ask(context.WithoutCancel(ctx), bob, "counter", "how many?")
				if err != nil || o.Message != "counted" || (o.Conversation != "" && !promoting.Load()) {
					failed.Add(1)
					t.Logf("on the standby: %+v %v", o, err)
					return
				}
				asked.Add(1)
			}
		})
	}
	background := "SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'aidb %'"
	watcher := connect(standby, "postgres")
	ann := s.Conn(t, "ann")
	prompts := 0
	submitted := func(n int) {
		for range n {
			submit(t, ann, []string{"writer", "boss"}[prompts%2], fmt.Sprintf("task %d", prompts))
			prompts++
		}
	}
	submitted(20)
	until(t, ann, "SELECT count(*) = 0 FROM aidb.running_tasks")
	before := asked.Load()
	require.True(t, cluster.Wait(patience, func() bool { return asked.Load() > before || failed.Load() > 0 }))
	require.Zero(t, failed.Load())
	require.NoError(t, standby.CatchUp(t.Context(), s.Cluster))
	require.Equal(t, "60", servertest.Value(t, watcher, "SELECT count(*) FROM effects"), "what the tasks did is there")
	require.Equal(t, "0", servertest.Value(t, watcher, background), "a standby has no process of ours")
	_, err = connect(standby, "ann").Exec(t.Context(), "SELECT * FROM aidb.agent_submit('writer', 'not here')")
	require.Equal(t, "25006", servertest.State(err), "%v", err)

	// lost in the middle: what was submitted has been replicated, how far each task came is left to chance
	seen := s.Model.Served()
	submitted(40)
	require.NoError(t, standby.CatchUp(t.Context(), s.Cluster))
	require.NoError(t, s.Model.WaitFor(t.Context(), "tasks under way", func() bool { return s.Model.Served() > seen+30 }))
	require.NoError(t, s.Kill(syscall.SIGKILL))
	require.NoError(t, s.WaitGone(patience))
	promoting.Store(true)
	require.NoError(t, standby.Promote(t.Context()))
	stop()
	group.Wait()
	require.Zero(t, failed.Load(), "calls go on through the promotion")

	root := connect(standby, "postgres")
	value := func(sql string) string { return servertest.Value(t, root, sql) }
	require.True(t, cluster.Wait(2*time.Minute, func() bool { return value("SELECT count(*) FROM aidb.running_tasks") == "0" }), "tasks that do not end: %s",
		value("SELECT string_agg(r::text, E'\n') FROM aidb.running_tasks r"))
	require.Equal(t, fmt.Sprint(prompts), value("SELECT count(*) FROM aidb.agent_tasks WHERE parent_task_id IS NULL AND status = 'SUCCESS' AND NOT blocking"))
	require.Equal(t, "", value("SELECT string_agg(concat_ws(' ', task, n, k), '; ') FROM (SELECT task, n, count(*) k FROM effects GROUP BY 1, 2) e WHERE k > 1"), "repeated effects")
	require.Equal(t, fmt.Sprint(prompts*effects), value("SELECT count(*) FROM effects"))
	require.Empty(t, servertest.Rows(t, root, "SELECT * FROM aidb.verify_decisions()"))

	// and new ones begin
	again := connect(standby, "ann")
	require.Equal(t, "SUCCESS", wait(t, again, submit(t, again, "writer", "anew")).Status)
	require.Empty(t, standby.Crashes())
}
