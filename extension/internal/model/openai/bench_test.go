package openai

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	goopenai "github.com/sashabaranov/go-openai"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/wire"
)

// The adapter against the library used directly, without a network: what its care costs.

// canned answers every request with the same body.
type canned struct{ body string }

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	_ = r.Body.Close()
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(&reader{s: c.body}), ContentLength: int64(len(c.body)), Request: r}, nil
}

type reader struct{ s string }

func (r *reader) Read(p []byte) (int, error) {
	n := copy(p, r.s)
	r.s = r.s[n:]
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

const benchReply = `{"id":"chatcmpl-12345","object":"chat.completion","created":1700000000,"model":"mock-r2-l0","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_17","type":"function","function":{"name":"count","arguments":"{\"query\":\"SELECT count(*) FROM orders\"}"}}]},"logprobs":null,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":120,"completion_tokens":20,"total_tokens":140}}`

func benchHistory(n int) []msg {
	out := []msg{system("You are a data analyst. Use run_sql_query to answer questions about the database.")}
	for i := range n {
		out = append(out, user(fmt.Sprintf("Question %d: what was the revenue of region %d in month %d, and how does it compare?", i, i%7, i%12+1)),
			assistant(fmt.Sprintf("Revenue of region %d in that month was %d.00, which is %d percent above the month before.", i%7, 1000+i, i%9)))
	}
	return append(out, user("How many orders are there?"), calls(tc{ID: "c1", Name: "count", Arguments: `{"query":"SELECT count(*) FROM orders"}`}), result("c1", `[{"count":1000}]`))
}

func BenchmarkComplete(b *testing.B) {
	for _, n := range []int{0, 200} {
		history := benchHistory(n)
		b.Run(fmt.Sprintf("adapter/history=%d", n), func(b *testing.B) {
			m := open(b, wire.Options{}, "http://127.0.0.1:1", "", wire.Credentials{APIKey: "sk-0123456789abcdef"})
			m.line.Client = &http.Client{Transport: canned{benchReply}}
			r := agent.Request{Messages: history, Tools: testTools}
			b.ReportAllocs()
			for b.Loop() {
				if got, err := m.Complete(b.Context(), r); err != nil || len(got.ToolCalls) != 1 {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("library/history=%d", n), func(b *testing.B) {
			c := goopenai.DefaultConfig("sk-0123456789abcdef")
			c.BaseURL, c.HTTPClient = "http://127.0.0.1:1/v1", &http.Client{Transport: canned{benchReply}}
			client := goopenai.NewClientWithConfig(c)
			var messages []goopenai.ChatCompletionMessage
			for _, m := range history {
				x := goopenai.ChatCompletionMessage{Role: string(m.Role), Content: m.Content, ToolCallID: m.ToolCallID}
				for _, c := range m.ToolCalls {
					x.ToolCalls = append(x.ToolCalls, goopenai.ToolCall{ID: c.ID, Type: "function", Function: goopenai.FunctionCall{Name: c.Name, Arguments: c.Arguments}})
				}
				messages = append(messages, x)
			}
			var tools []goopenai.Tool
			for _, t := range testTools {
				tools = append(tools, goopenai.Tool{Type: "function", Function: &goopenai.FunctionDefinition{Name: t.Name, Description: t.Description, Parameters: json.RawMessage(t.Parameters)}})
			}
			b.ReportAllocs()
			for b.Loop() {
				if got, err := client.CreateChatCompletion(b.Context(), goopenai.ChatCompletionRequest{Model: "m", Messages: messages, Tools: tools}); err != nil || len(got.Choices) != 1 {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkNormalize(b *testing.B) {
	n := wire.NewNames(agent.Request{Tools: testTools, Messages: []conversation.Message{user("p")}})
	long := message(`{"content":"` + string(wire.AppendEscaped(nil, fmt.Sprintf("%0*d", 100000, 7))) + `"}`)
	for name, body := range map[string]string{"call": benchReply, "long": long} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, f := normalize([]byte(body), "application/json", n); f != nil {
					b.Fatal(f)
				}
			}
		})
	}
}
