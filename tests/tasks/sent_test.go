package tasks

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/cluster"
	"aidb/tests/fakemcp"
	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// confirmed is a row of confirm_action, in words.
func confirmed(t testing.TB, conn *pgx.Conn, a action) []string {
	t.Helper()
	var list []string
	for _, row := range servertest.Rows(t, conn, "SELECT concat_ws(' ', tool, status, left(error, 20)) AS line FROM aidb.confirm_action($1::uuid, $2) ORDER BY step", a.ID, a.Token) {
		list = append(list, row["line"].(string))
	}
	return list
}

// What an MCP server was asked to do is not undone by a rollback. That it was asked is on record all the same, and it is not
// asked a second time, however often a person says yes.
func TestConfirm_SendsOnceThroughARollback(t *testing.T) {
	fake := fakemcp.Start()
	t.Cleanup(fake.Close)
	admin, ann, other := server.Admin(t), server.Conn(t, "ann"), server.Conn(t, "ann")
	servertest.Exec(t, admin, `SELECT aidb.import_mcp_tools('sentpost', $1, tool_filter => '{echo,wait}')`, fake.URL("/mcp"))
	t.Cleanup(func() {
		require.NoError(t, server.Exec(context.Background(), servertest.Database, "SELECT aidb.delete_tool('sentpost')"))
	})
	servertest.Exec(t, admin, "SELECT aidb.classify_tool('echo', 'confirm'); SELECT aidb.classify_tool('wait', 'confirm')")
	till(t, admin, "sent")
	server.Agent(t, ann, "sent", []string{"sent_add", "echo", "wait", "act"})
	propose := func(reply fakemodel.Reply) action {
		server.Model.Script("sent", reply, fakemodel.Say("?"))
		o := servertest.MustAsk(t, ann, "sent", "go")
		return asked(t, ann, task{Conversation: o.Conversation})
	}
	marks := func(a action) string {
		return servertest.Value(t, admin, "SELECT aidb_internal.sent_steps($1::uuid)", a.ID)
	}
	echo := fakemodel.Call("echo", map[string]any{"text": "hello"})

	a := propose(echo)
	old := server.Conn(t, "ann")
	servertest.Exec(t, old, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM aidb.action_history")
	servertest.Exec(t, other, "BEGIN")
	require.Equal(t, []string{"echo SUCCESS"}, confirmed(t, other, a))
	servertest.Exec(t, other, "ROLLBACK")
	require.Len(t, fake.Calls(), 1)
	require.Equal(t, "{1}", marks(a))
	require.Equal(t, []string{"echo ERROR it was sent before, "}, confirmed(t, old, a), "its snapshot is older than the mark")
	servertest.Exec(t, old, "ROLLBACK")
	require.Equal(t, []string{"echo ERROR it was sent before, "}, confirmed(t, other, a))
	require.Len(t, fake.Calls(), 1)
	require.Equal(t, "stopped", servertest.Value(t, ann, "SELECT status FROM aidb.action_history WHERE action_id = $1::uuid", a.ID))
	require.Equal(t, "{}", marks(a), "it is decided")

	// within one transaction; and nothing else of the plan is run
	a = propose(fakemodel.Call("act", map[string]any{"steps": []map[string]any{
		{"tool": "sent_add", "args": map[string]any{"n": 1}}, {"tool": "echo", "args": map[string]any{"text": "plan"}},
	}}))
	servertest.Exec(t, other, "BEGIN; SAVEPOINT s")
	require.Equal(t, []string{"sent_add SUCCESS", "echo SUCCESS"}, confirmed(t, other, a))
	servertest.Exec(t, other, "ROLLBACK TO s")
	require.Equal(t, []string{"sent_add CANCELED not run: another ste", "echo ERROR it was sent before, "}, confirmed(t, other, a))
	servertest.Exec(t, other, "COMMIT")
	require.Len(t, fake.Calls(), 2)
	require.Equal(t, "0", servertest.Value(t, admin, "SELECT count(*) FROM public.sent"))

	// the session ends in the middle of the call
	a = propose(fakemodel.Call("wait", map[string]any{}))
	doomed := server.Conn(t, "ann")
	done := make(chan error, 1)
	go func() {
		_, err := doomed.Exec(t.Context(), "SELECT aidb.confirm_action($1::uuid, $2)", a.ID, a.Token)
		done <- err
	}()
	require.True(t, cluster.Wait(patience, func() bool { return len(fake.Calls()) == 3 }))
	servertest.Exec(t, admin, "SELECT pg_terminate_backend($1)", int(doomed.PgConn().PID()))
	require.Error(t, <-done)
	require.Equal(t, []string{"wait ERROR it was sent before, "}, confirmed(t, other, a))
	require.Len(t, fake.Calls(), 3)

	// what does no harm when it is done twice may be sent again
	servertest.Exec(t, admin, "SELECT aidb.declare_idempotent('echo')")
	a = propose(echo)
	servertest.Exec(t, other, "BEGIN")
	require.Equal(t, []string{"echo SUCCESS"}, confirmed(t, other, a))
	servertest.Exec(t, other, "ROLLBACK")
	require.Equal(t, []string{"echo SUCCESS"}, confirmed(t, other, a))
	require.Len(t, fake.Calls(), 5)
	_, err := ann.Exec(t.Context(), "SELECT aidb.declare_idempotent('wait')")
	require.Equal(t, "42501", servertest.State(err))
	servertest.Exec(t, admin, "SELECT aidb.declare_idempotent('echo', false)")

	// what certainly never left is no reason to refuse
	a = propose(echo)
	fake.Close()
	servertest.Exec(t, other, "BEGIN")
	require.Equal(t, "echo ERROR", confirmed(t, other, a)[0][:10])
	servertest.Exec(t, other, "ROLLBACK")
	require.Equal(t, "{}", marks(a))
	require.Equal(t, "2", servertest.Value(t, admin, "SELECT count(*) FROM aidb_internal.sent_steps WHERE action_id = $1::uuid", a.ID))
}
