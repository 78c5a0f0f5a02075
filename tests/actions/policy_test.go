package actions

import (
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

func call(tool string, args map[string]any) map[string]any {
	return map[string]any{"tool": tool, "args": args}
}

func act(steps ...any) fakemodel.Reply { return fakemodel.Call("act", map[string]any{"steps": steps}) }

// Of a plan under a policy each step is asked about when those before it have been tried: first the policy, then the arguments.
func TestPlan_PolicyBeforeTheArgumentsOfEachStep(t *testing.T) {
	goods(t, "ordered")
	sqlTool(t, "ordered_open", "UPDATE public.ordered SET state = 'open' WHERE id <= ${id}", "risk => 'safe'")
	sqlTool(t, "ordered_mark", "UPDATE public.ordered SET state = 'marked' WHERE id <= ${id}", "risk => 'safe'")
	ann, admin := server.Conn(t, "ann"), server.Admin(t)
	servertest.Exec(t, admin, `SELECT aidb.create_policy('ordered', ARRAY[aidb.transition('start', 'ordered_close', 'closed'),
		aidb.transition('start', 'ordered_open', 'opened'), aidb.transition('opened', 'ordered_close', 'closed'),
		aidb.transition('closed', 'ordered_open', 'opened', '(SELECT count(*) FROM public.ordered WHERE state = ''closed'') >= 2')])`)
	server.Agent(t, ann, "ordered", []string{"act", "ordered_open", "ordered_close", "ordered_mark"})
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('ordered', policy => 'ordered')")
	good, wrong := map[string]any{"id": 2}, map[string]any{"no such": 1}
	ask := func(plan fakemodel.Reply) string {
		server.Model.Script("ordered", plan, fakemodel.Say("?"))
		servertest.MustAsk(t, ann, "ordered", "go")
		return lastResult(t, "ordered")
	}
	// all may run at once
	got := ask(act(call("ordered_open", good), call("ordered_mark", wrong)))
	require.Contains(t, got, "step 2 of 2 failed")
	require.Contains(t, got, "DENY: ordered_mark not permitted from state opened")
	require.NotContains(t, got, "unknown argument")
	// one needs a person: nothing runs, and nothing waits
	got = ask(act(call("ordered_close", good), call("ordered_mark", wrong)))
	require.Contains(t, got, "step 2 (ordered_mark): DENY: ordered_mark not permitted from state closed")
	got = ask(act(call("ordered_open", good), call("ordered_close", wrong)))
	require.Contains(t, got, "step 2 (ordered_close): unknown argument 'no such'")
	require.Empty(t, waiting(t, ann))
	require.Equal(t, "0", count(t, "ordered", "closed"))
	// a condition of a later step sees what the steps before it do, when it is proposed and when it runs
	got = ask(act(call("ordered_close", map[string]any{"id": 1}), call("ordered_open", good)))
	require.Contains(t, got, "step 2 (ordered_open): DENY: ordered_open not permitted from state closed")
	require.Contains(t, ask(act(call("ordered_close", good), call("ordered_open", good))), "awaiting_confirmation")
	list := mustConfirm(t, ann, theOne(t, ann))
	require.Equal(t, []string{"SUCCESS", "SUCCESS"}, []string{list[0].Status, list[1].Status}, "%v", list)
	require.Equal(t, "5", count(t, "ordered", "open"))
}

// A privilege on a table comes before the policy, and only for a statement that is the tool's own.
func TestOrder_TablePrivilegeBeforeThePolicy(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	servertest.Exec(t, admin, "CREATE TABLE public.vault (id int, state text); SELECT aidb.create_policy('vault', '{}')")
	sqlTool(t, "vault_set", "UPDATE public.vault SET state = 'x' WHERE id = ${id}", "risk => 'safe'")
	server.Agent(t, ann, "vault", []string{"vault_set", "run_sql_query", "act"})
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('vault', policy => 'vault')")
	ask := func(reply fakemodel.Reply) string {
		server.Model.Script("vault", reply, fakemodel.Say("x"))
		servertest.MustAsk(t, ann, "vault", "go")
		return lastResult(t, "vault")
	}
	for _, args := range []map[string]any{{"id": 1}, {"no such": 1}} {
		require.Contains(t, ask(fakemodel.Call("vault_set", args)), "permission denied for table vault")
		require.Contains(t, ask(act(call("vault_set", args))), "permission denied for table vault")
	}
	require.Equal(t, "engine_privilege_denied", servertest.Value(t, admin, "SELECT denial_reason FROM aidb.decisions WHERE agent = 'vault' ORDER BY at DESC LIMIT 1"))
	require.Contains(t, ask(fakemodel.Query("SELECT * FROM public.vault")), "DENY: run_sql_query not permitted from state start")
	servertest.Exec(t, admin, "GRANT SELECT, UPDATE ON public.vault TO ann")
	require.Contains(t, ask(fakemodel.Call("vault_set", map[string]any{"no such": 1})), "DENY: vault_set not permitted from state start")
	require.Equal(t, "policy_denied", servertest.Value(t, admin, "SELECT denial_reason FROM aidb.decisions WHERE agent = 'vault' ORDER BY at DESC LIMIT 1"))
}

// To undo is a step of the machine like any other: it needs a transition, and moves the state.
func TestUndo_IsAStepOfThePolicy(t *testing.T) {
	goods(t, "back", "undo_statement => 'UPDATE public.back SET state = ''open'' WHERE id <= ${id}'")
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	servertest.Exec(t, admin, "SELECT aidb.create_policy('back', ARRAY[aidb.transition('start', 'back_close', 'closed')])")
	server.Agent(t, ann, "back", []string{"back_close"}, use("back_close", 2), fakemodel.Say("?"))
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('back', policy => 'back')")
	o := servertest.MustAsk(t, ann, "back", "go")
	p := theOne(t, ann)
	require.Equal(t, "SUCCESS", mustConfirm(t, ann, p)[0].Status)
	list, err := outcomes(t, ann, "SELECT * FROM aidb.undo_action($1::uuid)", p.id)
	require.NoError(t, err)
	require.Equal(t, "DENIED", list[0].Status)
	require.Contains(t, list[0].err(), "DENY: undo:back_close not permitted from state closed")
	require.Equal(t, "2", count(t, "back", "closed"))
	servertest.Exec(t, admin, "SELECT aidb.add_transition('back', 'closed', 'undo:back_close', 'start')")
	require.Empty(t, servertest.Rows(t, admin, "SELECT * FROM aidb.check_policy('back') WHERE severity <> 'notice' AND finding LIKE '%undo:%'"))
	list, err = outcomes(t, ann, "SELECT * FROM aidb.undo_action($1::uuid)", p.id)
	require.NoError(t, err)
	require.Equal(t, "SUCCESS", list[0].Status, list[0].err())
	require.Equal(t, "5", count(t, "back", "open"))
	require.Equal(t, "back_close:start>closed undo:back_close:closed>start", servertest.Value(t, ann, `SELECT string_agg(tool_name || ':' || from_state || '>' || to_state, ' ' ORDER BY id)
		FROM aidb.session_events WHERE session_id = $1::uuid`, o.Conversation))
}

// What a yes was said to is void when anything that it was said to has changed.
func TestConfirm_IsBoundToWhatWasShown(t *testing.T) {
	goods(t, "bound")
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	servertest.Exec(t, admin, `CREATE ROLE bound_a; CREATE ROLE bound_b; GRANT bound_a, bound_b TO ann; GRANT ALL ON public.bound TO bound_a, bound_b;
		SELECT aidb.create_purpose('bound', 'bound_a'); SELECT aidb.create_policy('bound', ARRAY[aidb.transition('start', 'bound_close', NULL)])`)
	server.Agent(t, ann, "bound", []string{"bound_close"}, use("bound_close", 2))
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('bound', purpose => 'bound', policy => 'bound')")
	for what, change := range map[string][2]string{
		"the role of the purpose": {"SELECT aidb.update_purpose('bound', role => 'bound_b')", "SELECT aidb.update_purpose('bound', role => 'bound_a')"},
		"the class":               {"SELECT aidb.classify_tool('bound_close', 'safe')", "SELECT aidb.classify_tool('bound_close', NULL)"},
		"the policy":              {"SELECT aidb.add_transition('bound', 'start', 'other', NULL)", "SELECT aidb.remove_transition('bound', 'start', 'other')"},
		"its mode":                {"SELECT aidb.update_policy('bound', mode => 'log_only')", "SELECT aidb.update_policy('bound', mode => 'enforce')"},
		"which policy":            {"SELECT * FROM aidb.update_agent('bound', reset => '{policy}')", "SELECT * FROM aidb.update_agent('bound', policy => 'bound')"},
		"the statement":           {"SELECT aidb.update_sql_tool('bound_close', description => 'other')", "SELECT aidb.update_sql_tool('bound_close', description => 'a test')"},
	} {
		server.Model.Script("bound", use("bound_close", 2), fakemodel.Say("?"))
		servertest.MustAsk(t, ann, "bound", "go")
		p := theOne(t, ann)
		servertest.Exec(t, admin, change[0])
		list := mustConfirm(t, ann, p)
		require.Equal(t, "DENIED", list[0].Status, what)
		require.Contains(t, list[0].err(), "has changed since the preview", what)
		require.Equal(t, "void", servertest.Value(t, ann, "SELECT status FROM aidb.action_history WHERE action_id = $1::uuid", p.id), what)
		servertest.Exec(t, admin, change[1])
	}
	require.Equal(t, "0", count(t, "bound", "closed"))
}
