package anthropic

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
		m, f := fold(wire.LinesOf(doc), most)
		if f != nil {
			return agent.Reply{}, kept{}, f
		}
		return m.reply(n, false)
	}
	return whole([]byte(body), "application/json", n, false)
}

func TestReply(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body    string
		want    string // content|finish|calls
		failure string
	}{
		"a text":            {`{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"stop_reason":"end_turn"}`, "ab|stop|", ""},
		"a bare text":       {`{"content":"a"}`, "a|stop|", ""},
		"a call":            {`{"content":[{"type":"tool_use","id":"t","name":"count","input":{}}],"stop_reason":"tool_use"}`, "|tool_calls|t count ", ""},
		"a call though end": {`{"content":[{"type":"tool_use","id":"t","name":"Count","input":{"a":1}}],"stop_reason":"end_turn"}`, `|tool_calls|t count {"a":1}`, ""},
		"no id":             {`{"content":[{"type":"tool_use","name":"count"}]}`, "|tool_calls|call00001 count ", ""},
		"cut":               {`{"content":[{"type":"text","text":"a"}],"stop_reason":"max_tokens"}`, "a|length|", ""},
		"a new word":        {`{"content":[{"type":"text","text":"a"}],"stop_reason":"moonlight"}`, "a|other|", ""},
		"nothing":           {`{"content":[],"stop_reason":"end_turn"}`, "|stop|", ""},
		"an error":          {`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, "", "Overloaded"},
		"no message":        {`{"a":1}`, "", "without content"},
		"cut JSON":          {`{"content":[`, "", "ends in the middle"},
		"a list":            {`[1]`, "", "not JSON"},
		"cut arguments":     {"data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"count\"}}\n\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"partial_json\":\"{\\\"a\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n", `|tool_calls|t count {"a`, ""},
		"no end":            {"data: {\"type\":\"ping\"}\n\n", "", "ends in the middle"},
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
	body := "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n" +
		strings.Repeat("data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"text\":\"0123456789\"}}\n\n", 100)
	r, _, f := decode(body, 40)
	require.Nil(t, f)
	require.Equal(t, agent.FinishLength, r.Finish)
	require.Len(t, r.Content, 50)
}

func TestRequest(t *testing.T) {
	t.Parallel()
	c, err := parseConfig(json.RawMessage(`{"model":"m","system_prompt":"s","stream":false,"extra_args":{"top_k":3,"stream":true}}`))
	require.NoError(t, err)
	call := conversation.Message{Role: conversation.Assistant, Content: "so ", ToolCalls: []conversation.ToolCall{{ID: "a.b", Name: "count", Arguments: `{"x":`}}}
	write := func(r agent.Request) string {
		w := writer{names: wire.NewNames(r), kept: []kept{{id: "a.b", blocks: [][]byte{[]byte(`{"type":"thinking"}`)}}}}
		body := w.body(c, r)
		require.True(t, json.Valid(body), string(body))
		return string(body)
	}
	user := func(s string) conversation.Message { return conversation.Message{Role: conversation.User, Content: s} }
	require.Equal(t, `{"model":"m","max_tokens":4096,"system":"s\n\nt","messages":[{"role":"user","content":[{"type":"text","text":"p"},{"type":"text","text":"q"}]},`+
		`{"role":"assistant","content":[{"type":"thinking"},{"type":"text","text":"so"},{"type":"tool_use","id":"call00001","name":"count","input":{}}]},`+
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"call00001","content":"1"},{"type":"text","text":"and?"}]}],`+
		`"tools":[{"name":"count","input_schema":{"type":"object","properties":{}}}],"top_k":3}`,
		write(agent.Request{Tools: offered.Tools, Messages: []conversation.Message{{Role: conversation.System, Content: "t"}, user("p"), user("q"), call,
			{Role: conversation.Tool, ToolCallID: "a.b", Content: "1"}, user("and?")}}))
	require.Contains(t, write(agent.Request{Messages: []conversation.Message{user("p"), call}}), `"tool_choice":{"type":"none"}`, "calls of the past need their tools")
	require.Contains(t, write(agent.Request{}), `"messages":[{"role":"user"`, "there is always something to answer")
}

func FuzzReply(f *testing.F) {
	for _, s := range []string{`{"content":[{"type":"text","text":"a"}],"usage":{"input_tokens":1}}`, `{"content":[{"type":"tool_use","id":"t","name":"count","input":{"a":[1]}}]}`,
		"data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"partial_json\":\"{\"}}\n\n", "event: error\ndata: {}\n\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, k, failure := decode(string(b), 100)
		if failure != nil {
			require.NotEmpty(t, failure.Text)
			return
		}
		require.True(t, utf8.ValidString(r.Content) && !strings.Contains(r.Content, "\x00"))
		for _, c := range r.ToolCalls {
			require.NotEmpty(t, c.ID)
			require.True(t, utf8.ValidString(c.Name+c.Arguments) && !strings.Contains(c.Name+c.Arguments, "\x00"))
		}
		for _, block := range k.blocks {
			require.True(t, json.Valid(block))
		}
	})
}
