package integration

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// delegates makes an agent whose model first hands the prompts to another one, each in a reply of its own, and then answers.
func delegates(t *testing.T, conn *pgx.Conn, name, to string, arguments ...string) {
	t.Helper()
	var replies []fakemodel.Reply
	for _, a := range arguments {
		replies = append(replies, fakemodel.Call(to, a))
	}
	server.Agent(t, conn, name, nil, append(replies, fakemodel.Say("done"))...)
	servertest.Exec(t, conn, "SELECT * FROM aidb.update_agent($1, delegates => ARRAY[$2])", name, to)
}

// results are what the model of an agent got for its calls, as of its last request.
func results(t *testing.T, model string) []string {
	t.Helper()
	requests := server.Model.Requests(model)
	require.NotEmpty(t, requests)
	var list []string
	for _, e := range requests[len(requests)-1].Turn() {
		list = append(list, e.Result)
	}
	return list
}

type handoff struct {
	Answer         string  `json:"answer"`
	ConversationID *string `json:"conversation_id"`
}

func handoffOf(t *testing.T, result string) handoff {
	t.Helper()
	var h handoff
	require.NoError(t, json.Unmarshal([]byte(result), &h), result)
	return h
}

func TestDelegation_AnswerAndTree(t *testing.T) {
	ann, notices := server.ConnNoting(t, "ann")
	server.Agent(t, ann, "dg_counter", sql, fakemodel.Query("SELECT 7 AS n"), fakemodel.Say("There are 7."))
	delegates(t, ann, "dg_desk", "dg_counter", `{"prompt": "How many?"}`)
	notices.Reset()
	o := servertest.MustAsk(t, ann, "dg_desk", "Please count.", "debug => true")
	require.Equal(t, "done", o.Message)

	// What the model above was offered and given.
	first := server.Model.Requests("dg_desk")[0]
	require.NotEmpty(t, first.Tools)
	h := handoffOf(t, results(t, "dg_desk")[0])
	require.Equal(t, "There are 7.", h.Answer)
	// What the delegate was asked: its own instructions, the prompt, nothing of the conversation above.
	inner := server.Model.Requests("dg_counter")[0].Messages
	require.Equal(t, []string{"system", "user"}, roles(inner))
	require.Equal(t, "How many?", inner[1].Content)

	// Two tasks, two logs, one tree.
	require.Equal(t, []string{"user_prompt", "model_request", "model_response", "tool_call", "tool_response", "model_request", "model_response", "answer"},
		servertest.Types(servertest.Log(t, ann, o.Conversation)))
	require.Equal(t, []string{"user_prompt", "model_request", "model_response", "tool_call", "tool_response", "model_request", "model_response", "answer"},
		servertest.Types(servertest.Log(t, ann, *h.ConversationID)))
	top := servertest.Value(t, ann, "SELECT task_id FROM aidb.agent_tasks WHERE conversation_id = $1::uuid AND parent_task_id IS NULL", o.Conversation)
	tree := servertest.Rows(t, ann, `SELECT depth, agent, status::text, role, rounds, parent_task_id::text AS above, conversation_id::text AS c FROM aidb.task_tree($1::uuid)`, top)
	require.Equal(t, []map[string]any{
		{"depth": int32(0), "agent": "dg_desk", "status": "SUCCESS", "role": "ann", "rounds": int32(2), "above": nil, "c": o.Conversation},
		{"depth": int32(1), "agent": "dg_counter", "status": "SUCCESS", "role": "ann", "rounds": int32(2), "above": top, "c": *h.ConversationID},
	}, tree)
	require.Contains(t, notices.Lines("NOTICE"), `[tool_call] run_sql_query({"query": "SELECT 7 AS n"})`)

	// Nobody else sees it; an auditor does.
	require.Empty(t, servertest.Rows(t, server.Conn(t, "bob"), "SELECT * FROM aidb.task_tree($1::uuid)", top))
	require.Len(t, servertest.Rows(t, server.Admin(t), "SELECT * FROM aidb.task_tree($1::uuid)", top), 2)
	require.Empty(t, servertest.Rows(t, ann, "SELECT * FROM aidb.task_tree(NULL)"))

	// The handoff is a decision of the one above, what the delegate did is the delegate's.
	made := servertest.Rows(t, ann, `SELECT agent, interaction_point AS point, status, object, task_id::text = $1 AS above FROM aidb.decisions
		WHERE agent IN ('dg_desk', 'dg_counter') ORDER BY at`, top)
	require.Equal(t, []map[string]any{
		{"agent": "dg_desk", "point": "model_call", "status": "allowed", "object": "dg_desk", "above": true},
		{"agent": "dg_desk", "point": "delegation", "status": "allowed", "object": "dg_counter", "above": true},
		{"agent": "dg_counter", "point": "model_call", "status": "allowed", "object": "dg_counter", "above": false},
		{"agent": "dg_counter", "point": "sql_exec", "status": "allowed", "object": nil, "above": false},
	}, made)
	require.Empty(t, servertest.Rows(t, server.Admin(t), "SELECT * FROM aidb.verify_decisions()"))
}

// The id of the result goes on with that conversation, in the same run, in one transaction and later; somebody else's does not.
func TestDelegation_ContinuesAConversation(t *testing.T) {
	ann := server.Conn(t, "ann")
	server.Agent(t, ann, "dc_spec", nil, fakemodel.Say("one"), fakemodel.Say("two"), fakemodel.Say("three"))
	delegates(t, ann, "dc_desk", "dc_spec", `{"prompt": "first"}`)
	servertest.MustAsk(t, ann, "dc_desk", "go")
	id := *handoffOf(t, results(t, "dc_desk")[0]).ConversationID

	again := fakemodel.Call("dc_spec", map[string]any{"prompt": "again", "conversation_id": id})
	server.Model.Script("dc_desk", fakemodel.Calls(again, again), fakemodel.Say("done"))
	servertest.Exec(t, ann, "BEGIN")
	servertest.MustAsk(t, ann, "dc_desk", "go")
	servertest.Exec(t, ann, "COMMIT")
	last := server.Model.Requests("dc_spec")
	var said []string
	for _, m := range last[len(last)-1].Messages[1:] {
		said = append(said, m.Content)
	}
	require.Equal(t, []string{"first", "one", "again", "two", "again"}, said)
	require.Equal(t, id, *handoffOf(t, results(t, "dc_desk")[1]).ConversationID)
	require.Equal(t, "3", servertest.Value(t, ann, "SELECT count(*) FROM aidb.agent_tasks WHERE conversation_id = $1::uuid AND parent_task_id IS NOT NULL", id))

	server.Model.Script("dc_desk", again, fakemodel.Say("done"))
	servertest.MustAsk(t, server.Conn(t, "bob"), "dc_desk", "go")
	require.Contains(t, results(t, "dc_desk")[0], "Tool error: conversation '"+id+"' belongs to another caller")

	// It is a conversation like any other: its user may go on with it directly.
	server.Model.Script("dc_spec", fakemodel.Say("hello"))
	require.Equal(t, "hello", servertest.MustAsk(t, ann, "dc_spec", "me again", "conversation_id => '"+id+"'").Message)
}

// Ten delegations are allowed; the task that would go deeper ends every task above it.
func TestDelegation_Depth(t *testing.T) {
	ann, notices := server.ConnNoting(t, "ann")
	for i := 11; i >= 0; i-- {
		name, next := fmt.Sprintf("dd_%d", i), fmt.Sprintf("dd_%d", i+1)
		if i == 11 {
			server.Agent(t, ann, name, nil, fakemodel.Say("the end"))
			continue
		}
		delegates(t, ann, name, next, `{"prompt": "on"}`)
	}
	require.Equal(t, "done", servertest.MustAsk(t, ann, "dd_1", "go").Message)
	before := len(server.Model.Requests("dd_1"))
	for i := range 11 {
		server.Model.Script(fmt.Sprintf("dd_%d", i), fakemodel.Call(fmt.Sprintf("dd_%d", i+1), `{"prompt": "on"}`), fakemodel.Say("done"))
	}
	o, err := servertest.Ask(t.Context(), ann, "dd_0", "go")
	require.NoError(t, err)
	require.Equal(t, "delegation depth limit (10) exceeded", o.Error)
	require.Len(t, server.Model.Requests("dd_1"), before+1, "no model is asked again")
	require.Equal(t, "11", servertest.Value(t, ann, "SELECT count(*) FROM aidb.agent_tasks WHERE error = $1 AND status = 'ERROR'", o.Error))
	require.Equal(t, "dd_11", servertest.Value(t, ann, "SELECT object FROM aidb.decisions WHERE denial_reason = 'delegation_depth' AND sqlstate = '53400'"))

	// A circle is accepted, with a warning.
	notices.Reset()
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('dd_0', delegates => ARRAY['dd_0'])")
	require.Equal(t, []string{"delegation goes round in a circle: dd_0 -> dd_0"}, notices.Lines("WARNING"))
	require.Contains(t, notices.Lines("NOTICE")[0], "'dd_0'")
}

func TestDelegation_FailuresAreToolErrors(t *testing.T) {
	ann := server.Conn(t, "ann")
	server.Agent(t, ann, "df_down", nil, fakemodel.Fail(400, "the inner fire is out"))
	server.Agent(t, ann, "df_short", sql)
	server.Model.Answer("df_short", func(r fakemodel.Request) fakemodel.Reply {
		return fakemodel.Query(fmt.Sprintf("SELECT %d AS n", len(r.Turn())))
	})
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('df_short', max_iterations => 1, budget_strategy => 'error')")
	server.Agent(t, ann, "df_slow", nil, fakemodel.Reply{Hang: true})
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('df_slow', timeout => 1)")
	server.Agent(t, ann, "df_gone", nil, fakemodel.Say("hi"))
	call := func(to string) fakemodel.Reply { return fakemodel.Call(to, `{"prompt": "x"}`) }
	server.Agent(t, ann, "df_desk", nil, fakemodel.Calls(call("df_down"), call("df_short"), call("df_slow"), call("df_gone")), fakemodel.Say("I see."))
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('df_desk', delegates => ARRAY['df_down', 'df_short', 'df_slow', 'df_gone'])")
	servertest.Exec(t, ann, "SELECT * FROM aidb.delete_agent('df_gone')")

	o := servertest.MustAsk(t, ann, "df_desk", "go")
	require.Equal(t, "I see.", o.Message)
	got := results(t, "df_desk")
	for i, want := range []string{"the inner fire is out", "iteration budget exceeded: 1 of 1 rounds used", "time budget exceeded: the call took longer than 1 seconds", "df_gone"} {
		require.True(t, strings.HasPrefix(got[i], "Tool error: "), got[i])
		require.Contains(t, got[i], want)
	}
	require.Equal(t, []map[string]any{{"agent": "df_desk", "status": "SUCCESS"}, {"agent": "df_down", "status": "ERROR"}, {"agent": "df_short", "status": "ERROR"}, {"agent": "df_slow", "status": "TIMEOUT"}},
		servertest.Rows(t, ann, `SELECT agent, status::text FROM aidb.task_tree((SELECT task_id FROM aidb.agent_tasks WHERE conversation_id = $1::uuid)) ORDER BY agent`, o.Conversation))
}

// The time of the one above bounds its delegates, and both tasks say so.
func TestDelegation_TheTimeAboveHolds(t *testing.T) {
	ann := server.Conn(t, "ann")
	server.Agent(t, ann, "dt_slow", nil, fakemodel.Reply{Hang: true})
	delegates(t, ann, "dt_desk", "dt_slow", `{"prompt": "x"}`)
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('dt_desk', timeout => 1)")
	o, err := servertest.Ask(t.Context(), ann, "dt_desk", "go")
	require.NoError(t, err)
	require.Equal(t, "time budget exceeded: the call took longer than 1 seconds", o.Error)
	require.Equal(t, []map[string]any{{"status": "TIMEOUT", "error": o.Error}, {"status": "TIMEOUT", "error": "time budget exceeded: the agent that delegated this call has no time left"}},
		servertest.Rows(t, ann, `SELECT status::text, error FROM aidb.agent_tasks WHERE created_at > now() - interval '10 seconds' AND status = 'TIMEOUT'
			AND error LIKE 'time budget exceeded: the%' AND agent_id IN (SELECT id FROM aidb.agents WHERE name LIKE 'dt\_%') ORDER BY created_at`))
}

func TestDelegation_ReadOnlyGoesDown(t *testing.T) {
	ann := server.Conn(t, "ann")
	server.Agent(t, ann, "dr_writer", []string{"execute_sql", "run_sql_query"}, fakemodel.Call("execute_sql", `{"statement": "CREATE TABLE public.by_a_delegate (n int)"}`), fakemodel.Say("tried"))
	delegates(t, ann, "dr_desk", "dr_writer", `{"prompt": "x"}`)
	tasks := servertest.Value(t, ann, "SELECT count(*) FROM aidb.agent_tasks")
	o := servertest.MustAsk(t, ann, "dr_desk", "go", "read_only => true")
	require.Equal(t, "done", o.Message)
	require.Equal(t, handoff{Answer: "tried"}, handoffOf(t, results(t, "dr_desk")[0]))
	require.False(t, server.Model.Requests("dr_writer")[0].Offers("execute_sql"))
	require.Empty(t, servertest.Value(t, ann, "SELECT to_regclass('public.by_a_delegate')"))
	require.Equal(t, tasks, servertest.Value(t, ann, "SELECT count(*) FROM aidb.agent_tasks"))
}

func TestDelegation_Role(t *testing.T) {
	admin := server.Admin(t)
	servertest.Exec(t, admin, `CREATE ROLE role_wide; CREATE ROLE role_narrow; CREATE ROLE role_other; GRANT role_narrow TO role_wide; GRANT role_wide, role_other TO ann;
		GRANT USAGE ON SCHEMA aidb TO role_wide, role_narrow, role_other;
		GRANT EXECUTE ON FUNCTION aidb.run_sql_query(text) TO role_wide, role_narrow, role_other;
		SELECT aidb.create_purpose('wide', 'role_wide'), aidb.create_purpose('narrow', 'role_narrow'), aidb.create_purpose('other', 'role_other'), aidb.create_purpose('old', 'role_narrow')`)
	ann := server.Conn(t, "ann")
	who := []fakemodel.Reply{fakemodel.Query("SELECT current_user::text AS who"), fakemodel.Say("x")}
	for _, purpose := range []string{"narrow", "other", "old"} {
		server.Agent(t, ann, "do_"+purpose, sql)
		servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent($1, purpose => $2)", "do_"+purpose, purpose)
	}
	servertest.Exec(t, admin, "SELECT aidb.delete_purpose('old')")
	for _, above := range []string{"wide", "none"} {
		server.Agent(t, ann, "do_above_"+above, nil)
		servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent($1, delegates => ARRAY['do_narrow', 'do_other', 'do_old'])", "do_above_"+above)
	}
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('do_above_wide', purpose => 'wide')")

	// narrowest is for those who govern.
	_, err := ann.Exec(t.Context(), "SET aidb.delegation_role = 'narrowest'")
	require.Equal(t, "42501", servertest.State(err))
	servertest.Exec(t, admin, "GRANT SET ON PARAMETER aidb.delegation_role TO ann")

	for _, c := range []struct{ setting, above, below, who string }{
		{"parent", "wide", "narrow", "role_wide"},
		{"parent", "wide", "old", "role_wide"},
		{"parent", "none", "narrow", "ann"},
		{"narrowest", "wide", "narrow", "role_narrow"},
		{"narrowest", "wide", "other", "role_wide"},
		{"narrowest", "none", "other", "role_other"},
		{"narrowest", "wide", "old", ""},
	} {
		t.Run(c.setting+", "+c.below+" under "+c.above, func(t *testing.T) {
			servertest.Exec(t, ann, "SET aidb.delegation_role = '"+c.setting+"'")
			server.Model.Script("do_"+c.below, who...)
			server.Model.Script("do_above_"+c.above, fakemodel.Call("do_"+c.below, `{"prompt": "who are you?"}`), fakemodel.Say("done"))
			servertest.MustAsk(t, ann, "do_above_"+c.above, "go")
			if c.who == "" {
				got := results(t, "do_above_"+c.above)[0]
				require.Contains(t, got, "Tool error: purpose 'old' has been retired [decision_id=")
				id := got[strings.Index(got, "=")+1 : len(got)-1]
				require.Equal(t, "do_above_wide delegation denied purpose_refused do_old", servertest.Value(t, ann,
					"SELECT concat_ws(' ', agent, interaction_point, status, denial_reason, object) FROM aidb.decisions WHERE decision_id = $1::uuid", id))
				require.Equal(t, "DENIED", servertest.Value(t, ann, "SELECT status FROM aidb.agent_tasks WHERE error = $1", "purpose 'old' has been retired"))
				return
			}
			require.JSONEq(t, `[{"who": "`+c.who+`"}]`, results(t, "do_"+c.below)[0])
		})
	}
}

// One warning for the whole call, however many agents run as the superuser in it.
func TestDelegation_OneWarningForASuperuser(t *testing.T) {
	admin, notices := server.ConnNoting(t, "postgres")
	server.Agent(t, admin, "dw_spec", sql, fakemodel.Query("SELECT 1 AS n"), fakemodel.Say("x"), fakemodel.Query("SELECT 2 AS n"), fakemodel.Say("y"))
	delegates(t, admin, "dw_desk", "dw_spec", `{"prompt": "a"}`, `{"prompt": "b"}`)
	notices.Reset()
	servertest.MustAsk(t, admin, "dw_desk", "go")
	require.Len(t, notices.Lines("WARNING"), 1)
	notices.Reset()
	server.Model.Script("dw_spec", fakemodel.Query("SELECT 1 AS n"), fakemodel.Say("x"))
	servertest.MustAsk(t, admin, "dw_spec", "go")
	require.Len(t, notices.Lines("WARNING"), 1, "the next call has its own")
}

// What an aborted transaction takes back, it takes back whole.
func TestDelegation_ARollbackErasesTheDelegatesToo(t *testing.T) {
	ann := server.Conn(t, "ann")
	server.Agent(t, ann, "du_spec", nil, fakemodel.Say("x"))
	delegates(t, ann, "du_desk", "du_spec", `{"prompt": "a"}`)
	tasks := servertest.Value(t, ann, "SELECT count(*) FROM aidb.agent_tasks")
	servertest.Exec(t, ann, "BEGIN")
	servertest.MustAsk(t, ann, "du_desk", "go")
	servertest.Exec(t, ann, "ROLLBACK")
	require.Equal(t, tasks, servertest.Value(t, ann, "SELECT count(*) FROM aidb.agent_tasks"))
}
