package tasks

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/cluster"
	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// till makes a table that ann and bob may write, and a tool "<name>_add" of class confirm that adds a row and returns it.
func till(t testing.TB, admin *pgx.Conn, name string, more ...string) {
	t.Helper()
	servertest.Exec(t, admin, fmt.Sprintf(`CREATE TABLE public.%[1]s (n int, who text); GRANT ALL ON public.%[1]s TO ann, bob;
		SELECT aidb.create_sql_tool('%[1]s_add', 'adds', 'INSERT INTO public.%[1]s VALUES (${n}, current_user) RETURNING n',
			aidb.tool_params(aidb.tool_param('n', 'int', 'what')), read_only => false, risk => 'confirm'%[2]s)`,
		name, strings.Join(append([]string{""}, more...), ", ")))
}

func add(name string, n int) fakemodel.Reply {
	return fakemodel.Call(name+"_add", map[string]any{"n": n})
}

type action struct{ ID, Token string }

// asked waits until a task waits for a person, and returns what it proposed as the connection's role sees it.
func asked(t testing.TB, conn *pgx.Conn, k task) action {
	t.Helper()
	var a action
	require.True(t, cluster.Wait(patience, func() bool {
		rows := servertest.Rows(t, conn, "SELECT action_id::text AS id, token FROM aidb.pending_actions WHERE conversation_id = $1::uuid", k.Conversation)
		if len(rows) == 1 {
			a = action{rows[0]["id"].(string), rows[0]["token"].(string)}
		}
		return len(rows) == 1
	}), "nothing waits")
	return a
}

func confirm(ctx context.Context, conn *pgx.Conn, a action) (string, error) {
	var status string
	err := conn.QueryRow(ctx, "SELECT string_agg(status, ',' ORDER BY step) FROM aidb.confirm_action($1::uuid, $2)", a.ID, a.Token).Scan(&status)
	return status, err
}

// lastResult is what the newest tool call of a model came back with.
func lastResult(t testing.TB, model string) string {
	t.Helper()
	requests := server.Model.Requests(model)
	turn := requests[len(requests)-1].Turn()
	require.NotEmpty(t, turn)
	return turn[len(turn)-1].Result
}

func TestConfirm_ResumesTheTask(t *testing.T) {
	admin, ann, other := server.Admin(t), server.Conn(t, "ann"), server.Conn(t, "ann")
	till(t, admin, "till")
	server.Agent(t, ann, "till", []string{"till_add", "run_sql_query"}, fakemodel.Calls(add("till", 7), fakemodel.Query("SELECT count(*) FROM public.till")), fakemodel.Say("done"))
	servertest.Exec(t, ann, "LISTEN aidb_task")
	k := submit(t, ann, "till", "add seven")
	a := asked(t, other, k)

	// it waits and holds nothing
	require.Equal(t, "AWAIT_APPROVAL", servertest.Value(t, ann, "SELECT status FROM aidb.agent_task($1::uuid)", k.ID))
	require.Equal(t, "AWAIT_APPROVAL awaiting_confirmation", servertest.Value(t, ann, "SELECT status || ' ' || phase FROM aidb.running_tasks WHERE task_id = $1::uuid", k.ID))
	require.Equal(t, "AWAIT_APPROVAL", servertest.Value(t, ann, "SELECT status FROM aidb.wait_task($1::uuid, '1 ms')", k.ID))
	require.Equal(t, "true", servertest.Value(t, admin, "SELECT worker IS NULL AND awaits_until > clock_timestamp() FROM aidb_internal.agent_task_queue WHERE id = $1::uuid", k.ID))
	until(t, admin, "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type LIKE 'aidb %' AND (xact_start IS NOT NULL OR backend_xmin IS NOT NULL)")
	require.Equal(t, "0", servertest.Value(t, admin, "SELECT count(*) FROM public.till"))
	require.Len(t, server.Model.Requests("till"), 1)

	status, err := confirm(t.Context(), other, a)
	require.NoError(t, err)
	require.Equal(t, "SUCCESS", status)
	require.Equal(t, result{Status: "SUCCESS", Message: "done", Rounds: 2}, wait(t, ann, k))
	require.Equal(t, "(7,ann)", servertest.Value(t, admin, "SELECT string_agg(r::text, ' ') FROM public.till r"))
	requests := server.Model.Requests("till")
	turn := requests[len(requests)-1].Turn()
	require.Len(t, turn, 2)
	require.Contains(t, turn[0].Result, `"status":"done"`)
	require.Contains(t, turn[0].Result, `"result":[{"n":7}]`)
	require.Equal(t, `[{"count": 1}]`, turn[1].Result, "the call behind it saw the effect")
	require.Equal(t, []string{"user_prompt", "model_request", "model_response", "tool_call", "approval", "approval", "tool_response", "tool_call",
		"tool_response", "model_request", "model_response", "answer"}, servertest.Types(servertest.Log(t, ann, k.Conversation)))
	require.Empty(t, servertest.Rows(t, admin, "SELECT * FROM aidb.verify_decisions()"))
	_, err = confirm(t.Context(), other, a)
	require.Equal(t, "42501", servertest.State(err))

	// what waited is not told a second time
	server.Model.Script("till", fakemodel.Say("yes?"))
	servertest.MustAsk(t, ann, "till", "and?", "conversation_id => '"+k.Conversation+"'")
	require.NotContains(t, server.Model.Requests("till")[0].LastUser(), "Note from the system")
}

// A no is the task's end, after the model has said what it has to say; a yes to what it proposes then counts again.
func TestReject_EndsTheTaskAsDenied(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	till(t, admin, "refused")
	server.Agent(t, ann, "refused", []string{"refused_add"}, add("refused", 1), fakemodel.Say("as you wish"))
	k := submit(t, ann, "refused", "add")
	servertest.Exec(t, ann, "SELECT aidb.reject_action($1::uuid)", asked(t, ann, k).ID)
	require.Equal(t, result{Status: "DENIED", Message: "as you wish", Error: "a person declined what the agent proposed", Rounds: 2}, wait(t, ann, k))
	require.Contains(t, lastResult(t, "refused"), `"status":"rejected"`)
	require.Contains(t, lastResult(t, "refused"), "was not confirmed and did not run")
	require.Equal(t, "DENIED", servertest.Value(t, ann, "SELECT status FROM aidb_internal.action_log WHERE action_type = 'tool_response' AND conversation_id = $1::uuid", k.Conversation))

	server.Model.Script("refused", add("refused", 2), add("refused", 3), fakemodel.Say("three then"))
	var again task
	require.NoError(t, ann.QueryRow(t.Context(), "SELECT task_id::text, conversation_id FROM aidb.retry_task($1::uuid)", k.ID).Scan(&again.ID, &again.Conversation))
	servertest.Exec(t, ann, "SELECT aidb.reject_action($1::uuid)", asked(t, ann, again).ID)
	until(t, ann, "SELECT rounds = 2 AND status = 'AWAIT_APPROVAL' FROM aidb.agent_task($1::uuid)", again.ID)
	_, err := confirm(t.Context(), ann, asked(t, ann, again))
	require.NoError(t, err)
	require.Equal(t, result{Status: "SUCCESS", Message: "three then", Rounds: 3}, wait(t, ann, again))
	require.Equal(t, "3", servertest.Value(t, admin, "SELECT string_agg(n::text, ',') FROM public.refused"))
}

// Nobody answers: the task goes on by itself when the time is over, with no worker at hand and its time budget unspent.
func TestExpiry_ResumesTheTask(t *testing.T) {
	admin := server.Admin(t)
	servertest.Exec(t, admin, "CREATE ROLE hasty LOGIN IN ROLE aidb_users; ALTER ROLE hasty SET aidb.confirmation_ttl = 7")
	hasty := server.Conn(t, "hasty")
	till(t, admin, "late")
	servertest.Exec(t, admin, "GRANT ALL ON public.late TO hasty")
	server.Agent(t, hasty, "late", []string{"late_add"}, add("late", 1), fakemodel.Say("too late"))
	servertest.Exec(t, hasty, "SELECT * FROM aidb.update_agent('late', timeout => 3)")
	k := submit(t, hasty, "late", "add")
	a := asked(t, hasty, k)
	require.Equal(t, result{Status: "DENIED", Message: "too late", Error: "nobody confirmed in time what the agent proposed", Rounds: 2}, wait(t, hasty, k))
	require.Contains(t, lastResult(t, "late"), `"status":"expired"`)
	require.Equal(t, "expired", servertest.Value(t, hasty, "SELECT status FROM aidb.action_history WHERE action_id = $1::uuid", a.ID))
	require.Equal(t, "proposed,expired", servertest.Value(t, hasty, `SELECT string_agg(request_payload ->> 'event', ',' ORDER BY created_at) FROM aidb_internal.action_log
		WHERE action_type = 'approval' AND conversation_id = $1::uuid`, k.Conversation))
	require.Equal(t, "action_expired", servertest.Value(t, hasty, "SELECT denial_reason FROM aidb.decisions WHERE conversation_id = $1::uuid AND status = 'denied'", k.Conversation))
	_, err := confirm(t.Context(), hasty, a)
	require.Equal(t, "55000", servertest.State(err))
	until(t, admin, "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'aidb worker' AND usename = 'hasty'")
}

// A delegate proposes: the task that was submitted waits, and goes on with the delegate where it was.
func TestConfirm_OfADelegate(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	till(t, admin, "below")
	servertest.Exec(t, admin, `SELECT aidb.create_policy('once_below', ARRAY[aidb.transition('start', 'below', 'handed'), aidb.transition('handed', 'below_add', 'added')])`)
	server.Agent(t, ann, "below", []string{"below_add"}, add("below", 1), fakemodel.Say("added"))
	server.Agent(t, ann, "above", nil, fakemodel.Call("below", map[string]any{"prompt": "add one"}), fakemodel.Say("all done"))
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('above', delegates => '{below}', policy => 'once_below')")
	k := submit(t, ann, "above", "go")
	_, err := confirm(t.Context(), ann, asked(t, ann, k))
	require.NoError(t, err)
	require.Equal(t, result{Status: "SUCCESS", Message: "all done", Rounds: 2}, wait(t, ann, k))
	require.Equal(t, "1", servertest.Value(t, admin, "SELECT string_agg(n::text, ',') FROM public.below"))
	require.Len(t, server.Model.Requests("below"), 2)
	require.Len(t, server.Model.Requests("above"), 2)
	require.Equal(t, "below,below_add", servertest.Value(t, ann, "SELECT string_agg(tool_name, ',' ORDER BY id) FROM aidb.session_events WHERE session_id = $1::uuid", k.Conversation),
		"each counts once")
	require.Equal(t, "1", servertest.Value(t, ann, "SELECT count(*) FROM aidb.decisions WHERE interaction_point = 'delegation' AND conversation_id = $1::uuid", k.Conversation))

	// a no that a delegate got is the task's
	server.Model.Script("below", add("below", 2), fakemodel.Say("not added"))
	server.Model.Script("above", fakemodel.Call("below", map[string]any{"prompt": "add two"}), fakemodel.Say("sorry"))
	k = submit(t, ann, "above", "go")
	servertest.Exec(t, ann, "SELECT aidb.reject_action($1::uuid)", asked(t, ann, k).ID)
	require.Equal(t, result{Status: "DENIED", Message: "sorry", Error: "a person declined what the agent proposed", Rounds: 2}, wait(t, ann, k))
}

// A plan waits as a whole; four eyes are those of somebody else, with their rights.
func TestConfirm_PlanAndFourEyes(t *testing.T) {
	admin, ann, bob := server.Admin(t), server.Conn(t, "ann"), server.Conn(t, "bob")
	servertest.Exec(t, admin, "CREATE ROLE seconders; GRANT seconders TO bob")
	till(t, admin, "plan", "approver => 'seconders'")
	step := func(n int) map[string]any { return map[string]any{"tool": "plan_add", "args": map[string]any{"n": n}} }
	server.Agent(t, ann, "plan", []string{"act", "plan_add"}, fakemodel.Call("act", map[string]any{"steps": []any{step(1), step(2)}}), fakemodel.Say("both"))
	k := submit(t, ann, "plan", "go")
	a := asked(t, bob, k)
	_, err := confirm(t.Context(), ann, a)
	require.Equal(t, "42501", servertest.State(err))
	status, err := confirm(t.Context(), bob, a)
	require.NoError(t, err)
	require.Equal(t, "SUCCESS,SUCCESS", status)
	require.Equal(t, "both", wait(t, ann, k).Message)
	require.Equal(t, "1bob,2bob", servertest.Value(t, admin, "SELECT string_agg(n || who, ',' ORDER BY n) FROM public.plan"))
}

// Nobody can confirm what a canceled task had proposed.
func TestCancel_OfATaskThatWaits(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	till(t, admin, "dropped")
	server.Agent(t, ann, "dropped", []string{"dropped_add"}, add("dropped", 1), fakemodel.Say("never"))
	k := submit(t, ann, "dropped", "add")
	a := asked(t, ann, k)
	require.Equal(t, "true", servertest.Value(t, ann, "SELECT aidb.cancel_task($1::uuid)", k.ID))
	require.Equal(t, "CANCELED", wait(t, ann, k).Status)
	require.Empty(t, servertest.Rows(t, ann, "SELECT * FROM aidb.pending_actions WHERE action_id = $1::uuid", a.ID))
	require.Equal(t, "expired", servertest.Value(t, ann, "SELECT status FROM aidb.action_history WHERE action_id = $1::uuid", a.ID))
	until(t, admin, "SELECT status = 'expired' FROM aidb_internal.actions WHERE id = $1::uuid", a.ID)
	_, err := confirm(t.Context(), ann, a)
	require.Equal(t, "55000", servertest.State(err))
	require.Equal(t, "0", servertest.Value(t, admin, "SELECT count(*) FROM public.dropped"))
	require.Equal(t, "CANCELED", servertest.Value(t, ann, "SELECT status FROM aidb.agent_task($1::uuid)", k.ID))
}

// Whoever confirms at once with others, and whatever is rolled back: it runs once.
func TestConfirm_TaskTwiceAtOnce(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	till(t, admin, "once")
	server.Agent(t, ann, "once", []string{"once_add"})
	for i := range 5 {
		server.Model.Script("once", add("once", i), fakemodel.Say("x"))
		k := submit(t, ann, "once", "go")
		a := asked(t, ann, k)
		servertest.Exec(t, ann, "BEGIN")
		_, err := confirm(t.Context(), ann, a)
		require.NoError(t, err)
		servertest.Exec(t, ann, "ROLLBACK")
		require.Equal(t, "AWAIT_APPROVAL", servertest.Value(t, ann, "SELECT status FROM aidb.agent_task($1::uuid)", k.ID))
		var group sync.WaitGroup
		states := make([]string, 4)
		for j := range states {
			conn := server.Conn(t, "ann")
			group.Go(func() {
				_, err := confirm(t.Context(), conn, a)
				states[j] = servertest.State(err)
			})
		}
		group.Wait()
		require.ElementsMatch(t, []string{"", "42501", "42501", "42501"}, states)
		require.Equal(t, "SUCCESS", wait(t, ann, k).Status)
	}
	require.Equal(t, "0,1,2,3,4", servertest.Value(t, admin, "SELECT string_agg(n::text, ',' ORDER BY n) FROM public.once"))
}

// The server dies while the confirmed statement runs, and right after it was committed: neither loses nor repeats it.
func TestConfirm_SurvivesACrash(t *testing.T) {
	s := servertest.Start(t, conf("restart_after_crash = on"))
	connect := func(role string) *pgx.Conn {
		var conn *pgx.Conn
		require.True(t, cluster.Wait(patience, func() bool {
			var err error
			if conn, err = s.Connect(t.Context(), role, servertest.Database); err == nil {
				err = conn.Ping(t.Context())
			}
			return err == nil
		}), "the server does not come back")
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		return conn
	}
	admin, ann := connect("postgres"), connect("ann")
	till(t, admin, "crash")
	s.Agent(t, ann, "crash", []string{"crash_add"}, add("crash", 1), fakemodel.Say("survived"))
	// the confirmed statement waits for a lock, which a preview does not meet
	k := submit(t, ann, "crash", "add")
	a := asked(t, ann, k)
	servertest.Exec(t, admin, "BEGIN; LOCK TABLE public.crash")
	doomed := connect("ann")
	failed := make(chan error, 1)
	go func() { _, err := confirm(context.Background(), doomed, a); failed <- err }()
	watcher := connect("postgres")
	until(t, watcher, "SELECT count(*) = 1 FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Lock'", int64(doomed.PgConn().PID()))
	require.NoError(t, syscall.Kill(int(doomed.PgConn().PID()), syscall.SIGKILL))
	require.Error(t, <-failed)
	require.True(t, cluster.Wait(patience, func() bool { return watcher.Ping(t.Context()) != nil }), "the server goes on with a dead session")

	admin, ann = connect("postgres"), connect("ann")
	require.Equal(t, "0", servertest.Value(t, admin, "SELECT count(*) FROM public.crash"))
	require.Equal(t, "AWAIT_APPROVAL", servertest.Value(t, ann, "SELECT status FROM aidb.agent_task($1::uuid)", k.ID))
	require.Equal(t, a, asked(t, ann, k), "it waits on, with its token")
	status, err := confirm(t.Context(), ann, a)
	require.NoError(t, err)
	require.Equal(t, "SUCCESS", status)
	require.NoError(t, s.Kill(syscall.SIGKILL))
	require.NoError(t, s.WaitGone(patience))
	require.NoError(t, s.Cluster.Start(t.Context()))

	admin, ann = connect("postgres"), connect("ann")
	r := wait(t, ann, k)
	require.Equal(t, []string{"SUCCESS", "survived"}, []string{r.Status, r.Message})
	require.Equal(t, "(1,ann)", servertest.Value(t, admin, "SELECT string_agg(r::text, ' ') FROM public.crash r"))
	_, err = confirm(t.Context(), ann, a)
	require.Equal(t, "42501", servertest.State(err))
	require.Empty(t, servertest.Rows(t, admin, "SELECT * FROM aidb.verify_decisions()"))
}
