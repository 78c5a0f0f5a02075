package integration

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// sql is the tool list of an agent that may only query.
var sql = []string{"run_sql_query"}

func TestConverse_QueriesAndAnswers(t *testing.T) {
	ann := server.Conn(t, "ann")
	servertest.Exec(t, server.Admin(t), "CREATE TABLE public.orders AS SELECT g AS id FROM generate_series(1, 4213) g; GRANT SELECT ON public.orders TO ann")
	server.Agent(t, ann, "helper", sql, fakemodel.Query("SELECT count(*) FROM orders"), fakemodel.Say("The orders table has 4,213 rows."))

	o := servertest.MustAsk(t, ann, "helper", "How many rows are in the orders table?")
	require.Equal(t, "The orders table has 4,213 rows.", o.Message)

	// What the model was sent: the instructions, the question, its own call and the rows, under the call's id.
	requests := server.Model.Requests("helper")
	require.Len(t, requests, 2)
	last := requests[1].Messages
	require.Equal(t, []string{"system", "user", "assistant", "tool"}, roles(last))
	require.Contains(t, last[0].Content, "You are a test.")
	require.Equal(t, "How many rows are in the orders table?", last[1].Content)
	require.Equal(t, last[2].ToolCalls[0].ID, last[3].ToolCallID)
	require.JSONEq(t, `[{"count": 4213}]`, last[3].Content)

	// What the log says happened.
	steps := servertest.Log(t, ann, o.Conversation)
	require.Equal(t, []string{"user_prompt", "model_request", "model_response", "tool_call", "tool_response",
		"model_request", "model_response", "answer"}, servertest.Types(steps))
	require.JSONEq(t, `"How many rows are in the orders table?"`, key(t, steps[0].Request, "contents"))
	require.JSONEq(t, `"run_sql_query"`, key(t, steps[3].Request, "tool_name"))
	require.JSONEq(t, `{"query": "SELECT count(*) FROM orders"}`, key(t, steps[3].Request, "arguments"))
	require.JSONEq(t, `"The orders table has 4,213 rows."`, key(t, steps[7].Response, "contents"))
	require.Equal(t, "SUCCESS", servertest.Value(t, ann, "SELECT status FROM aidb.agent_tasks WHERE conversation_id = $1::uuid", o.Conversation))
	require.Equal(t, "ann", servertest.Value(t, ann, "SELECT caller_role FROM aidb.agent_tasks WHERE conversation_id = $1::uuid", o.Conversation))
	require.Equal(t, "2", servertest.Value(t, ann, "SELECT count(*) FROM aidb.conversation_log WHERE conversation_id = $1::uuid", o.Conversation))
}

func TestConverse_ContinuesAConversation(t *testing.T) {
	ann := server.Conn(t, "ann")
	server.Agent(t, ann, "memory", sql, fakemodel.Query("SELECT 7 AS seven"), fakemodel.Say("It is 7."), fakemodel.Say("Still 7."))
	first := servertest.MustAsk(t, ann, "memory", "What is seven?")
	second := servertest.MustAsk(t, ann, "memory", "And now?", "conversation_id => '"+first.Conversation+"'")
	require.Equal(t, first.Conversation, second.Conversation)

	requests := server.Model.Requests("memory")
	history := requests[len(requests)-1].Messages
	require.Equal(t, []string{"system", "user", "assistant", "tool", "assistant", "user"}, roles(history))
	require.JSONEq(t, `[{"seven": 7}]`, history[3].Content)
	require.Equal(t, "It is 7.", history[4].Content)
	require.Equal(t, "And now?", history[5].Content)

	turns := servertest.Rows(t, ann, "SELECT role, contents FROM aidb.get_conversation($1)", first.Conversation)
	require.Len(t, turns, 4)
	require.Equal(t, "user", turns[0]["role"])
	require.Equal(t, "agent", turns[3]["role"])
	require.Equal(t, "Still 7.", turns[3]["contents"])
}

// Two calls in one reply run one after the other, and each result goes back under its own call.
func TestConverse_RunsParallelCallsInOrder(t *testing.T) {
	ann := server.Conn(t, "ann")
	server.Agent(t, ann, "parallel", sql, fakemodel.Calls(fakemodel.Query("SELECT 1 AS n"), fakemodel.Query("SELECT 2 AS n"), fakemodel.Query("SELECT 3 AS n")), fakemodel.Say("ok"))
	o := servertest.MustAsk(t, ann, "parallel", "go")
	turn := server.Model.Requests("parallel")[1].Turn()
	require.Len(t, turn, 3)
	for i, want := range []string{`[{"n": 1}]`, `[{"n": 2}]`, `[{"n": 3}]`} {
		require.JSONEq(t, want, turn[i].Result)
	}
	require.Equal(t, []string{"tool_call", "tool_response", "tool_call", "tool_response", "tool_call", "tool_response"},
		servertest.Types(servertest.Log(t, ann, o.Conversation))[3:9])
}

// What the model does wrong goes back to the model, and the call goes on.
func TestConverse_GivesToolErrorsBack(t *testing.T) {
	ann := server.Conn(t, "ann")
	cases := map[string]struct {
		reply fakemodel.Reply
		says  []string
	}{
		"sql error":            {fakemodel.Query("SELECT * FROM no_such_table"), []string{"Tool error: ", "no_such_table"}},
		"syntax error":         {fakemodel.Query("SELEC 1"), []string{"Tool error: ", "syntax error"}},
		"two statements":       {fakemodel.Query("SELECT 1; SELECT 2"), []string{"Tool error: "}},
		"a write":              {fakemodel.Query("CREATE TABLE public.made_by_a_model (n int)"), []string{"Tool error: "}},
		"unknown tool":         {fakemodel.Call("fly_to_the_moon", nil), []string{"Tool error: ", "fly_to_the_moon"}},
		"tool not its own":     {fakemodel.Call("list_agents", nil), []string{"Tool error: ", "list_agents"}},
		"unknown argument":     {fakemodel.Call("run_sql_query", `{"query": "SELECT 1", "speed": 9}`), []string{"Tool error: ", "unknown argument 'speed'"}},
		"missing argument":     {fakemodel.Call("run_sql_query", `{}`), []string{"Tool error: ", "missing argument 'query'"}},
		"wrong type":           {fakemodel.Call("run_sql_query", `{"query": 7}`), []string{"Tool error: ", "query"}},
		"arguments no JSON":    {fakemodel.Call("run_sql_query", `SELECT 1`), []string{"Tool error: "}},
		"arguments cut":        {fakemodel.Call("run_sql_query", `{"query": "SELEC`), []string{"Tool error: "}},
		"arguments an array":   {fakemodel.Call("run_sql_query", `["SELECT 1"]`), []string{"Tool error: "}},
		"arguments null":       {fakemodel.Call("run_sql_query", `null`), []string{"Tool error: "}},
		"division by zero":     {fakemodel.Query("SELECT 1/0"), []string{"Tool error: ", "division by zero"}},
		"someone else's table": {fakemodel.Query("SELECT * FROM pg_authid"), []string{"Tool error: ", "permission denied"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			agent := "erring: " + name
			server.Agent(t, ann, agent, sql, c.reply, fakemodel.Say("I see."))
			o := servertest.MustAsk(t, ann, agent, "go")
			require.Equal(t, "I see.", o.Message)
			turn := server.Model.Requests(agent)[1].Turn()
			require.Len(t, turn, 1)
			for _, part := range c.says {
				require.Contains(t, turn[0].Result, part)
			}
			logged := servertest.Value(t, ann, `SELECT response_payload->>'error' FROM aidb_internal.action_log
				WHERE conversation_id = $1::uuid AND action_type = 'tool_response'`, o.Conversation)
			require.Contains(t, logged, "Tool error: ")
		})
	}
	require.Empty(t, servertest.Value(t, ann, "SELECT to_regclass('public.made_by_a_model')"))
}

func TestConverse_DebugShowsEachStep(t *testing.T) {
	ann, notices := server.ConnNoting(t, "ann")
	server.Agent(t, ann, "verbose", sql, fakemodel.Query("SELECT 42 AS n"), fakemodel.Query("SELECT nothing"), fakemodel.Say("42"))
	notices.Reset()
	servertest.MustAsk(t, ann, "verbose", "go", "debug => true")
	lines := notices.Lines("NOTICE")
	require.Subset(t, lines, []string{
		`[tool_call] run_sql_query({"query": "SELECT 42 AS n"})`,
		`[tool_response] run_sql_query -> [{"n": 42}]`,
		`[tool_call] run_sql_query({"query": "SELECT nothing"})`,
		`[answer] 42`,
	})
	require.Equal(t, `[answer] 42`, lines[len(lines)-1])

	notices.Reset()
	server.Model.Script("verbose", fakemodel.Say("quiet"))
	servertest.MustAsk(t, ann, "verbose", "go")
	require.Empty(t, notices.Lines("NOTICE"), "nothing without debug")
}

func TestConverse_ReadOnlyLeavesNoTrace(t *testing.T) {
	ann := server.Conn(t, "ann")
	server.Agent(t, ann, "traceless", sql, fakemodel.Query("SELECT 1 AS n"), fakemodel.Say("read"))
	tasks := servertest.Value(t, ann, "SELECT count(*) FROM aidb.agent_tasks")
	o := servertest.MustAsk(t, ann, "traceless", "go", "read_only => true")
	require.Equal(t, "read", o.Message)
	require.Empty(t, o.Conversation)
	require.Equal(t, tasks, servertest.Value(t, ann, "SELECT count(*) FROM aidb.agent_tasks"))
}

func TestConverse_ARollbackErasesTheRun(t *testing.T) {
	ann := server.Conn(t, "ann")
	server.Agent(t, ann, "undone", nil, fakemodel.Say("hi"))
	servertest.Exec(t, ann, "BEGIN")
	o := servertest.MustAsk(t, ann, "undone", "go")
	require.NotEmpty(t, servertest.Log(t, ann, o.Conversation), "seen inside the transaction")
	servertest.Exec(t, ann, "ROLLBACK")
	require.Empty(t, servertest.Log(t, ann, o.Conversation))
}

func TestConverse_StopsAtTheCeiling(t *testing.T) {
	ann := server.Conn(t, "ann")
	server.Agent(t, ann, "restless", sql)
	server.Model.Answer("restless", func(r fakemodel.Request) fakemodel.Reply { // another query each time, for ever
		return fakemodel.Query(fmt.Sprintf("SELECT %d AS n", len(r.Turn())))
	})
	o, err := servertest.Ask(t.Context(), ann, "restless", "go")
	require.NoError(t, err)
	require.NotEmpty(t, o.Error)
	require.LessOrEqual(t, len(server.Model.Requests("restless")), 25, "rounds")
}

// A result that is larger than the caps is cut, and the model is told.
func TestConverse_CutsLargeResults(t *testing.T) {
	ann := server.Conn(t, "ann")
	server.Agent(t, ann, "greedy", sql,
		fakemodel.Query("SELECT g FROM generate_series(1, 100000) g"),
		fakemodel.Query("SELECT repeat('x', 50000000) AS wide"), fakemodel.Say("enough"))
	servertest.MustAsk(t, ann, "greedy", "go")
	turn := server.Model.Requests("greedy")[2].Turn()
	for _, e := range turn {
		require.Contains(t, e.Result, "truncated")
		require.Less(t, len(e.Result), 300<<10)
	}
}

func roles(messages []fakemodel.Message) []string {
	list := make([]string, len(messages))
	for i, m := range messages {
		list[i] = m.Role
	}
	return list
}

// key takes one member of a JSON object, as JSON.
func key(t *testing.T, object, name string) string {
	t.Helper()
	var m map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(object), &m), object)
	return string(m[name])
}
