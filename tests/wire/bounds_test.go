package wire

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// asked has an agent with an output token budget of 40 on a model of this provider, and returns what came of one call of it.
func asked(t *testing.T, name, provider string, config map[string]any, budget int, replies ...fakemodel.Reply) (servertest.Outcome, []map[string]json.RawMessage) {
	t.Helper()
	server.Model.Script(name, replies...)
	conn := caller(t, map[string]string{"client_min_messages": "error"}).Conn
	all := map[string]any{"model": name, "url": server.Model.URL()}
	for k, v := range config {
		all[k] = v
	}
	servertest.Exec(t, conn, `SELECT aidb.create_model($1, $2, $3::jsonb, credentials => $4::jsonb, validate => false)`,
		name, provider, all, map[string]any{"api_key": servertest.Secret})
	servertest.Exec(t, conn, `SELECT * FROM aidb.create_agent($1, 'x', $1, tools => '{count_orders}', output_token_budget => nullif($2, 0), budget_strategy => 'error')`, name, budget)
	out, err := servertest.Ask(t.Context(), conn, name, "Which?")
	require.NoError(t, err)
	var sent []map[string]json.RawMessage
	for _, r := range server.Model.Requests(name) {
		body := map[string]json.RawMessage{}
		require.NoError(t, json.Unmarshal(r.Body, &body))
		sent = append(sent, body)
	}
	return out, sent
}

// TestBudget_BoundsTheReply: the provider is asked for no more tokens than the budget has left, by the name that it knows.
func TestBudget_BoundsTheReply(t *testing.T) {
	tools(t)
	call := fakemodel.Call("count_orders", map[string]any{})
	call.Input, call.Output = 5, 10
	cut := fakemodel.Reply{Content: "Total", Finish: "length", Input: 5, Output: 31}
	for provider, name := range map[string]string{
		"openai_completions": "max_tokens", "anthropic_messages": "max_tokens", "openai_responses": "max_output_tokens",
	} {
		t.Run(provider, func(t *testing.T) {
			out, sent := asked(t, "bounded "+provider, provider, map[string]any{"stream": false}, 40, call, cut)
			require.Equal(t, "output token budget exceeded: 41 of 40 tokens used", out.Error)
			require.Len(t, sent, 2)
			require.Equal(t, "41", string(sent[0][name]))
			require.Equal(t, "31", string(sent[1][name]))
			_, sent = asked(t, "unbounded "+provider, provider, nil, 0, done)
			require.Equal(t, map[string]string{"anthropic_messages": "4096"}[provider], string(sent[0][name]), "only what the API demands")
		})
	}
	// The config's own bound stands where it is the smaller one, and a server that wants another name, or none, is heeded.
	_, sent := asked(t, "bounded by its config", "openai_completions", map[string]any{"max_tokens": map[string]any{"size": 20, "format": "legacy"}}, 40, done)
	require.Equal(t, "20", string(sent[0]["max_tokens"]))
	other := fakemodel.Fail(400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
	out, sent := asked(t, "bounded by another name", "openai_completions", nil, 40, other, done)
	require.Equal(t, "Total is 41.50.", out.Message, out.Error)
	require.Equal(t, "41", string(sent[1]["max_completion_tokens"]))
	out, sent = asked(t, "bounded by no name", "openai_completions", nil, 40, other, fakemodel.Fail(400, "max_completion_tokens is not supported"), done)
	require.Equal(t, "Total is 41.50.", out.Message, out.Error)
	require.NotContains(t, sent[2], "max_tokens")
	require.NotContains(t, sent[2], "max_completion_tokens")
	out, sent = asked(t, "bounded below its thoughts", "anthropic_messages", nil, 40,
		fakemodel.Fail(400, "`max_tokens` must be greater than `thinking.budget_tokens`."), done)
	require.Equal(t, "Total is 41.50.", out.Message, out.Error)
	require.Equal(t, "4096", string(sent[1]["max_tokens"]))
}

// TestTyped_AsTheCallOfATool: where the API has no other way to a typed answer, it is the call of a tool; where a server may
// have none, once the words alone did not do.
func TestTyped_AsTheCallOfATool(t *testing.T) {
	tools(t)
	answer := fakemodel.Call("answer", map[string]any{"total": "41.50"})
	wrong := fakemodel.Call("answer", map[string]any{"sum": 41})
	both := fakemodel.Calls(fakemodel.Call("count_orders", map[string]any{}), wrong)
	named := map[string]string{
		"anthropic_messages": `{"type":"tool","name":"answer"}`, "openai_completions": `{"type":"function","function":{"name":"answer"}}`,
		"openai_responses": `{"type":"function","name":"answer"}`,
	}
	noFormat := fakemodel.Fail(400, "text.format of type json_schema is not supported")
	noChoice := fakemodel.Fail(400, "tool_choice is not supported while thinking")
	for name, c := range map[string]struct {
		provider string
		replies  []fakemodel.Reply
		choices  []string // tool_choice of each request
	}{
		"called at once":             {"anthropic_messages", list(answer), []string{`{"type":"any"}`}},
		"beside calls":               {"anthropic_messages", list(both, answer), []string{`{"type":"any"}`, `{"type":"any"}`}},
		"repaired":                   {"anthropic_messages", list(wrong, answer), []string{`{"type":"any"}`, named["anthropic_messages"]}},
		"a text":                     {"anthropic_messages", list(fakemodel.Say(`{"total":"41.50"}`)), []string{`{"type":"any"}`}},
		"a model that thinks":        {"anthropic_messages", list(noChoice, answer), []string{`{"type":"any"}`, ""}},
		"words do":                   {"openai_completions", list(fakemodel.Say(`{"total":"41.50"}`)), []string{""}},
		"words did not do":           {"openai_completions", list(fakemodel.Say("41.50"), answer), []string{"", named["openai_completions"]}},
		"no choice of a tool":        {"openai_completions", list(fakemodel.Say("41.50"), noChoice, fakemodel.Say(`{"total":"41.50"}`)), []string{"", named["openai_completions"], ""}},
		"responses without a format": {"openai_responses", list(noFormat, fakemodel.Say("41.50"), answer), []string{"", "", named["openai_responses"]}},
	} {
		t.Run(name, func(t *testing.T) {
			name := "typed: " + name
			server.Model.Script(name, c.replies...)
			conn := caller(t, nil).Conn
			servertest.Exec(t, conn, `SELECT aidb.create_model($1, $2, $3::jsonb, credentials => $4::jsonb, validate => false)`,
				name, c.provider, map[string]any{"model": name, "url": server.Model.URL()}, map[string]any{"api_key": servertest.Secret})
			servertest.Exec(t, conn, `SELECT * FROM aidb.create_agent($1, 'x', $1, tools => '{count_orders}', output_type => $2::jsonb)`, name, schema)
			out, err := servertest.Ask(t.Context(), conn, name, "Which?")
			require.NoError(t, err)
			require.Empty(t, out.Error)
			require.JSONEq(t, `{"total":"41.50"}`, out.Message)
			var choices []string
			for _, r := range server.Model.Requests(name) {
				var body struct {
					Choice json.RawMessage `json:"tool_choice"`
				}
				require.NoError(t, json.Unmarshal(r.Body, &body))
				choices = append(choices, string(body.Choice))
			}
			require.Equal(t, c.choices, choices)
			// The next turn is as if it had been a text.
			server.Model.Script(name, fakemodel.Say(`{"total":"2"}`))
			more, err := servertest.Ask(t.Context(), conn, name, "And now?", "conversation_id => '"+out.Conversation+"'")
			require.NoError(t, err)
			require.JSONEq(t, `{"total":"2"}`, more.Message, more.Error)
		})
	}
}

// TestBudget_CountsThoughts: a model that thinks without end is cut where a long token each would exceed the budget, and what it thought
// counts by the stated rule, as the provider's own count comes at the end only.
func TestBudget_CountsThoughts(t *testing.T) {
	tools(t)
	for provider, event := range map[string][2]string{
		"openai_completions": {"", `data: {"choices":[{"index":0,"delta":{"reasoning_content":"hmm "}}]}`},
		"anthropic_messages": {
			`data: {"type":"message_start","message":{"usage":{"input_tokens":9,"output_tokens":1}}}` + "\n\n" +
				`data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}` + "\n\n",
			`data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hmm "}}`,
		},
		"openai_responses": {"", `data: {"type":"response.reasoning_text.delta","delta":"hmm "}`},
	} {
		t.Run(provider, func(t *testing.T) {
			endless := fakemodel.Reply{Raw: event[0] + strings.Repeat(event[1]+"\n\n", 1000), RawType: "text/event-stream"}
			out, sent := asked(t, "thinks "+provider, provider, nil, 50, endless)
			// 51 tokens of 16 bytes are 816 bytes, which the 205th thought exceeds.
			require.Equal(t, "output token budget exceeded: 205 of 50 tokens used", out.Error)
			require.Len(t, sent, 1)
		})
	}
	renamed := fakemodel.Reply{Raw: strings.Repeat(`data: {"choices":[{"index":0,"delta":{"reasoning":"hmm "}}]}`+"\n\n", 1000), RawType: "text/event-stream"}
	out, _ := asked(t, "thinks by another name", "openai_completions", nil, 50, renamed)
	require.Contains(t, out.Error, "of 50 tokens used")
}
