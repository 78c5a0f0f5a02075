package tasks

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

func TestCancel_EndsAWaitingTaskAtOnce(t *testing.T) {
	ann := server.Conn(t, "ann")
	server.Agent(t, ann, "hanging", nil, fakemodel.Reply{Hang: true})
	k := submit(t, ann, "hanging", "think")
	until(t, ann, "SELECT phase = 'model' FROM aidb.running_tasks WHERE task_id = $1::uuid", k.ID)
	require.NoError(t, server.Model.WaitFor(t.Context(), "the request", func() bool { return server.Model.InFlight("hanging") == 1 }))
	require.Equal(t, "ann", servertest.Value(t, server.Admin(t), "SELECT a.usename FROM aidb.running_tasks r JOIN pg_stat_activity a USING (pid) WHERE r.task_id = $1::uuid AND a.backend_type = 'aidb worker'", k.ID))
	// nothing of it is open while the model thinks
	require.Equal(t, "0", servertest.Value(t, server.Admin(t),
		"SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'aidb worker' AND (xact_start IS NOT NULL OR backend_xmin IS NOT NULL)"))
	require.Equal(t, "true", servertest.Value(t, ann, "SELECT aidb.cancel_task($1::uuid)", k.ID))
	r := wait(t, ann, k)
	require.Equal(t, "CANCELED", r.Status)
	require.Equal(t, "canceled by role 'ann'", r.Error)
	require.Equal(t, "false", servertest.Value(t, ann, "SELECT aidb.cancel_task($1::uuid)", k.ID), "it is over")
	require.NoError(t, server.Model.WaitFor(t.Context(), "the connection to be closed", func() bool { return server.Model.InFlight("hanging") == 0 }))

	server.Model.Script("hanging", fakemodel.Say("at last"))
	var again task
	require.NoError(t, ann.QueryRow(t.Context(), "SELECT task_id::text, conversation_id FROM aidb.retry_task($1::uuid)", k.ID).Scan(&again.ID, &again.Conversation))
	require.Equal(t, k.Conversation, again.Conversation)
	require.Equal(t, "at last", wait(t, ann, again).Message)
	_, err := ann.Exec(t.Context(), "SELECT * FROM aidb.retry_task($1::uuid)", again.ID)
	require.Equal(t, "55000", servertest.State(err), "%v", err)
}

// A transaction that cancels and stays open keeps no worker waiting.
// The statement that a tool is in is interrupted; its effect goes, and so does what the worker has not been told of yet.
func TestCancel_InterruptsAStatement(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	servertest.Exec(t, admin, `CREATE TABLE public.slowly (n int); GRANT ALL ON public.slowly TO ann;
		CREATE FUNCTION public.slowly() RETURNS int LANGUAGE plpgsql AS 'BEGIN INSERT INTO public.slowly VALUES (1); PERFORM pg_sleep(600); RETURN 1; END';
		SELECT aidb.create_sql_tool('slowly', 'takes long', 'SELECT public.slowly()', aidb.tool_params(), read_only => false, timeout_ms => 600000)`)
	server.Agent(t, ann, "slowly", []string{"slowly"}, fakemodel.Call("slowly", nil), fakemodel.Say("too late"))
	k := submit(t, ann, "slowly", "go")
	until(t, admin, "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND backend_type = 'aidb worker'")
	require.Equal(t, "true", servertest.Value(t, ann, "SELECT aidb.cancel_task($1::uuid)", k.ID))
	require.Equal(t, result{Status: "CANCELED", Error: "canceled by role 'ann'", Rounds: 1}, wait(t, ann, k))
	require.Equal(t, "0", servertest.Value(t, admin, "SELECT count(*) FROM public.slowly"))
	require.Equal(t, "0", servertest.Value(t, admin, "SELECT count(*) FROM aidb_internal.task_cancels"))
	until(t, admin, "SELECT count(*) = 0 FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND backend_type = 'aidb worker'")
	require.Len(t, server.Model.Requests("slowly"), 1)
}

func TestCancel_InAnOpenTransactionStopsNobody(t *testing.T) {
	ann, other := server.Conn(t, "ann"), server.Conn(t, "ann")
	server.Agent(t, ann, "patient", nil, fakemodel.Reply{Hang: true})
	server.Agent(t, ann, "brisk", nil, fakemodel.Say("quick"))
	k := submit(t, ann, "patient", "think")
	until(t, ann, "SELECT phase = 'model' FROM aidb.running_tasks WHERE task_id = $1::uuid", k.ID)
	servertest.Exec(t, other, "BEGIN")
	require.Equal(t, "true", servertest.Value(t, other, "SELECT aidb.cancel_task($1::uuid)", k.ID))
	require.Equal(t, "quick", wait(t, ann, submit(t, ann, "brisk", "go")).Message)
	require.Equal(t, "IN_PROGRESS", servertest.Value(t, ann, "SELECT status FROM aidb.agent_task($1::uuid)", k.ID))
	servertest.Exec(t, other, "COMMIT")
	require.Equal(t, "CANCELED", wait(t, ann, k).Status)
}

func TestNotify_TellsEveryChangeOfStatus(t *testing.T) {
	ann := server.Conn(t, "ann")
	server.Agent(t, ann, "told", nil, fakemodel.Say("done"))
	servertest.Exec(t, ann, "LISTEN aidb_task")
	k := submit(t, ann, "told", "go")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var seen []string
	for len(seen) < 3 {
		n, err := ann.WaitForNotification(ctx)
		require.NoError(t, err, "after %v", seen)
		var payload struct {
			Task   string `json:"task_id"`
			Status string `json:"status"`
		}
		require.NoError(t, json.Unmarshal([]byte(n.Payload), &payload))
		if payload.Task == k.ID {
			seen = append(seen, payload.Status)
		}
	}
	require.Equal(t, []string{"PENDING", "IN_PROGRESS", "SUCCESS"}, seen)
}

func TestWatch_ShowsTheSteps(t *testing.T) {
	ann, notices := server.ConnNoting(t, "ann")
	server.Agent(t, ann, "shown", nil, fakemodel.Call("sleep", json.RawMessage(`{"seconds": 1}`)), fakemodel.Say("done"))
	k := submit(t, ann, "shown", "go")
	require.Equal(t, "done", servertest.Value(t, ann, "SELECT message FROM aidb.watch_task($1::uuid)", k.ID))
	text := strings.Join(notices.Lines("NOTICE"), "\n")
	require.Contains(t, text, "IN_PROGRESS, sleep, round 1")
	require.Contains(t, text, "SUCCESS, round 2")
}

func TestQueue_IsBoundedForEachSessionUser(t *testing.T) {
	s := servertest.Start(t, conf("aidb.max_queued_tasks = 3"))
	ann, bob := s.Conn(t, "ann"), s.Conn(t, "bob")
	s.Agent(t, ann, "full", nil, fakemodel.Reply{Hang: true})
	servertest.Exec(t, ann, "BEGIN")
	for range 3 {
		submit(t, ann, "full", "go")
	}
	require.Equal(t, "queue is full: 3 tasks of role 'ann' are waiting, the limit is aidb.max_queued_tasks",
		servertest.Value(t, ann, "SELECT error FROM aidb.agent_submit('full', 'one more')"))
	submit(t, bob, "full", "another user's queue")
	servertest.Exec(t, ann, "ROLLBACK")
}
