package policy

import (
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// A tool that fails leaves no event, the state where it was and no effect; then it may be tried again.
func TestAgent_AFailedToolDidNotHappen(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	guarded(t, ann, "failing")
	servertest.Exec(t, admin, "UPDATE public.failing SET total = 0 WHERE id = 1")
	got, o := talk(t, ann, "failing", fakemodel.Call("failing_lookup", ids(1)), fakemodel.Call("failing_refund", ids(1)),
		fakemodel.Call("failing_refund", ids(2)), fakemodel.Call("failing_refund", ids(3)))
	require.Contains(t, got[1], "division by zero")
	require.Equal(t, `{"rows_affected": 1}`, got[2])
	require.Contains(t, got[3], "DENY: failing_refund not permitted from state refunded")
	require.Equal(t, "failing_lookup:start>loaded failing_refund:loaded>refunded", events(t, o.Conversation))
}

// Two calls of one reply are two calls.
func TestAgent_ABatchObeysTheMachine(t *testing.T) {
	ann := server.Conn(t, "ann")
	guarded(t, ann, "batch")
	both := fakemodel.Calls(fakemodel.Call("batch_cancel", ids(1)), fakemodel.Call("batch_refund", ids(1)))
	got, _ := talk(t, ann, "batch", fakemodel.Call("batch_lookup", ids(1)), both)
	require.Equal(t, `{"rows_affected": 1}`, got[1])
	require.Contains(t, got[2], "DENY: batch_refund not permitted from state cancelled")
}

// Who may not run a tool is told that, and nothing about the arguments; the order is privilege, policy, arguments.
func TestAgent_PermissionComesBeforeTheArguments(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	guarded(t, ann, "order")
	wrong := map[string]any{"id": "not a number", "x": 1}
	got, o := talk(t, ann, "order", fakemodel.Call("order_cancel", wrong), fakemodel.Call("order_lookup", wrong), fakemodel.Call("order_lookup", ids(1)))
	require.Contains(t, got[0], "DENY: order_cancel not permitted from state start")
	require.Contains(t, got[1], "unknown argument 'x'")
	require.Equal(t, "order_lookup:start>loaded", events(t, o.Conversation), "a call with wrong arguments did not happen")

	// A native tool without EXECUTE: the privilege comes before the policy.
	servertest.Exec(t, admin, `CREATE ROLE order_r; GRANT order_r TO ann; SELECT aidb.create_policy('order2', '{}'); SELECT aidb.create_purpose('order_p', 'order_r', policy => 'order2')`)
	server.Agent(t, ann, "order2", []string{"run_sql_query"})
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('order2', purpose => 'order_p')")
	got, _ = talk(t, ann, "order2", fakemodel.Call("run_sql_query", map[string]any{"query": "SELECT 1"}))
	require.Contains(t, got[0], "permission denied for function run_sql_query")
	servertest.Exec(t, admin, "GRANT EXECUTE ON FUNCTION aidb.run_sql_query(text) TO order_r")
	got, _ = talk(t, ann, "order2", fakemodel.Call("run_sql_query", map[string]any{"query": "SELECT 1"}))
	require.Contains(t, got[0], "DENY: run_sql_query not permitted from state start")
}

// Both machines must permit a call, and both advance or neither does.
func TestAgent_ItsPolicyAndItsPurposes(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	guarded(t, ann, "two")
	servertest.Exec(t, admin, `CREATE ROLE two_r; GRANT two_r TO ann; GRANT SELECT, UPDATE ON public.two TO two_r;
		SELECT aidb.create_policy('two_desk', ARRAY[aidb.transition('start', 'two_lookup', NULL), aidb.transition('start', 'two_refund', 'spent')], description => 'one refund');
		SELECT aidb.create_purpose('two_p', 'two_r', policy => 'two_desk')`)
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('two', purpose => 'two_p')")
	got, o := talk(t, ann, "two", fakemodel.Call("two_refund", ids(1)), fakemodel.Call("two_lookup", ids(1)), fakemodel.Call("two_cancel", ids(1)), fakemodel.Call("two_refund", ids(1)))
	require.Contains(t, got[0], "DENY: two_refund not permitted from state start")
	require.Contains(t, got[2], "DENY: two_cancel not permitted from state start", "its own would have let it through")
	require.Equal(t, `{"rows_affected": 1}`, got[3])
	require.Equal(t, "refunded,spent", state(t, o.Conversation))
	require.Equal(t, "2", servertest.Value(t, admin, "SELECT count(*) FROM aidb.session_events WHERE session_id = $1::uuid AND tool_name = 'two_refund'", o.Conversation))
	require.Equal(t, "1", servertest.Value(t, admin, "SELECT aidb.event_count($1::uuid, 'two_refund')", o.Conversation), "one call")
	require.Equal(t, "1", servertest.Value(t, admin, "SELECT aidb.principal_event_count('ann', 'two_refund')"))
}

// Handing work to another agent does not begin a new history.
func TestDelegate_IsGuardedByWhatStandsAbove(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	guarded(t, ann, "top")
	server.Agent(t, ann, "hand", []string{"top_refund", "top_cancel"})
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('top', delegates => '{hand}')")
	hand := fakemodel.Call("hand", map[string]any{"prompt": "refund it"})
	server.Model.Script("hand", fakemodel.Call("top_refund", ids(1)), fakemodel.Say("tried"))

	// A delegate is a tool by its name.
	got, o := talk(t, ann, "top", fakemodel.Call("top_lookup", ids(1)), hand)
	require.Contains(t, got[1], "DENY: hand not permitted from state loaded")
	require.Equal(t, "0", servertest.Value(t, admin, "SELECT count(*) FROM aidb.agent_tasks t JOIN aidb.agents a ON a.id = t.agent_id WHERE a.name = 'hand'"), "it did not begin")
	require.Equal(t, "top_lookup:start>loaded", events(t, o.Conversation))

	servertest.Exec(t, admin, "SELECT aidb.add_transition('top', 'cancelled', 'hand', NULL), aidb.add_transition('top', 'loaded', 'hand', NULL)")
	server.Model.Script("hand", fakemodel.Call("top_refund", ids(1)), fakemodel.Say("tried"))
	got, o = talk(t, ann, "top", fakemodel.Call("top_lookup", ids(1)), fakemodel.Call("top_cancel", ids(1)), hand)
	require.Contains(t, got[2], "tried")
	require.Contains(t, server.Model.Requests("hand")[len(server.Model.Requests("hand"))-1].Turn()[0].Result, "DENY: top_refund not permitted from state cancelled")
	require.Equal(t, "cancelled", servertest.Value(t, admin, "SELECT state FROM public.top WHERE id = 1"))
	require.Equal(t, "top_lookup:start>loaded top_cancel:loaded>cancelled hand:cancelled>cancelled", events(t, o.Conversation))

	// What the delegate does is the history of the conversation above.
	server.Model.Script("hand", fakemodel.Call("top_refund", ids(2)), fakemodel.Say("did"))
	got, o = talk(t, ann, "top", fakemodel.Call("top_lookup", ids(2)), hand, fakemodel.Call("top_cancel", ids(2)))
	require.Contains(t, got[2], "DENY: top_cancel not permitted from state refunded")
	require.Equal(t, "refunded", state(t, o.Conversation))

	// One that cannot begin has not happened.
	servertest.Exec(t, admin, "SELECT aidb.create_policy('gone', '{}')")
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('hand', policy => 'gone')")
	servertest.Exec(t, admin, "SELECT aidb.delete_policy('gone')")
	got, o = talk(t, ann, "top", fakemodel.Call("top_lookup", ids(3)), hand)
	require.Contains(t, got[1], "policy 'gone' has been retired")
	require.Equal(t, "top_lookup:start>loaded", events(t, o.Conversation))
}

// What names a retired policy is refused, it never runs unguarded.
func TestRetired_IsRefused(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	guarded(t, ann, "retired")
	open := session(t, ann, "retired")
	servertest.Exec(t, admin, "SELECT aidb.delete_policy('retired')")
	o, err := servertest.Ask(t.Context(), ann, "retired", "go")
	require.NoError(t, err)
	require.Equal(t, "policy 'retired' has been retired", o.Error)
	require.Equal(t, "DENIED", servertest.Value(t, ann, "SELECT t.status FROM aidb.agent_tasks t JOIN aidb.agents a ON a.id = t.agent_id WHERE a.name = 'retired' ORDER BY t.created_at DESC LIMIT 1"))
	refuse(t, ann, "policy 'retired' has been retired", open, "retired_lookup")
	for _, sql := range []string{"SELECT aidb.start_policy_session('retired')", "SELECT * FROM aidb.create_agent('r2', 'x', 'retired', policy => 'retired')"} {
		rows, err := ann.Query(t.Context(), sql)
		if err == nil {
			if rows.Next() {
				values, _ := rows.Values()
				require.Contains(t, values[0], "policy 'retired' has been retired")
			}
			rows.Close()
			err = rows.Err()
		}
		if err != nil {
			require.ErrorContains(t, err, "policy 'retired' has been retired")
		}
	}
	require.NotEmpty(t, servertest.Rows(t, admin, "SELECT * FROM aidb.policies WHERE name = 'retired' AND deleted_at IS NOT NULL"), "it stays visible")

	// Revived, the session goes on where it was.
	servertest.Exec(t, admin, "SELECT aidb.create_policy('retired', ARRAY[aidb.transition('start', 'retired_lookup', 'again')])")
	require.Equal(t, "again", allow(t, ann, open, "retired_lookup"))

	// Retired in the middle of a call: the next tool call is refused.
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('retired', reset => '{policy}')")
	require.Equal(t, "", servertest.Value(t, ann, "SELECT policy FROM aidb.agents WHERE name = 'retired'"))
	got, _ := talk(t, ann, "retired", fakemodel.Call("retired_cancel", ids(1)))
	require.Equal(t, `{"rows_affected": 1}`, got[0], "without a policy there is no guard")
}

func TestLogOnly_RecordsAndLetsThrough(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	guarded(t, ann, "soft")
	servertest.Exec(t, admin, "SELECT aidb.update_policy('soft', mode => 'log_only')")
	got, o := talk(t, ann, "soft", fakemodel.Call("soft_cancel", ids(1)), fakemodel.Call("soft_lookup", ids(1)))
	require.Equal(t, `{"rows_affected": 1}`, got[0])
	require.Equal(t, "soft_cancel:start>start soft_lookup:start>loaded", events(t, o.Conversation), "the state stays")
	rows := servertest.Rows(t, ann, "SELECT * FROM aidb.decisions WHERE conversation_id = $1::uuid AND interaction_point = 'policy'", o.Conversation)
	require.Len(t, rows, 1)
	require.Equal(t, "allowed", rows[0]["status"])
	require.Equal(t, "soft_cancel", rows[0]["tool"])
	require.Equal(t, "policy soft, state start, log_only: DENY: soft_cancel not permitted from state start", rows[0]["object"])
	require.Equal(t, "DENY: soft_cancel not permitted from state start",
		servertest.Value(t, ann, "SELECT would_deny FROM aidb.session_events WHERE session_id = $1::uuid AND tool_name = 'soft_cancel'", o.Conversation))

	sim := servertest.Rows(t, admin, "SELECT * FROM aidb.simulate_policy('soft', now() - interval '1 hour') WHERE session_id = $1::uuid ORDER BY called_at", o.Conversation)
	require.Equal(t, "deny", sim[0]["verdict"])
	require.Equal(t, "DENY: soft_cancel not permitted from state start", sim[0]["reason"])
	require.Equal(t, "allow", sim[1]["verdict"])
	require.Nil(t, sim[1]["reason"])

	servertest.Exec(t, admin, "SELECT aidb.update_policy('soft', mode => 'enforce')")
	got, _ = talk(t, ann, "soft", fakemodel.Call("soft_cancel", ids(2)))
	require.Contains(t, got[0], "DENY: soft_cancel not permitted from state start")
}

// A run of which nothing is stored has its machine for as long as it lasts.
func TestReadOnlyRun_IsGuardedToo(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	guarded(t, ann, "ro")
	servertest.Exec(t, admin, "SELECT aidb.remove_transition('ro', 'loaded', 'ro_lookup')")
	server.Model.Script("ro", fakemodel.Call("ro_lookup", ids(1)), fakemodel.Call("ro_lookup", ids(2)), fakemodel.Say("done"))
	servertest.MustAsk(t, ann, "ro", "go", "read_only => true")
	requests := server.Model.Requests("ro")
	turn := requests[len(requests)-1].Turn()
	require.Equal(t, `[{"id": 1, "state": "open"}]`, turn[0].Result)
	require.Contains(t, turn[1].Result, "DENY: ro_lookup not permitted from state loaded")
	require.Equal(t, "0", servertest.Value(t, admin, "SELECT count(*) FROM aidb.session_events WHERE policy = 'ro'"))
}

// sleep needs no transition.
func TestSleep_NeedsNone(t *testing.T) {
	ann := server.Conn(t, "ann")
	guarded(t, ann, "sleepy")
	got, _ := talk(t, ann, "sleepy", fakemodel.Call("sleep", map[string]any{"seconds": 0}))
	require.Equal(t, `{"slept": 0}`, got[0])
}

// A tool whose effect is outside the database counts from when its request may have left, and not before.
func TestOutsideEffect_CountsUnlessItNeverLeft(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	servertest.Exec(t, admin, "SELECT aidb.create_policy('gen', ARRAY[aidb.transition('start', 'generate_text', 'spent')])")
	server.Agent(t, ann, "gen", []string{"generate_text"})
	server.Agent(t, ann, "writer", nil, fakemodel.Say("a poem"))
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('gen', policy => 'gen')")
	ask := func(model string) fakemodel.Reply {
		return fakemodel.Call("generate_text", map[string]any{"model_name": model, "input": "x"})
	}
	got, o := talk(t, ann, "gen", ask("nobody"), ask("writer"), ask("writer"))
	require.Contains(t, got[0], "Model not found")
	require.Contains(t, got[1], "a poem")
	require.Contains(t, got[2], "DENY: generate_text not permitted from state spent")
	require.Equal(t, "generate_text:start>spent", events(t, o.Conversation))
}
