package actions

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/tests/fakemcp"
	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// outside registers two tools of an MCP server of the test's own, as ones that wait for a person.
func outside(t *testing.T, name string) *fakemcp.Server {
	t.Helper()
	fake := fakemcp.Start()
	t.Cleanup(fake.Close)
	admin := server.Admin(t)
	servertest.Exec(t, admin, `SELECT aidb.import_mcp_tools($1, $2, tool_filter => '{echo,wait}')`, name, fake.URL("/mcp"))
	t.Cleanup(func() {
		require.NoError(t, server.Exec(context.Background(), servertest.Database, "SELECT aidb.delete_tool('"+name+"')"))
	})
	servertest.Exec(t, admin, "SELECT aidb.classify_tool('echo', 'confirm'); SELECT aidb.classify_tool('wait', 'confirm')")
	return fake
}

// What reaches outside is never tried: its preview is its arguments. It is sent once, when a person has said yes.
func TestMCP_IsSentOnceAndNeverTried(t *testing.T) {
	fake := outside(t, "outpost")
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	servertest.Exec(t, admin, "CREATE ROLE outposters; GRANT outposters TO ann; SELECT aidb.create_purpose('outpost', 'outposters')")
	server.Agent(t, ann, "outpost", []string{"echo", "wait"})
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('outpost', purpose => 'outpost')")
	propose := func(tool string, args map[string]any) pending {
		server.Model.Script("outpost", fakemodel.Call(tool, args), fakemodel.Say("?"))
		servertest.MustAsk(t, ann, "outpost", "go")
		require.Contains(t, lastResult(t, "outpost"), `"kind":"arguments"`)
		return theOne(t, ann)
	}
	hello := map[string]any{"text": "hello"}
	p := propose("echo", hello)
	require.JSONEq(t, `[{"step": 1, "tool": "echo", "kind": "arguments", "args": {"text": "hello"}}]`, servertest.Value(t, ann, "SELECT preview FROM aidb.pending_actions"))
	require.Empty(t, fake.Calls())
	list := mustConfirm(t, ann, p)
	require.Equal(t, "SUCCESS", list[0].Status, list[0].err())
	require.Contains(t, string(*list[0].Result), "hello")
	require.Len(t, fake.Calls(), 1)
	_, err := confirm(t, ann, p)
	require.Equal(t, "42501", servertest.State(err))
	_, err = outcomes(t, ann, "SELECT * FROM aidb.undo_action($1::uuid)", p.id)
	require.Equal(t, "55000", servertest.State(err), "what is outside is not undone")

	// what the purpose may not reach any more is not reached
	p = propose("echo", hello)
	servertest.Exec(t, admin, "SELECT aidb.update_purpose('outpost', allowed_servers => '{}')")
	list = mustConfirm(t, ann, p)
	require.Equal(t, "DENIED", list[0].Status)
	require.Contains(t, list[0].err(), "no longer permitted: MCP server 'outpost' is not allowed for purpose 'outpost'")
	require.Len(t, fake.Calls(), 1)
	servertest.Exec(t, admin, "SELECT aidb.update_purpose('outpost', allowed_servers => '{*}')")

	// nobody knows what became of it: the action is over, and what was sent is not sent again
	p = propose("wait", map[string]any{})
	servertest.Exec(t, admin, "ALTER ROLE ann SET aidb.tool_timeout = '3s'")
	defer servertest.Exec(t, admin, "ALTER ROLE ann RESET aidb.tool_timeout")
	list = mustConfirm(t, server.Conn(t, "ann"), p)
	require.Equal(t, "ERROR", list[0].Status)
	require.Len(t, fake.Calls(), 2)
	_, err = confirm(t, ann, p)
	require.Equal(t, "42501", servertest.State(err))
	require.Len(t, fake.Calls(), 2)
	require.Equal(t, "stopped", servertest.Value(t, ann, "SELECT status FROM aidb.action_history WHERE action_id = $1::uuid", p.id))
}

// A policy counts what was sent although nobody knows what became of it, and says so; not what certainly never left.
func TestMCP_AndAPolicy(t *testing.T) {
	fake := outside(t, "guardpost")
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	servertest.Exec(t, admin, "SELECT aidb.create_policy('guardpost', ARRAY[aidb.transition('start', 'echo', 'said'), aidb.transition('said', 'wait', 'waited')])")
	server.Agent(t, ann, "guardpost", []string{"echo", "wait", "act"})
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('guardpost', policy => 'guardpost')")
	servertest.Exec(t, admin, "ALTER ROLE ann SET aidb.tool_timeout = '3s'")
	defer servertest.Exec(t, admin, "ALTER ROLE ann RESET aidb.tool_timeout")
	hello := call("echo", map[string]any{"text": "hello"})
	propose := func(reply fakemodel.Reply) (pending, string) {
		server.Model.Script("guardpost", reply, fakemodel.Say("?"))
		o := servertest.MustAsk(t, ann, "guardpost", "go")
		require.Contains(t, lastResult(t, "guardpost"), "awaiting_confirmation")
		return theOne(t, ann), o.Conversation
	}
	events := func(conversation string) string {
		return servertest.Value(t, admin, `SELECT coalesce(string_agg(concat_ws(' ', tool_name, from_state, to_state, outcome), ', ' ORDER BY id), '') FROM aidb_internal.session_events WHERE session_id = $1::uuid`, conversation)
	}
	p, conversation := propose(act(hello, call("wait", map[string]any{})))
	require.Empty(t, events(conversation), "a preview leaves nothing")
	list := mustConfirm(t, server.Conn(t, "ann"), p)
	require.Equal(t, []string{"SUCCESS", "ERROR"}, []string{list[0].Status, list[1].Status}, list[0].err())
	require.Equal(t, "echo start said, wait said waited unknown", events(conversation))

	server.Model.Script("guardpost", fakemodel.Call("wait", map[string]any{}), fakemodel.Say("?"))
	servertest.MustAsk(t, ann, "guardpost", "go")
	require.Contains(t, lastResult(t, "guardpost"), "DENY: wait not permitted from state start", "in a conversation of its own")
	require.NotContains(t, strings.Join(fake.Calls(), " "), "wait wait")

	p, conversation = propose(fakemodel.Call("echo", map[string]any{"text": "nobody"}))
	fake.Close()
	list = mustConfirm(t, server.Conn(t, "ann"), p)
	require.Equal(t, "ERROR", list[0].Status)
	require.Empty(t, events(conversation), "it certainly never left")
}
