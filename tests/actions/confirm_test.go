package actions

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// From proposal to undo, and what is in the log and among the decisions afterwards.
func TestAction_FromProposalToUndo(t *testing.T) {
	goods(t, "whole", "undo_statement => 'UPDATE public.whole SET state = ''open'' WHERE id <= ${id}'")
	ann := server.Conn(t, "ann")
	server.Agent(t, ann, "whole", []string{"whole_close"}, use("whole_close", 3), fakemodel.Say("Shall I?"), fakemodel.Say("It is done."))
	o := servertest.MustAsk(t, ann, "whole", "close three")
	require.Equal(t, "Shall I?", o.Message)
	require.Equal(t, "5", count(t, "whole", "open"), "nothing has run")
	seen := lastResult(t, "whole")
	require.Contains(t, seen, `"rows_affected":3`)
	require.Contains(t, seen, "waits for the person's yes")
	require.Equal(t, "AWAIT_APPROVAL", servertest.Value(t, ann, `SELECT status FROM aidb_internal.action_log WHERE action_type = 'tool_response' AND conversation_id = $1::uuid`, o.Conversation))

	p := theOne(t, ann)
	list := mustConfirm(t, ann, p)
	require.Len(t, list, 1)
	require.Equal(t, []any{1, "whole_close", "SUCCESS", ""}, []any{list[0].Step, list[0].Tool, list[0].Status, list[0].err()})
	require.JSONEq(t, `{"rows_affected": 3}`, string(*list[0].Result))
	require.Equal(t, "3", count(t, "whole", "closed"))
	require.Empty(t, waiting(t, ann))

	// the model is told with the next prompt, and it stays part of the conversation
	servertest.MustAsk(t, ann, "whole", "and?", "conversation_id => "+quote(o.Conversation))
	servertest.MustAsk(t, ann, "whole", "and now?", "conversation_id => "+quote(o.Conversation))
	requests := server.Model.Requests("whole")
	told := 0
	for _, m := range requests[len(requests)-1].Messages {
		told += strings.Count(m.Content, "was confirmed and has run")
	}
	require.Equal(t, 1, told)

	undone, err := outcomes(t, ann, "SELECT * FROM aidb.undo_action($1::uuid)", p.id)
	require.NoError(t, err)
	require.Equal(t, "SUCCESS", undone[0].Status)
	require.Equal(t, "5", count(t, "whole", "open"))
	_, err = outcomes(t, ann, "SELECT * FROM aidb.undo_action($1::uuid)", p.id)
	require.Equal(t, "55000", servertest.State(err))

	require.Equal(t, "proposed AWAIT_APPROVAL, confirmed SUCCESS, undone SUCCESS", servertest.Value(t, ann, `SELECT string_agg((request_payload ->> 'event') || ' ' || status, ', ' ORDER BY created_at)
		FROM aidb_internal.action_log WHERE action_type = 'approval' AND conversation_id = $1::uuid`, o.Conversation))
	require.Equal(t, "3", servertest.Value(t, ann, `SELECT count(*) FROM aidb.decisions WHERE interaction_point = 'approval' AND conversation_id = $1::uuid`, o.Conversation))
	require.Empty(t, servertest.Rows(t, server.Admin(t), "SELECT * FROM aidb.verify_decisions()"))
}

// Whoever reads everything that a model was ever sent, and every log, finds no token.
func TestToken_IsNowhereButInTheView(t *testing.T) {
	goods(t, "secretive")
	ann := server.Conn(t, "ann")
	server.Agent(t, ann, "secretive", []string{"secretive_close", "run_sql_query"}, use("secretive_close", 1), fakemodel.Say("Shall I?"))
	o := servertest.MustAsk(t, ann, "secretive", "go", "debug => true")
	p := theOne(t, ann)
	require.Regexp(t, `^aidb-yes-[A-Za-z0-9_-]{43}$`, p.token)

	// a person who pastes it, and a table that holds it: neither gets it to the model
	servertest.Exec(t, server.Admin(t), "CREATE TABLE public.pasted AS SELECT token FROM aidb_internal.action_tokens; GRANT SELECT ON public.pasted TO ann")
	server.Model.Script("secretive", fakemodel.Query("SELECT token FROM public.pasted"), fakemodel.Query("SELECT count(*) FROM aidb.pending_actions"), fakemodel.Say("x"))
	servertest.MustAsk(t, ann, "secretive", "here: "+p.token, "conversation_id => "+quote(o.Conversation))
	for _, r := range server.Model.Requests("secretive") {
		for _, m := range r.Messages {
			require.NotContains(t, m.Content, p.token)
		}
	}
	require.Equal(t, `[{"count": 0}]`, lastResult(t, "secretive"), "inside a tool call nothing waits")
	require.Equal(t, "0", servertest.Value(t, server.Admin(t), "SELECT count(*) FROM aidb_internal.action_log l WHERE strpos(l::text, $1) > 0", p.token))
	_, err := ann.Exec(t.Context(), "SELECT * FROM aidb_internal.action_tokens")
	require.Equal(t, "42501", servertest.State(err))
	_, err = ann.Exec(t.Context(), "SELECT aidb.reject_action($1::uuid)", p.id)
	require.NoError(t, err)
	require.Empty(t, waiting(t, ann))
	require.Equal(t, "0", servertest.Value(t, server.Admin(t), "SELECT count(*) FROM aidb_internal.action_tokens WHERE token = $1", p.token), "a decided action has none")
}

// Two who confirm at once: one runs it, the other is refused, and it ran once.
func TestConfirm_Twice(t *testing.T) {
	goods(t, "twice")
	sqlTool(t, "twice_add", "INSERT INTO public.twice SELECT max(id) + 1 FROM public.twice WHERE ${id} > 0", "risk => 'confirm'")
	ann := server.Conn(t, "ann")
	server.Agent(t, ann, "twice", []string{"twice_add"}, use("twice_add", 1), fakemodel.Say("?"))
	for range 5 {
		before := count(t, "twice", "open")
		server.Model.Script("twice", use("twice_add", 1), fakemodel.Say("?"))
		servertest.MustAsk(t, ann, "twice", "go")
		p := theOne(t, ann)
		var wg sync.WaitGroup
		states := make([]string, 4)
		for i := range states {
			conn := server.Conn(t, "ann")
			wg.Go(func() {
				_, err := confirm(t, conn, p)
				states[i] = servertest.State(err)
			})
		}
		wg.Wait()
		require.ElementsMatch(t, []string{"", "42501", "42501", "42501"}, states)
		require.NotEqual(t, before, count(t, "twice", "open"))
	}
	require.Equal(t, "10", servertest.Value(t, server.Admin(t), "SELECT count(*) FROM public.twice"))
}

// Rolled back, it was not confirmed.
func TestConfirm_RolledBackWaitsOn(t *testing.T) {
	goods(t, "rolled")
	ann := server.Conn(t, "ann")
	server.Agent(t, ann, "rolled", []string{"rolled_close"}, use("rolled_close", 2), fakemodel.Say("?"))
	servertest.MustAsk(t, ann, "rolled", "go")
	p := theOne(t, ann)
	tx, err := ann.Begin(t.Context())
	require.NoError(t, err)
	mustConfirm(t, ann, p)
	require.NoError(t, tx.Rollback(t.Context()))
	require.Equal(t, p, theOne(t, ann))
	require.Equal(t, "5", count(t, "rolled", "open"))
	require.Equal(t, "SUCCESS", mustConfirm(t, ann, p)[0].Status)
}

// What was shown is what runs. If somebody changed the rows meanwhile it stops and shows both, unless the tool allows it.
func TestConfirm_WhatDiffersFromThePreviewStops(t *testing.T) {
	goods(t, "drift")
	sqlTool(t, "drift_rows", "UPDATE public.drift SET state = state WHERE id = ${id} RETURNING id, state", "risk => 'confirm'")
	sqlTool(t, "drift_any", "UPDATE public.drift SET state = 'closed' WHERE state = 'open' AND id <= ${id}", "risk => 'confirm'", "allow_mismatch => true")
	sqlTool(t, "drift_told", "UPDATE public.drift SET state = 'told' WHERE id = ${id}", "risk => 'confirm'",
		"preview_statement => 'SELECT id, state FROM public.drift WHERE id = ${id}'")
	ann, admin := server.Conn(t, "ann"), server.Admin(t)
	ask := func(tool string, id int) pending {
		server.Agent(t, ann, "drift_"+tool, []string{tool}, use(tool, id), fakemodel.Say("?"))
		servertest.MustAsk(t, ann, "drift_"+tool, "go")
		return theOne(t, ann)
	}
	p := ask("drift_close", 3)
	servertest.Exec(t, admin, "UPDATE public.drift SET state = 'gone' WHERE id = 2")
	list := mustConfirm(t, ann, p)
	require.Equal(t, "ERROR", list[0].Status)
	require.Contains(t, list[0].err(), "not what the preview showed")
	require.Contains(t, string(*list[0].Result), `"rows_affected": 3`)
	require.Contains(t, string(*list[0].Result), `"rows_affected": 2`)
	require.Equal(t, "0", count(t, "drift", "closed"))

	p = ask("drift_rows", 3)
	servertest.Exec(t, admin, "UPDATE public.drift SET state = 'other' WHERE id = 3")
	require.Equal(t, "ERROR", mustConfirm(t, ann, p)[0].Status, "as many rows, but others")

	p = ask("drift_told", 5)
	servertest.Exec(t, admin, "UPDATE public.drift SET state = 'other' WHERE id = 5")
	require.Equal(t, "ERROR", mustConfirm(t, ann, p)[0].Status)
	require.Equal(t, "0", count(t, "drift", "told"))
	servertest.Exec(t, admin, "SELECT aidb.delete_tool('drift_told')")

	p = ask("drift_any", 5)
	servertest.Exec(t, admin, "UPDATE public.drift SET state = 'gone' WHERE id = 4")
	require.Equal(t, "SUCCESS", mustConfirm(t, ann, p)[0].Status)
}

// A plan is previewed as a whole, each step seeing those before it, and runs as a whole; a step whose permission has gone
// stops it, and those before it stand.
func TestPlan_StepsSeeEachOther(t *testing.T) {
	goods(t, "plan")
	servertest.Exec(t, server.Admin(t), "CREATE TABLE public.plan_log (n int, state text); GRANT ALL ON public.plan_log TO ann")
	sqlTool(t, "plan_note", "INSERT INTO public.plan_log SELECT count(*), 'x' FROM public.plan WHERE state = 'closed' AND ${id} > 0 RETURNING n", "risk => 'safe'")
	ann, admin := server.Conn(t, "ann"), server.Admin(t)
	step := func(tool string, id int) map[string]any {
		return map[string]any{"tool": tool, "args": map[string]any{"id": id}}
	}
	act := fakemodel.Call("act", map[string]any{"steps": []any{step("plan_close", 2), step("plan_note", 1), step("plan_close", 4)}})
	server.Agent(t, ann, "plan", []string{"act", "plan_close", "plan_note"}, act, fakemodel.Say("?"))
	servertest.MustAsk(t, ann, "plan", "go")
	require.Contains(t, lastResult(t, "plan"), `"rows":[{"n":2}]`, "the second step's preview sees what the first would do")
	require.Equal(t, "0", servertest.Value(t, admin, "SELECT count(*) FROM public.plan_log"))

	servertest.Exec(t, admin, "REVOKE ALL ON public.plan_log FROM ann")
	list := mustConfirm(t, ann, theOne(t, ann))
	require.Len(t, list, 3)
	require.Equal(t, []string{"SUCCESS", "DENIED", "CANCELED"}, []string{list[0].Status, list[1].Status, list[2].Status})
	require.Contains(t, list[1].err(), "no longer permitted: permission denied for table plan_log")
	require.Equal(t, "2", count(t, "plan", "closed"))
	require.Equal(t, "stopped", servertest.Value(t, ann, "SELECT status FROM aidb.action_history WHERE agent = 'plan'"))
}

// Steps that run at once: in order, each by itself; what fails ends the plan, what ran before it stands.
func TestPlan_SafeStepsRunUntilOneFails(t *testing.T) {
	goods(t, "quick")
	sqlTool(t, "quick_set", "UPDATE public.quick SET state = 'set' WHERE id = 10 / ${id}", "risk => 'safe'")
	ann := server.Conn(t, "ann")
	step := func(id int) map[string]any {
		return map[string]any{"tool": "quick_set", "args": map[string]any{"id": id}}
	}
	server.Agent(t, ann, "quick", []string{"act", "quick_set"}, fakemodel.Call("act", map[string]any{"steps": []any{step(10), step(0), step(5)}}), fakemodel.Say("x"))
	servertest.MustAsk(t, ann, "quick", "go")
	require.Contains(t, lastResult(t, "quick"), "step 2 of 3 failed")
	require.Contains(t, lastResult(t, "quick"), "division by zero")
	require.Equal(t, "1", count(t, "quick", "set"))
	// a wrong argument anywhere: nothing runs
	server.Model.Script("quick", fakemodel.Call("act", map[string]any{"steps": []any{step(5), map[string]any{"tool": "quick_set", "args": map[string]any{"no": 1}}}}), fakemodel.Say("x"))
	servertest.MustAsk(t, ann, "quick", "go")
	require.Contains(t, lastResult(t, "quick"), "step 2 (quick_set): unknown argument 'no'")
	require.Equal(t, "1", count(t, "quick", "set"))
}
