package dummy

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
)

func ref(config string) agent.ModelRef {
	return agent.ModelRef{Name: "m", Config: json.RawMessage(config)}
}

func open(t *testing.T, p *Provider, r agent.ModelRef) agent.Model {
	t.Helper()
	m, err := p.Open(r)
	require.NoError(t, err)
	return m
}

func text(t *testing.T, m agent.Model, prompt string) string {
	t.Helper()
	got, err := m.Complete(t.Context(), agent.Request{Messages: []conversation.Message{
		{Role: conversation.System, Content: "s"}, {Role: conversation.User, Content: "before"}, {Role: conversation.Assistant, Content: "x"}, {Role: conversation.User, Content: prompt},
	}})
	require.NoError(t, err)
	return got.Content
}

func TestScript_PlaysInOrderAndRepeatsTheLast(t *testing.T) {
	t.Parallel()
	p := NewProvider()
	r := ref(`{"responses":[{"response":"a"},{"response":"b"}]}`)
	m := open(t, p, r)
	require.Equal(t, "a", text(t, m, "p"))
	// The place belongs to the process, not to the run.
	m = open(t, p, r)
	require.Equal(t, "b", text(t, m, "p"))
	require.Equal(t, "b", text(t, m, "p"))
	require.Equal(t, "b", text(t, open(t, p, r), "p"))

	other := r
	other.Name = "n"
	require.Equal(t, "a", text(t, open(t, p, other), "p"), "another model has a place of its own")
	require.Equal(t, "c", text(t, open(t, p, ref(`{"responses":[{"response":"c"},{"response":"b"}]}`)), "p"), "another script begins anew")
	require.Equal(t, "a", text(t, open(t, NewProvider(), r), "p"), "another process, too")
}

func TestScript_OfACallBeginsAnewWithEveryCall(t *testing.T) {
	t.Parallel()
	p := NewProvider()
	r := ref(`{"scope":"call","responses":[{"response":"a"},{"response":"b"}]}`)
	for range 2 {
		m := open(t, p, r)
		require.Equal(t, "a", text(t, m, "p"))
		require.Equal(t, "b", text(t, m, "p"))
		require.Equal(t, "b", text(t, m, "p"))
	}
}

func TestScript_ConcurrentRunsShareThePlace(t *testing.T) {
	t.Parallel()
	p := NewProvider()
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := map[string]int{}
	for range 20 {
		wg.Go(func() {
			m, err := p.Open(ref(`{"responses":[{"response":"a"},{"response":"b"}]}`))
			if err != nil {
				t.Error(err)
				return
			}
			got, err := m.Complete(context.Background(), agent.Request{})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			seen[got.Content]++
			mu.Unlock()
		})
	}
	wg.Wait()
	require.Equal(t, map[string]int{"a": 1, "b": 19}, seen)
}

func TestScript_PromptIsFilledIn(t *testing.T) {
	t.Parallel()
	prompt := `say "hi" \ ${prompt} <b>`
	m := open(t, NewProvider(), ref(`{"responses":[{"response":"you said: ${prompt}, ${prompt}","tool_calls":[{"name":"t","arguments":`+
		`{"q":"<${prompt}>","n":9007199254740993,"deep":[{"${prompt}":["${prompt}"]}],"plain":"$prompt"}}]}]}`))
	got, err := m.Complete(t.Context(), agent.Request{Messages: []conversation.Message{{Role: conversation.User, Content: prompt}}})
	require.NoError(t, err)
	require.Equal(t, "you said: "+prompt+", "+prompt, got.Content)
	require.Equal(t, `{"deep":[{"${prompt}":["say \"hi\" \\ ${prompt} <b>"]}],"n":9007199254740993,"plain":"$prompt","q":"<say \"hi\" \\ ${prompt} <b>>"}`, got.ToolCalls[0].Arguments)
	// What the loop says as the user later in the run is not the prompt.
	got, err = m.Complete(t.Context(), agent.Request{Messages: []conversation.Message{{Role: conversation.User, Content: prompt}, {Role: conversation.User, Content: "hurry"}}})
	require.NoError(t, err)
	require.Equal(t, "you said: "+prompt+", "+prompt, got.Content)
}

func TestScript_Replies(t *testing.T) {
	t.Parallel()
	m := open(t, NewProvider(), ref(`{"responses":[
		{"response":"both","tool_calls":[{"name":"a","arguments":{"x": 1}},{"name":"b"},{"name":"c","arguments":null}],"tokens_in":5,"tokens_out":0},
		{"error":"out of order: ${prompt}"},{"response":""}]}`))
	r := agent.Request{Messages: []conversation.Message{{Role: conversation.User, Content: "p"}}}
	got, err := m.Complete(t.Context(), r)
	require.NoError(t, err)
	in, out := int64(5), int64(0)
	require.Equal(t, agent.Reply{
		Content: "both", Finish: agent.FinishToolCalls, Model: "m", Usage: conversation.Usage{Input: &in, Output: &out},
		ToolCalls: []conversation.ToolCall{{ID: "call_1_1", Name: "a", Arguments: `{"x": 1}`}, {ID: "call_1_2", Name: "b", Arguments: "{}"}, {ID: "call_1_3", Name: "c", Arguments: "{}"}},
	}, got)
	_, err = m.Complete(t.Context(), r)
	require.EqualError(t, err, "out of order: p")
	require.True(t, fault.KindOf(err).Model())
	got, err = m.Complete(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, agent.Reply{Finish: agent.FinishStop, Model: "m"}, got)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = m.Complete(ctx, r)
	require.True(t, fault.Is(err, fault.Canceled))
}

func TestCheckConfig_NamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		``:                                "EOF",
		`null`:                            "responses must be a list of at least one reply",
		`{}`:                              "responses must be a list of at least one reply",
		`[]`:                              "it is a JSON array, not an object",
		`"hi"`:                            "it is a JSON string, not an object",
		`{"responses":[]}`:                "at least one reply",
		`{"responses":"hi"}`:              "responses must not be a JSON string",
		`{"responses":[7]}`:               "responses must not be a JSON number",
		`{"responses":[{}]}`:              "responses[0] has no response, no tool_calls and no error",
		`{"responses":[{"tokens_in":1}]}`: "responses[0] has no response",
		`{"responses":[{"respnse":"x"}]}`: `unexpected member "respnse"`,
		`{"responses":[{"response":7}]}`:  "responses.response must not be a JSON number",
		`{"replies":[{"response":"x"}]}`:  `unexpected member "replies"`,
		`{"responses":[{"response":"x"},{"tool_calls":[{"arguments":{}}]}]}`: "responses[1].tool_calls[0] has no name",
		`{"responses":[{"tool_calls":[{"name":"t","arguments":"{}"}]}]}`:     "responses[0].tool_calls[0].arguments is not an object",
		`{"responses":[{"tool_calls":[{"name":"t","arguments":[1]}]}]}`:      "arguments is not an object",
		`{"responses":[{"tool_calls":{"name":"t"}}]}`:                        "responses.tool_calls must not be a JSON object",
		`{"responses":[{"response":"x","tokens_in":-1}]}`:                    "tokens_in is below zero",
		`{"responses":[{"response":"x","tokens_out":1.5}]}`:                  "tokens_out must not be a JSON number 1.5",
		`{"responses":[{"response":"x"}],"scope":"session"}`:                 "scope is 'session'",
		`{"responses":[{"response":"x"}]} {}`:                                "more than one JSON value",
		`{"responses":[{"response":"x"}]`:                                    "unexpected EOF",
	} {
		err := CheckConfig(json.RawMessage(config))
		require.ErrorContains(t, err, want, config)
		require.True(t, fault.Is(err, fault.InvalidArgument))
		_, err = NewProvider().Open(ref(config))
		require.Error(t, err)
	}
	for _, config := range []string{
		`{"responses":[{"response":"x"}]}`, `{"responses":[{"response":""}],"scope":"backend"}`, `{"responses":[{"error":"x"}],"scope":"call"}`,
		`{"responses":[{"response":null,"tool_calls":[{"name":"t"}],"tokens_in":null}]}`,
	} {
		require.NoError(t, CheckConfig(json.RawMessage(config)), config)
	}
}
