package integration

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// limited registers a model with further members of its config, and an agent on it.
func limited(t *testing.T, conn *pgx.Conn, name, config string, replies ...fakemodel.Reply) {
	t.Helper()
	server.Model.Script(name, replies...)
	servertest.Exec(t, conn, `SELECT aidb.create_model($1, 'openai_completions', aidb.completions_config($1, url => $2) || $3::jsonb, validate => false)`,
		name, server.Model.URL(), config)
	servertest.Exec(t, conn, `SELECT * FROM aidb.create_agent($1, 'You are a test.', $1, tools => '{run_sql_query}')`, name)
}

func contents(r fakemodel.Request) (all []string) {
	for _, m := range r.Messages {
		all = append(all, m.Content)
	}
	return all
}

func TestCompaction_LongConversation(t *testing.T) {
	ann := server.Conn(t, "ann")
	limited(t, ann, "co_long", `{"context_size": 1000}`,
		fakemodel.Query("SELECT repeat('o', 1500) AS old"), fakemodel.Say("answer one"),
		fakemodel.Say("answer two "+strings.Repeat("x", 1500)),
		fakemodel.Say("the summary"), fakemodel.Say("answer three"), fakemodel.Say("answer four"))
	first := servertest.MustAsk(t, ann, "co_long", "one")
	again := func(prompt string) servertest.Outcome {
		return servertest.MustAsk(t, ann, "co_long", prompt, "conversation_id => '"+first.Conversation+"'")
	}
	again("two")
	require.Equal(t, "answer three", again("three").Message)
	require.Equal(t, "answer four", again("four").Message)

	requests := server.Model.Requests("co_long")
	require.Len(t, requests, 6)
	require.Contains(t, requests[3].Messages[1].Content, "[user] one")
	require.Contains(t, requests[3].Messages[1].Content, "[call run_sql_query]")
	for _, r := range requests[4:] {
		all := strings.Join(contents(r), "\n")
		require.Contains(t, all, "the summary")
		require.NotContains(t, all, "ooo")
		require.Contains(t, all, "answer two")
	}

	// Nothing is gone from the log, and the entry says what was replaced.
	require.Equal(t, "true", servertest.Value(t, ann, `SELECT r.n = 4 AND r.n = (c.request_payload ->> 'messages')::int AND c.response_payload ->> 'summary' = 'the summary'
		FROM aidb_internal.action_log c, aidb_internal.action_log f, aidb_internal.action_log u, LATERAL (
			SELECT count(*) AS n FROM aidb_internal.action_log l WHERE l.conversation_id = c.conversation_id
			AND l.action_type IN ('user_prompt', 'model_response', 'tool_response') AND l.created_at BETWEEN f.created_at AND u.created_at) r
		WHERE c.conversation_id = $1::uuid AND c.action_type = 'compaction'
		AND f.id = (c.request_payload ->> 'from')::uuid AND u.id = (c.request_payload ->> 'until')::uuid`, first.Conversation))
	require.Equal(t, "4", servertest.Value(t, ann, "SELECT count(*) FROM aidb.get_conversation($1) WHERE role = 'user'", first.Conversation))
}

func TestCompaction_OverflowOfTheProvider(t *testing.T) {
	ann := server.Conn(t, "ann")
	limited(t, ann, "co_over", `{}`, fakemodel.Say("one"),
		fakemodel.Fail(400, "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."),
		fakemodel.Say("what was said"), fakemodel.Say("two"))
	first := servertest.MustAsk(t, ann, "co_over", "first")
	second := servertest.MustAsk(t, ann, "co_over", "second", "conversation_id => '"+first.Conversation+"'")
	require.Equal(t, "two", second.Message)
	require.Equal(t, "overflow", servertest.Value(t, ann, `SELECT request_payload ->> 'reason' FROM aidb_internal.action_log
		WHERE conversation_id = $1::uuid AND action_type = 'compaction'`, first.Conversation))
	require.Equal(t, "summary", servertest.Value(t, ann, `SELECT string_agg(DISTINCT kind, ',') FROM aidb.model_calls
		WHERE conversation_id = $1::uuid AND kind <> 'reply'`, first.Conversation))
}

func TestCosts_AreCountedAndLimited(t *testing.T) {
	ann := server.Conn(t, "ann")
	reply := fakemodel.Query("SELECT 1")
	reply.Input, reply.Output = 1000, 100
	limited(t, ann, "co_cost", `{"price": {"input": 2.5, "output": 10}}`, reply, fakemodel.Say("done"))
	o := servertest.MustAsk(t, ann, "co_cost", "go")
	require.Equal(t, "0.0035 1000 100 false true", servertest.Value(t, ann, `SELECT concat_ws(' ', trim_scale(cost), input_tokens, output_tokens, estimated::text, (latency > '0')::text)
		FROM aidb.model_calls WHERE conversation_id = $1::uuid ORDER BY created_at LIMIT 1`, o.Conversation))
	require.Equal(t, "true", servertest.Value(t, ann, `SELECT t.cost = (SELECT sum(m.cost) FROM aidb.model_calls m WHERE m.task_id = t.id)
		FROM aidb_internal.agent_task_queue t WHERE t.conversation_id = $1::uuid`, o.Conversation))

	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('co_cost', cost_budget => 0.003, budget_strategy => 'error')")
	server.Model.Script("co_cost", reply, fakemodel.Say("done"))
	o, err := servertest.Ask(t.Context(), ann, "co_cost", "go")
	require.NoError(t, err)
	require.Equal(t, "cost budget exceeded: 0.0035 of 0.003 used", o.Error)

	for bad, want := range map[string]string{
		"cost_budget => 0":                           "Invalid parameters: cost_budget must be greater than zero and less than 9000000",
		"cost_budget => 'NaN'":                       "Invalid parameters: cost_budget must be greater than zero and less than 9000000",
		"tree_token_budget => -1":                    "Invalid parameters: tree_token_budget must be greater than zero",
		"tree_cost_budget => 1e9":                    "Invalid parameters: tree_cost_budget must be greater than zero and less than 9000000",
		`compaction => '[]'`:                         "Invalid parameters: compaction must be a JSON object",
		`compaction => '{"threshold": 2}'`:           `Invalid parameters: compaction "threshold" must be a number from 0.1 to 1`,
		`compaction => '{"keep_turns": 0}'`:          `Invalid parameters: compaction "keep_turns" must be a whole number from 1 to 1000`,
		`compaction => '{"pin": [1]}'`:               `Invalid parameters: compaction "pin" must be an array of at most 100 names of tools`,
		`compaction => '{"model": ""}'`:              `Invalid parameters: compaction "model" must be the name of a model`,
		`compaction => '{"treshold": 1}'`:            "Invalid parameters: compaction does not have the key 'treshold'",
		`reset => '{cost_budget}', cost_budget => 1`: "Invalid parameters: 'cost_budget' is both set and reset",
	} {
		require.Equal(t, want, servertest.Value(t, ann, "SELECT error FROM aidb.update_agent('co_cost', "+bad+")"), bad)
	}
	for bad, want := range map[string]string{
		`{"price": 3}`:                          `config "price" must be a JSON object`,
		`{"price": {"input": 1}}`:               `config "price" must have "input" and "output"`,
		`{"price": {"input": 1, "output": -1}}`: `config "price" "output" must be a number from 0 to 1000000`,
		`{"price": {"input": 1, "out": 1}}`:     `config "price" does not have the key 'out'`,
		`{"context_size": 0.5}`:                 `config "context_size" must be a whole number greater than zero`,
	} {
		_, err := ann.Exec(t.Context(), `SELECT aidb.create_model('co_bad', 'openai_completions', '{"model": "x"}' || $1::jsonb, validate => false)`, bad)
		require.ErrorContains(t, err, want)
	}
	_, err = ann.Exec(t.Context(), `SELECT aidb.create_model('co_bad', 'openai_completions', '{"model": "x", "prize": 1}', validate => false)`)
	var refused *pgconn.PgError
	require.ErrorAs(t, err, &refused)
	for _, key := range []string{"context_size", "fallback", "price", "tokens_per_minute", "url"} {
		require.Contains(t, refused.Hint, key)
	}
}

func TestTreeBudget_StopsTheDelegate(t *testing.T) {
	ann := server.Conn(t, "ann")
	busy := fakemodel.Query("SELECT random()")
	busy.Input, busy.Output = 50, 5
	limited(t, ann, "co_below", `{}`, busy)
	delegate := fakemodel.Call("co_below", map[string]any{"prompt": "dig"})
	delegate.Input, delegate.Output = 10, 1
	limited(t, ann, "co_above", `{}`, delegate, fakemodel.Say("enough"))
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('co_above', delegates => '{co_below}', tree_token_budget => 200)")
	o := servertest.MustAsk(t, ann, "co_above", "go")
	require.Equal(t, "enough", o.Message)
	require.Equal(t, "11 ERROR 220", servertest.Value(t, ann, `SELECT concat_ws(' ', a.budget_consumed - (SELECT sum(input_tokens + output_tokens) FROM aidb.model_calls m
			WHERE m.task_id = t.id AND m.input_tokens <> 10), b.status, b.tree_tokens)
		FROM aidb_internal.agent_task_queue t, aidb.task_tree(t.id) a, aidb.task_tree(t.id) b
		WHERE t.conversation_id = $1::uuid AND a.depth = 0 AND b.depth = 1`, o.Conversation))
	require.Contains(t, servertest.Value(t, ann, `SELECT response_payload ->> 'error' FROM aidb_internal.action_log
		WHERE conversation_id = $1::uuid AND action_type = 'tool_response'`, o.Conversation), "tree budget exceeded: the budget of agent 'co_above'")
}
