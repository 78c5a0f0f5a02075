package actions

import (
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// Four eyes: the requester cannot confirm, whatever they call themselves; another login of the role can, with its own rights.
func TestFourEyes(t *testing.T) {
	admin := server.Admin(t)
	servertest.Exec(t, admin, "CREATE ROLE boss; CREATE ROLE cora LOGIN IN ROLE aidb_users, boss; GRANT boss TO ann")
	goods(t, "four", "approver => 'boss'")
	servertest.Exec(t, admin, "GRANT ALL ON public.four TO cora")
	ann, bob, cora := server.Conn(t, "ann"), server.Conn(t, "bob"), server.Conn(t, "cora")
	server.Agent(t, ann, "four", []string{"four_close"}, use("four_close", 2), fakemodel.Say("?"))
	servertest.MustAsk(t, ann, "four", "go")
	p := theOne(t, ann)
	for name, attempt := range map[string]string{
		"herself": "SELECT 1", "as another principal": "SET aidb.principal = 'somebody'", "after SET ROLE": "RESET aidb.principal; SET ROLE boss",
	} {
		servertest.Exec(t, ann, attempt)
		_, err := confirm(t, ann, p)
		require.Equal(t, "42501", servertest.State(err), name)
	}
	servertest.Exec(t, ann, "RESET ROLE; RESET aidb.principal")
	require.Empty(t, waiting(t, bob), "bob is no boss")
	_, err := confirm(t, bob, p)
	require.Equal(t, "42501", servertest.State(err))
	require.Equal(t, p, theOne(t, cora))
	servertest.Exec(t, admin, "REVOKE UPDATE ON public.four FROM cora")
	require.Contains(t, mustConfirm(t, cora, p)[0].err(), "no longer permitted", "with the rights of whoever confirms")

	servertest.Exec(t, admin, "GRANT UPDATE ON public.four TO cora")
	server.Model.Script("four", use("four_close", 2), fakemodel.Say("?"))
	servertest.MustAsk(t, ann, "four", "again")
	require.Equal(t, "SUCCESS", mustConfirm(t, cora, theOne(t, cora))[0].Status)
	require.Equal(t, "cora", servertest.Value(t, ann, "SELECT decided_by FROM aidb.action_history WHERE status = 'done' AND agent = 'four'"))
	_, err = ann.Exec(t.Context(), "SELECT * FROM aidb.confirm_action($1::uuid, 'x')", p.id)
	require.Equal(t, "42501", servertest.State(err))
	servertest.Exec(t, admin, "REVOKE boss FROM ann")
}

// The next prompt is the answer: a plain yes runs it, in the languages of the list, and the model is told; anything else
// rejects it. Case by case that is package approval's test.
func TestReply(t *testing.T) {
	goods(t, "replies")
	ann := server.Conn(t, "ann")
	server.Agent(t, ann, "replies", []string{"replies_close"}, fakemodel.Say("unused"))
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('replies', confirm_replies => true)")
	for i, c := range []struct{ reply, status string }{
		{"Sí, adelante", "done"}, {"no", "rejected"}, {"ja bitte", "done"}, {"oui, merci", "done"}, {"👍", "done"}, {"yes but only the first", "rejected"}, {"Go ahead, please!", "done"},
	} {
		servertest.Exec(t, server.Admin(t), "UPDATE public.replies SET state = 'open'")
		server.Model.Script("replies", use("replies_close", 2), fakemodel.Say("Shall I?"), fakemodel.Say("I see."))
		o := servertest.MustAsk(t, ann, "replies", "go")
		require.Equal(t, "Shall I?", o.Message)
		require.Equal(t, "I see.", servertest.MustAsk(t, ann, "replies", c.reply, "conversation_id => "+quote(o.Conversation)).Message)
		require.Equal(t, c.status, servertest.Value(t, ann, "SELECT status FROM aidb.action_history WHERE conversation_id = $1::uuid", o.Conversation), c.reply)
		require.Equal(t, map[string]string{"done": "2", "rejected": "0"}[c.status], count(t, "replies", "closed"), "%d: %s", i, c.reply)
		require.Contains(t, server.Model.Requests("replies")[len(server.Model.Requests("replies"))-1].LastUser(), "confirmed")
		require.Empty(t, waiting(t, ann))
	}
}

// Without confirm_replies a yes is a prompt like any other.
func TestReply_IsNoneWhereItWasNotAskedFor(t *testing.T) {
	goods(t, "mute")
	ann := server.Conn(t, "ann")
	server.Agent(t, ann, "mute", []string{"mute_close"}, use("mute_close", 2), fakemodel.Say("Shall I?"))
	o := servertest.MustAsk(t, ann, "mute", "go")
	servertest.MustAsk(t, ann, "mute", "yes", "conversation_id => "+quote(o.Conversation))
	p := theOne(t, ann)
	require.Equal(t, "5", count(t, "mute", "open"))
	// in somebody else's name it is nobody's
	servertest.Exec(t, ann, "SET aidb.principal = 'user:2'")
	_, err := confirm(t, ann, p)
	require.Equal(t, "42501", servertest.State(err))
	_, err = ann.Exec(t.Context(), "SELECT aidb.reject_action($1::uuid)", p.id)
	require.Equal(t, "42501", servertest.State(err))
	servertest.Exec(t, ann, "RESET aidb.principal")
	servertest.Exec(t, ann, "SELECT aidb.reject_action($1::uuid)", p.id)
}

// Expired: it cannot be confirmed, the model is told, and it is written down.
func TestExpiry(t *testing.T) {
	goods(t, "late")
	ann, admin := server.Conn(t, "ann"), server.Admin(t)
	server.Agent(t, ann, "late", []string{"late_close"}, use("late_close", 2), fakemodel.Say("Shall I?"))
	ask := func() (pending, string) {
		server.Model.Script("late", use("late_close", 2), fakemodel.Say("Shall I?"))
		o := servertest.MustAsk(t, ann, "late", "go")
		p := theOne(t, ann)
		servertest.Exec(t, admin, "UPDATE aidb_internal.actions SET expires_at = clock_timestamp() WHERE id = $1::uuid", p.id)
		return p, o.Conversation
	}
	p, conversation := ask()
	require.Empty(t, waiting(t, ann))
	_, err := confirm(t, ann, p)
	require.Equal(t, "55000", servertest.State(err))
	_, err = confirm(t, server.Conn(t, "bob"), p)
	require.Equal(t, "42501", servertest.State(err), "a stranger does not learn that there was one")
	servertest.MustAsk(t, ann, "late", "hello?", "conversation_id => "+quote(conversation))
	require.Contains(t, server.Model.Requests("late")[len(server.Model.Requests("late"))-1].LastUser(), "not confirmed in time")

	p, _ = ask()
	require.Equal(t, "1", servertest.Value(t, admin, "SELECT aidb.expire_actions()"))
	require.Equal(t, "expired", servertest.Value(t, ann, "SELECT status FROM aidb.action_history WHERE action_id = $1::uuid", p.id))
	require.Equal(t, "action_expired", servertest.Value(t, ann, "SELECT denial_reason FROM aidb.decisions WHERE object = $1", "action "+p.id+" expired"))
	_, err = confirm(t, ann, p)
	require.Equal(t, "55000", servertest.State(err))
	_, err = confirm(t, server.Conn(t, "bob"), p)
	require.Equal(t, "42501", servertest.State(err))
}

// describe_actions and act stand for the tools of an agent with tool_exposure = catalog; what is not permitted is named.
func TestCatalog(t *testing.T) {
	admin := server.Admin(t)
	servertest.Exec(t, admin, "CREATE ROLE shelf; GRANT shelf TO ann; SELECT aidb.create_purpose('shelf', 'shelf')")
	goods(t, "shelf_goods", "undo_statement => 'UPDATE public.shelf_goods SET state = ''open'''")
	servertest.Exec(t, admin, "GRANT SELECT, UPDATE ON public.shelf_goods TO shelf; CREATE TABLE public.shelf_secret (id int)")
	sqlTool(t, "shelf_burn", "DELETE FROM public.shelf_secret WHERE id = ${id}", "risk => 'safe'")
	ann := server.Conn(t, "ann")
	tools := []string{"shelf_goods_close", "shelf_burn", "run_sql_query"}
	server.Agent(t, ann, "shelf", tools, fakemodel.Call("describe_actions", map[string]any{}), fakemodel.Say("x"))
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('shelf', purpose => 'shelf', tool_exposure => 'catalog')")
	servertest.MustAsk(t, ann, "shelf", "what can you do?")
	first := server.Model.Requests("shelf")[0]
	for tool, offered := range map[string]bool{"describe_actions": true, "act": true, "run_sql_query": true, "shelf_goods_close": false, "shelf_burn": false} {
		require.Equal(t, offered, first.Offers(tool), tool)
	}
	require.JSONEq(t, `{"agent": "shelf", "permitted": [
		{"name": "shelf_goods_close", "summary": "a test", "class": "confirm", "needs_confirmation": true, "can_be_undone": true}],
		"denied": [{"name": "shelf_burn", "denied": "not permitted to this person"}, {"name": "run_sql_query", "denied": "not permitted to this person"}]}`, lastResult(t, "shelf"))

	server.Model.Script("shelf", fakemodel.Call("describe_actions", map[string]any{"tool": "shelf_goods_close"}), fakemodel.Say("x"))
	servertest.MustAsk(t, ann, "shelf", "and how?")
	require.Contains(t, lastResult(t, "shelf"), `"input_schema":{"type":"object","properties":{"id"`)
	server.Model.Script("shelf", fakemodel.Call("describe_actions", map[string]any{"tool": "shelf_burn"}), fakemodel.Say("x"))
	servertest.MustAsk(t, ann, "shelf", "and that?")
	require.JSONEq(t, `{"name": "shelf_burn", "denied": "not permitted to this person"}`, lastResult(t, "shelf"))

	step := map[string]any{"tool": "shelf_goods_close", "args": map[string]any{"id": 1}}
	server.Model.Script("shelf", fakemodel.Call("act", map[string]any{"steps": []any{step}}), fakemodel.Say("x"))
	servertest.MustAsk(t, ann, "shelf", "do it")
	require.Equal(t, "SUCCESS", mustConfirm(t, ann, theOne(t, ann))[0].Status)
}

// A delegate's proposal waits in the conversation of the person, who talks to the agent above it.
func TestDelegate_Proposes(t *testing.T) {
	goods(t, "deputy")
	ann := server.Conn(t, "ann")
	server.Agent(t, ann, "deputy", []string{"deputy_close"}, use("deputy_close", 2), fakemodel.Say("It waits."))
	server.Agent(t, ann, "chief", nil, fakemodel.Call("deputy", map[string]any{"prompt": "close two"}), fakemodel.Say("Shall I?"), fakemodel.Say("Well."))
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('chief', delegates => '{deputy}', confirm_replies => true)")
	o := servertest.MustAsk(t, ann, "chief", "go")
	require.Equal(t, o.Conversation, servertest.Value(t, ann, "SELECT conversation_id FROM aidb.pending_actions"))
	servertest.MustAsk(t, ann, "chief", "yes", "conversation_id => "+quote(o.Conversation))
	require.Equal(t, "2", count(t, "deputy", "closed"))
	require.Empty(t, servertest.Rows(t, server.Admin(t), "SELECT * FROM aidb.verify_decisions()"))
}
