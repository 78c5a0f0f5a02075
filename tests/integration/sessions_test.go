package integration

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/cluster"
	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// One conversation runs one call at a time: a second call waits for the first one's transaction, and then has its turns
// in its history.
func TestTwoCallsOnOneConversation_RunOneAfterTheOther(t *testing.T) {
	one, two := server.Conn(t, "ann"), server.Conn(t, "ann")
	server.Agent(t, one, "shared", nil, fakemodel.Say("ready"))
	id := servertest.MustAsk(t, one, "shared", "begin").Conversation

	gate := make(chan struct{})
	server.Model.Script("shared", fakemodel.Reply{Content: "first done", Gate: gate}, fakemodel.Say("second done"))
	first, second := background(t, one, "shared", "first", id), (<-chan result)(nil)
	require.NoError(t, server.Model.WaitFor(limit(t), "the first call", func() bool { return server.Model.Holds("shared", "first") }))
	second = background(t, two, "shared", "second", id)
	requireWaiting(t, two)
	require.False(t, server.Model.Holds("shared", "second"), "the second call waits before it asks the model")
	close(gate)
	require.Equal(t, "first done", (<-first).Message)
	require.Equal(t, "second done", (<-second).Message)

	requests := server.Model.Requests("shared")
	history := requests[len(requests)-1].Messages
	require.Equal(t, []string{"system", "user", "assistant", "user", "assistant", "user"}, roles(history))
	require.Equal(t, "first done", history[4].Content)
}

func TestBusyConversation_HonoursLockTimeoutAndCancel(t *testing.T) {
	one, two := server.Conn(t, "ann"), server.Conn(t, "ann", "lock_timeout=100ms")
	three, admin := server.Conn(t, "ann"), server.Admin(t)
	server.Agent(t, one, "occupied", nil, fakemodel.Say("ready"))
	id := servertest.MustAsk(t, one, "occupied", "begin").Conversation
	gate := make(chan struct{})
	server.Model.Script("occupied", fakemodel.Reply{Content: "done", Gate: gate}, fakemodel.Say("after"))
	first := background(t, one, "occupied", "first", id)
	require.NoError(t, server.Model.WaitFor(limit(t), "the first call", func() bool { return server.Model.Holds("occupied", "first") }))

	o, err := servertest.Ask(limit(t), two, "occupied", "second", "conversation_id => '"+id+"'")
	require.True(t, servertest.State(err) == "55P03" || err == nil && o.Error != "", "%v %v", o, err)
	third := background(t, three, "occupied", "third", id)
	requireWaiting(t, three)
	servertest.Exec(t, admin, "SELECT pg_cancel_backend($1)", int(three.PgConn().PID()))
	require.Equal(t, "57014", servertest.State((<-third).err))
	close(gate)
	require.Equal(t, "done", (<-first).Message)
	require.Equal(t, "after", servertest.MustAsk(t, two, "occupied", "again", "conversation_id => '"+id+"'").Message)
}

func TestDifferentConversations_DoNotWaitForEachOther(t *testing.T) {
	one, two := server.Conn(t, "ann"), server.Conn(t, "ann")
	gate := make(chan struct{})
	server.Agent(t, one, "apart", nil, fakemodel.Reply{Content: "slow", Gate: gate}, fakemodel.Say("quick"))
	slow := background(t, one, "apart", "slow", "")
	require.NoError(t, server.Model.WaitFor(limit(t), "the slow call", func() bool { return server.Model.Holds("apart", "slow") }))
	require.Equal(t, "quick", servertest.MustAsk(t, two, "apart", "quick").Message)
	close(gate)
	require.Equal(t, "slow", (<-slow).Message)
}

// A tool that waits for a lock ends with the agent's time, and says so to whoever asked.
func TestAgentTimeout_EndsAToolCall(t *testing.T) {
	ann, admin := server.Conn(t, "ann"), server.Admin(t)
	servertest.Exec(t, admin, "CREATE TABLE public.kept_busy (n int); GRANT SELECT ON public.kept_busy TO ann")
	servertest.Exec(t, admin, "BEGIN; LOCK TABLE public.kept_busy")
	server.Agent(t, ann, "patient", sql, fakemodel.Query("SELECT * FROM public.kept_busy"), fakemodel.Say("never said"))
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('patient', timeout => 1)")
	start := time.Now()
	o, err := servertest.Ask(limit(t), ann, "patient", "go")
	require.NoError(t, err)
	require.NotEmpty(t, o.Error)
	require.Less(t, time.Since(start), 5*time.Second)
	require.Equal(t, "1", servertest.Value(t, ann, "SELECT 1"))
}

// result is what a call in the background ended with.
type result struct {
	servertest.Outcome
	err error
}

func background(t *testing.T, conn *pgx.Conn, agent, prompt, conversation string) <-chan result {
	t.Helper()
	var args []string
	if conversation != "" {
		args = append(args, "conversation_id => '"+conversation+"'")
	}
	done := make(chan result, 1)
	ctx := limit(t)
	go func() {
		o, err := servertest.Ask(ctx, conn, agent, prompt, args...)
		done <- result{o, err}
	}()
	return done
}

// requireWaiting returns when the backend of a connection waits for a lock.
func requireWaiting(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	admin := server.Admin(t)
	require.True(t, cluster.Wait(10*time.Second, func() bool {
		return servertest.Value(t, admin, "SELECT wait_event_type FROM pg_stat_activity WHERE pid = $1", int(conn.PgConn().PID())) == "Lock"
	}), "the call waits for a lock")
}

func limit(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}
