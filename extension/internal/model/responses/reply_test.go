package responses

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/wire"
)

var offered = agent.Request{Tools: []agent.ToolSpec{{Name: "count", Parameters: json.RawMessage(`{"type":"object","properties":{}}`)}}}

// decode reads a body as a reply would be, stream or not.
func decode(body string, most int64) (agent.Reply, kept, *wire.Failure) {
	n := wire.NewNames(offered)
	if doc := wire.TrimLead([]byte(body)); wire.LooksLikeStream(doc) {
		r, f := fold(wire.LinesOf(doc), most)
		if f != nil {
			return agent.Reply{}, kept{}, f
		}
		return r.reply(n)
	}
	return whole([]byte(body), "application/json", n)
}

func TestReply(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body    string
		want    string // content|finish|calls
		failure string
	}{
		"a text":            {`{"output":[{"type":"message","content":[{"type":"output_text","text":"a"},{"type":"output_text","text":"b"}]}]}`, "ab|stop|", ""},
		"a bare text":       {`{"output":[{"type":"message","content":"a"}]}`, "a|stop|", ""},
		"a call":            {`{"output":[{"type":"function_call","call_id":"t","name":"count","arguments":"{}"}]}`, "|tool_calls|t count {}", ""},
		"an object":         {`{"output":[{"type":"function_call","call_id":"t","name":"Count","arguments":{"a":1}}]}`, `|tool_calls|t count {"a":1}`, ""},
		"no id":             {`{"output":[{"type":"function_call","name":"count"}]}`, "|tool_calls|call00001 count ", ""},
		"cut":               {`{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}`, "|length|", ""},
		"filtered":          {`{"status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[]}`, "|content_filter|", ""},
		"a failure":         {`{"status":"failed","error":{"code":"server_error","message":"no"},"output":[]}`, "", "no"},
		"no response":       {`{"a":1}`, "", "without output"},
		"cut JSON":          {`{"output":[`, "", "ends in the middle"},
		"no end":            {"data: {\"type\":\"response.created\"}\n\n", "", "ends in the middle"},
		"an error, unnamed": {"data: {\"message\":\"no\"}\n\n", "", "no"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _, f := decode(c.body, 0)
			if c.failure != "" {
				require.NotNil(t, f)
				require.Contains(t, f.Text, c.failure)
				return
			}
			require.Nil(t, f)
			var calls []string
			for _, x := range r.ToolCalls {
				calls = append(calls, x.ID+" "+x.Name+" "+x.Arguments)
			}
			require.Equal(t, c.want, r.Content+"|"+r.Finish+"|"+strings.Join(calls, ";"))
		})
	}
}

func TestFold_StopsWhereItCannotBePaidFor(t *testing.T) {
	t.Parallel()
	r, _, f := decode(strings.Repeat("data: {\"type\":\"response.output_text.delta\",\"delta\":\"0123456789\"}\n\n", 100), 40)
	require.Nil(t, f)
	require.Equal(t, agent.FinishLength, r.Finish)
	require.Len(t, r.Content, 50)
}

func TestRequest(t *testing.T) {
	t.Parallel()
	c, err := parseConfig(json.RawMessage(`{"model":"m","system_prompt":"s","max_output_tokens":9,"extra_args":{"reasoning":{"effort":"low"},"store":true}}`))
	require.NoError(t, err)
	call := conversation.Message{Role: conversation.Assistant, Content: "so", ToolCalls: []conversation.ToolCall{{ID: "a", Name: "count", Arguments: `{"x":`}}}
	r := agent.Request{Tools: offered.Tools, Messages: []conversation.Message{{Role: conversation.User, Content: "p"}, call, {Role: conversation.Tool, ToolCallID: "a", Content: "1"}}}
	write := func(s spelling) string {
		w := writer{names: wire.NewNames(r), kept: []kept{{id: "a", thoughts: [][]byte{[]byte(`{"type":"reasoning"}`)}}}, s: s}
		body := w.body(c, r)
		require.True(t, json.Valid(body), string(body))
		return string(body)
	}
	require.Equal(t, `{"model":"m","instructions":"s","input":[{"role":"user","content":"p"},{"type":"reasoning"},{"role":"assistant","content":"so"},`+
		`{"type":"function_call","call_id":"a","name":"count","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":"1"}],`+
		`"tools":[{"type":"function","name":"count","strict":false,"parameters":{"type":"object","properties":{}}}],"max_output_tokens":9,`+
		`"reasoning":{"effort":"low"},"store":false,"include":["reasoning.encrypted_content"],"stream":true}`, write(spelling{}))
	plain := write(spelling{noThoughts: true, noStore: true})
	require.NotContains(t, plain, "include")
	require.NotContains(t, plain, "store")
	require.NotContains(t, plain, `{"type":"reasoning"}`)
}

func FuzzReply(f *testing.F) {
	for _, s := range []string{`{"output":[{"type":"message","content":[{"type":"output_text","text":"a"}]}],"usage":{"input_tokens":1}}`,
		`{"output":[{"type":"function_call","call_id":"t","name":"count","arguments":"{}"},{"type":"reasoning","encrypted_content":"x"}]}`,
		"data: {\"type\":\"response.completed\",\"response\":{\"output\":[]}}\n\n", "event: error\ndata: {}\n\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, k, failure := decode(string(b), 100)
		if failure != nil {
			require.True(t, failure.Text != "" || failure.Cause != nil)
			return
		}
		require.True(t, utf8.ValidString(r.Content) && !strings.Contains(r.Content, "\x00"))
		for _, c := range r.ToolCalls {
			require.NotEmpty(t, c.ID)
			require.True(t, utf8.ValidString(c.Name+c.Arguments) && !strings.Contains(c.Name+c.Arguments, "\x00"))
		}
		for _, thought := range k.thoughts {
			require.True(t, json.Valid(thought))
		}
	})
}
