package tasks

import (
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aidb/tests/cluster"
	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// A fast stop ends at once with tasks in hand of every kind, and they go on after the start.
func TestFastStop_WithTasksInHand(t *testing.T) {
	s := servertest.Start(t, conf("aidb.tool_timeout = 600000"))
	ann := s.Conn(t, "ann")
	_ = locked(t, s) // ends with its session
	tasks := hung(t, s, ann)
	s.Agent(t, ann, "resting", nil, fakemodel.Call("sleep", map[string]any{"seconds": 2}), fakemodel.Say("rested"))
	tasks = append(tasks, submit(t, ann, "resting", "rest"))
	until(t, ann, "SELECT phase = 'sleep' FROM aidb.running_tasks WHERE task_id = $1::uuid", tasks[11].ID)
	begun := time.Now()
	require.NoError(t, s.Stop(t.Context(), "fast"))
	t.Logf("stopped in %v", time.Since(begun))
	require.Less(t, time.Since(begun), patience)
	require.NoError(t, s.WaitGone(patience))
	require.Empty(t, s.Crashes())
	s.Model.Script("hung", fakemodel.Say("back"))
	require.NoError(t, s.Cluster.Start(t.Context()))
	ann = s.Conn(t, "ann")
	for i, k := range tasks {
		require.Equal(t, []string{"back", "read", "rested"}[max(0, i-9)], wait(t, ann, k).Message)
	}
}

// Limits of a model hold for all tasks of all workers together.
func TestLimits_HoldAcrossWorkers(t *testing.T) {
	admin := server.Admin(t)
	var answered atomic.Int64
	server.Model.Answer("narrow", func(fakemodel.Request) fakemodel.Reply {
		answered.Add(1)
		return fakemodel.Reply{Content: "done", Delay: 20 * time.Millisecond}
	})
	servertest.Exec(t, admin, fmt.Sprintf(`SELECT aidb.create_model('narrow', 'openai_completions', '{"model": "narrow", "url": "%s"}' || aidb.model_limits(max_concurrent_requests => 3), validate => false)`, server.Model.URL()))
	servertest.Exec(t, admin, "SELECT * FROM aidb.create_agent('narrow', 'x', 'narrow')")
	watched := make(chan int)
	go func() {
		highest := 0
		cluster.Wait(patience, func() bool {
			highest = max(highest, server.Model.InFlight("narrow"))
			return answered.Load() == 60
		})
		watched <- highest
	}()
	for _, role := range []string{"ann", "bob"} {
		conn := server.Conn(t, role)
		servertest.Exec(t, conn, "SELECT aidb.agent_submit('narrow', 'go ' || i) FROM generate_series(1, 30) i")
	}
	until(t, admin, "SELECT count(*) = 60 FROM aidb.agent_tasks t JOIN aidb.agents a ON a.id = t.agent_id WHERE a.name = 'narrow' AND t.status = 'SUCCESS'")
	require.LessOrEqual(t, <-watched, 3)
	require.EqualValues(t, 60, answered.Load())
}

// Every setting that a reload changes is changed by one, under tasks, in all processes of ours.
func TestReload_ChangesEverySettingUnderTasks(t *testing.T) {
	s := servertest.Start(t, conf())
	admin, ann := s.Admin(t), s.Conn(t, "ann")
	s.Agent(t, ann, "steady", []string{"run_sql_query"}, fakemodel.Query("SELECT 1"), fakemodel.Say("done"))
	s.Agent(t, ann, "hung", nil, fakemodel.Reply{Hang: true})
	hanging := submit(t, ann, "hung", "wait")
	until(t, ann, "SELECT phase = 'model' FROM aidb.running_tasks WHERE task_id = $1::uuid", hanging.ID)
	changed := 0
	for _, row := range servertest.Rows(t, admin, `SELECT name, vartype, boot_val, min_val, max_val, enumvals, context FROM pg_settings WHERE name LIKE 'aidb.%' ORDER BY name`) {
		name, kind := row["name"].(string), row["vartype"].(string)
		boot, _ := row["boot_val"].(string)
		if row["context"] == "postmaster" {
			continue
		}
		values := []string{"a_value"}
		switch kind {
		case "bool":
			values = []string{"on", "off"}
		case "enum":
			values = nil
			for _, v := range row["enumvals"].([]any) {
				values = append(values, v.(string))
			}
		case "integer":
			values = []string{row["min_val"].(string), row["max_val"].(string)}
		}
		for _, value := range values {
			_, err := admin.Exec(t.Context(), "ALTER SYSTEM SET "+name+" = '"+value+"'")
			if kind == "string" && servertest.State(err) == "22023" {
				continue // it has a form of its own
			}
			require.NoError(t, err, name)
			servertest.Exec(t, admin, "SELECT pg_reload_conf()")
			until(t, admin, "SELECT current_setting($1) IS NOT DISTINCT FROM $2 OR (SELECT setting = $2 FROM pg_settings WHERE name = $1)", name, value)
			changed++
		}
		servertest.Exec(t, admin, "ALTER SYSTEM RESET "+name)
		servertest.Exec(t, admin, "SELECT pg_reload_conf()")
		until(t, admin, "SELECT setting IS NOT DISTINCT FROM $2 FROM pg_settings WHERE name = $1", name, boot)
		if strings.Contains(name, "worker") || changed%20 == 0 {
			require.Equal(t, "done", wait(t, ann, submit(t, ann, "steady", "go")).Message, name)
		}
	}
	require.Greater(t, changed, 50)
	require.Equal(t, "SUCCESS", wait(t, ann, submit(t, ann, "steady", "go")).Status)
	require.Equal(t, "true", servertest.Value(t, ann, "SELECT aidb.cancel_task($1::uuid)", hanging.ID))
	require.Equal(t, "CANCELED", wait(t, ann, hanging).Status)
	require.Empty(t, s.Crashes())
}

// No worker at all is a way to let tasks wait; what is in hand has a moment, then it is handed back.
func TestReload_NoWorkersLetsTasksWait(t *testing.T) {
	s := servertest.Start(t, conf())
	admin, ann := s.Admin(t), s.Conn(t, "ann")
	s.Agent(t, ann, "quick", nil, fakemodel.Say("done"))
	require.Equal(t, "done", wait(t, ann, submit(t, ann, "quick", "go")).Message)
	servertest.Exec(t, admin, "ALTER SYSTEM SET aidb.max_workers = 0")
	servertest.Exec(t, admin, "SELECT pg_reload_conf()")
	until(t, admin, "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'aidb worker'")
	k := submit(t, ann, "quick", "later")
	require.Equal(t, "PENDING", servertest.Value(t, ann, "SELECT status FROM aidb.agent_task($1::uuid)", k.ID))
	servertest.Exec(t, admin, "ALTER SYSTEM SET aidb.max_workers = 1")
	servertest.Exec(t, admin, "SELECT pg_reload_conf()")
	require.Equal(t, "done", wait(t, ann, k).Message)
}

// A task that sleeps is a row with a time: no worker has it, and when nobody has anything to do there is none.
func TestSleep_HoldsNothing(t *testing.T) {
	s := servertest.Start(t, conf("aidb.worker_idle_timeout = 1"))
	admin, ann := s.Admin(t), s.Conn(t, "ann")
	s.Model.Answer("sleeper", func(r fakemodel.Request) fakemodel.Reply {
		if r.Messages[len(r.Messages)-1].Role == "tool" {
			return fakemodel.Say("awake")
		}
		return fakemodel.Call("sleep", map[string]any{"seconds": 250})
	})
	s.Agent(t, ann, "sleeper", nil)
	s.RegisterModel(t, ann, "boss", s.Model.URL())
	s.Model.Script("boss", fakemodel.Call("sleeper", map[string]any{"prompt": "sleep"}), fakemodel.Say("woke it"))
	servertest.Exec(t, ann, "SELECT * FROM aidb.create_agent('boss', 'x', 'boss', delegates => '{sleeper}')")
	servertest.Exec(t, ann, "SELECT aidb.agent_submit('sleeper', 'sleep ' || i) FROM generate_series(1, 20) i")
	above := submit(t, ann, "boss", "go")
	until(t, ann, "SELECT count(*) FILTER (WHERE phase = 'sleep' AND status = 'IN_PROGRESS' AND pid IS NULL) >= 21 AND count(*) FILTER (WHERE phase <> 'sleep') = 0 FROM aidb.running_tasks")
	until(t, admin, "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'aidb worker'")
	require.Equal(t, "true", servertest.Value(t, ann, "SELECT aidb.cancel_task((SELECT min(r.task_id::text) FROM aidb.running_tasks r JOIN aidb.agent_tasks t USING (task_id) WHERE r.agent = 'sleeper' AND r.phase = 'sleep' AND t.parent_task_id IS NULL)::uuid)"))
	require.Equal(t, "1", servertest.Value(t, ann, "SELECT count(*) FROM aidb.agent_tasks WHERE status = 'CANCELED'"))
	// as if their time had come: a call that was logged so long ago is over
	servertest.Exec(t, admin, `UPDATE aidb_internal.logged_steps SET created_at = created_at - interval '251 s';
		UPDATE aidb_internal.callers SET since = since - interval '251 s';
		UPDATE aidb_internal.agent_task_queue SET awaits_until = awaits_until - interval '251 s' WHERE awaits_until IS NOT NULL;
		SELECT aidb_internal.wake_workers('ann', NULL)`)
	until(t, ann, "SELECT count(*) = 20 FROM aidb.agent_tasks WHERE status = 'SUCCESS' AND parent_task_id IS NULL")
	require.Equal(t, "woke it", wait(t, ann, above).Message)
	require.Contains(t, servertest.Value(t, ann, "SELECT string_agg(DISTINCT response_payload::text, '') FROM aidb_internal.action_log WHERE action_type = 'tool_response' AND request_payload->>'tool_name' = 'sleep'"), `{\"slept\": 250}`)
}

// A crash does not make a sleep longer, and the agent's time budget ends it.
func TestSleep_GoesOnThroughACrash(t *testing.T) {
	s := servertest.Start(t, conf())
	ann := s.Conn(t, "ann")
	s.Agent(t, ann, "sleeper", nil, fakemodel.Call("sleep", map[string]any{"seconds": 6}), fakemodel.Say("awake"))
	s.Agent(t, ann, "hasty", nil, fakemodel.Call("sleep", map[string]any{"seconds": 600}), fakemodel.Say("awake"))
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('hasty', timeout => 3)")
	k, hasty := submit(t, ann, "sleeper", "go"), submit(t, ann, "hasty", "go")
	until(t, ann, "SELECT count(*) = 1 FROM aidb.running_tasks WHERE phase = 'sleep' AND task_id = $1::uuid", k.ID)
	require.Equal(t, "TIMEOUT", wait(t, ann, hasty).Status)
	require.NoError(t, s.Kill(syscall.SIGKILL))
	require.NoError(t, s.WaitGone(patience))
	require.NoError(t, s.Cluster.Start(t.Context()))
	ann = s.Conn(t, "ann")
	require.Equal(t, "awake", wait(t, ann, k).Message)
	require.Equal(t, "1", servertest.Value(t, ann, "SELECT count(*) FROM aidb_internal.action_log WHERE conversation_id = $1::uuid AND action_type = 'tool_call'", k.Conversation))
	t.Log("slept for", servertest.Value(t, ann, `SELECT max(created_at) FILTER (WHERE action_type = 'tool_response') - max(created_at) FILTER (WHERE action_type = 'tool_call')
		FROM aidb_internal.action_log WHERE conversation_id = $1::uuid`, k.Conversation))
}
