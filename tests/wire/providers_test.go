package wire

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// events is a stream of named events, the name being the data's type.
func events(data ...string) fakemodel.Reply {
	var b strings.Builder
	for _, d := range data {
		var e struct{ Type string }
		_ = json.Unmarshal([]byte(d), &e)
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", e.Type, d)
	}
	return fakemodel.Reply{Raw: b.String(), RawType: "text/event-stream"}
}

// hosted are scenarios of the two other APIs, by provider. Each also gets those of everyProvider.
var hosted = map[string]map[string]scenario{
	"anthropic_messages": {
		"a stream": {replies: list(events(
			`{"type":"message_start","message":{"model":"m","content":[],"usage":{"input_tokens":3,"cache_read_input_tokens":4,"output_tokens":1}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`, `{"type":"ping"}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Total is "}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"41.50."}}`, `{"type":"content_block_stop","index":0}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}`, `{"type":"message_stop"}`)),
			answer: "Total is 41.50.", in: 7, out: 9},
		"a streamed call": {replies: list(events(
			`{"type":"message_start","message":{"content":[]}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s1g"}}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t1","name":"order_total","input":{}}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"order_"}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"id\":7}"}}`,
			`{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`, `{"type":"message_stop"}`), done), answer: "41.50", ran: seven},
		"a stream's error": {replies: list(events(`{"type":"message_start","message":{"content":[]}}`, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), done), answer: "41.50", retries: 1},
		"a stream's end":   {replies: list(events(`{"type":"message_start","message":{"content":[]}}`), done), answer: "41.50", retries: 1},
		"a call cut short": {replies: list(raw(`{"content":[{"type":"tool_use","id":"t","name":"order_total","input":{"order_id":7}}],"stop_reason":"max_tokens"}`), done), answer: "41.50"},
		"a refusal":        {replies: list(raw(`{"content":[],"stop_reason":"refusal"}`)), failure: "content filter"},
		"overflow":         {replies: list(status(400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens > 8 maximum"}}`)), failure: overf},
		"a full context":   {replies: list(raw(`{"content":[],"stop_reason":"model_context_window_exceeded"}`)), failure: overf},
		"input as a text":  {replies: list(raw(`{"content":[{"type":"tool_use","id":"t","name":"order_total","input":"{\"order_id\":7}"}],"stop_reason":"tool_use"}`), done), answer: "41.50", ran: seven},
		"an unknown block": {replies: list(raw(`{"content":[{"type":"server_tool_use","x":1},{"type":"text","text":"41.50"}],"stop_reason":"end_turn"}`)), answer: "41.50"},
		"counts with a cache": {replies: list(raw(`{"content":[{"type":"text","text":"41.50"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"cache_creation_input_tokens":2,"cache_read_input_tokens":3,"output_tokens":4}}`)),
			answer: "41.50", in: 6, out: 4},
	},
	"openai_responses": {
		"a stream": {replies: list(events(
			`{"type":"response.created","response":{"status":"in_progress","output":[]}}`,
			`{"type":"response.output_text.delta","delta":"Total"}`,
			`{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Total is 41.50."}]}],"usage":{"input_tokens":7,"output_tokens":9,"output_tokens_details":{"reasoning_tokens":2}}}}`)),
			answer: "Total is 41.50.", in: 7, out: 9},
		"a streamed call": {replies: list(events(
			`{"type":"response.output_item.done","item":{"type":"reasoning","id":"r","summary":[],"encrypted_content":"abc"}}`,
			`{"type":"response.output_item.done","item":{"type":"function_call","call_id":"c1","name":"order_total","arguments":"{\"order_id\":7}"}}`,
			`{"type":"response.completed","response":{"status":"completed","output":[]}}`), done), answer: "41.50", ran: seven},
		"a stream's error":    {replies: list(events(`{"type":"response.created","response":{}}`, `{"type":"error","code":"server_error","message":"try again"}`), done), answer: "41.50", retries: 1},
		"a failed response":   {replies: list(events(`{"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"slow down"}}}`), done), answer: "41.50", retries: 1},
		"a stream's end":      {replies: list(events(`{"type":"response.created","response":{}}`), done), answer: "41.50", retries: 1},
		"a call cut short":    {replies: list(raw(`{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"function_call","call_id":"c","name":"order_total","arguments":"{\"order_id\":7}"}]}`), done), answer: "41.50"},
		"a refusal":           {replies: list(raw(`{"status":"completed","output":[{"type":"message","content":[{"type":"refusal","refusal":"I cannot assist."}]}]}`)), failure: "cannot assist"},
		"a filter's stop":     {replies: list(raw(`{"status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[]}`)), failure: "content filter"},
		"overflow":            {replies: list(status(400, `{"error":{"message":"too long","code":"context_length_exceeded"}}`)), failure: overf},
		"no encrypted ones":   {replies: list(status(400, errors("Encrypted content is not supported with this model.")), done), answer: "41.50", requests: 2},
		"arguments an object": {replies: list(raw(`{"output":[{"type":"function_call","call_id":"c","name":"order_total","arguments":{"order_id":7}}]}`), done), answer: "41.50", ran: seven},
	},
}

// everyProvider is what holds whatever the API.
var everyProvider = map[string]scenario{
	"an answer":           {replies: list(fakemodel.Reply{Content: "Total is 41.50.", Input: 11, Output: 12}), answer: "Total is 41.50.", in: 11, out: 12},
	"a call":              {replies: list(fakemodel.Call("order_total", map[string]any{"order_id": 7}), done), answer: "41.50", ran: seven, requests: 2},
	"two calls":           {replies: list(fakemodel.Calls(fakemodel.Call("order_total", map[string]any{"order_id": 7}), fakemodel.Call("count_orders", nil)), done), answer: "41.50", ran: []string{seven[0], "count_orders {}"}},
	"the same id twice":   {replies: list(fakemodel.Reply{ToolCalls: []fakemodel.ToolCall{{ID: "a", Name: "count_orders"}, {ID: "a", Name: "count_orders"}}}, done), answer: "41.50", ran: []string{"count_orders {}", "count_orders {}"}},
	"an unknown tool":     {replies: list(fakemodel.Call("drop_all", nil), done), answer: "41.50"},
	"missing arguments":   {replies: list(fakemodel.Call("order_total", map[string]any{}), done), answer: "41.50"},
	"a very long id":      {replies: list(fakemodel.Reply{ToolCalls: []fakemodel.ToolCall{{ID: strings.Repeat("i.", 400), Name: "count_orders"}}}, done), answer: "41.50", ran: []string{"count_orders {}"}},
	"empty for ever":      {replies: list(fakemodel.Say(" ")), failure: "empty answer 3 times", requests: 3},
	"a 500":               {replies: list(status(500, "{}"), done), answer: "41.50", retries: 1},
	"a 529":               {replies: list(status(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), done), answer: "41.50", retries: 1},
	"a bad key":           {replies: list(status(401, errors("invalid key "+servertest.Secret))), failure: "did not accept the credentials", hidden: servertest.Secret, requests: 1},
	"no credit":           {replies: list(status(400, errors("Your credit balance is too low"))), failure: "no quota left", requests: 1},
	"an empty body":       {replies: list(raw(" "), done), answer: "41.50", retries: 1},
	"a page":              {replies: list(fakemodel.HTML("<html>Log in</html>")), failure: "not JSON", requests: 1},
	"another shape":       {replies: list(raw(`{"hello":"world"}`)), failure: "model server", requests: 4},
	"cut JSON":            {replies: list(raw(`{"content":[{"type":"text","te`), done), answer: "41.50", retries: 1},
	"closed at once":      {replies: list(fakemodel.Reply{Close: true}, done), answer: "41.50", retries: 1},
	"too large":           {replies: list(fakemodel.Reply{Content: "x", Size: 9 << 20}), failure: "larger than the limit", requests: 1},
	"typed":               {output: schema, replies: list(fakemodel.Say(`{"total":"41.50"}`)), answer: "41.50"},
	"a continued history": {before: list(fakemodel.Call("count_orders", nil), done), replies: list(done), answer: "41.50"},
	"in one piece":        {config: map[string]any{"stream": false}, replies: list(done), answer: "41.50"},
}

func TestHostedProviders(t *testing.T) {
	tools(t)
	for provider, own := range hosted {
		all := maps.Clone(everyProvider)
		maps.Copy(all, own)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			t.Run(provider+"/"+name, func(t *testing.T) {
				s := all[name]
				s.provider = provider
				s.test(t, "wire "+provider+" "+name)
			})
		}
	}
}

// TestHostedProviders_SendThoughtsBack: the next request of a tool round holds what only the provider understands.
func TestHostedProviders_SendThoughtsBack(t *testing.T) {
	tools(t)
	for provider, want := range map[string][]string{
		"anthropic_messages": {`{"type":"thinking","thinking":"hm","signature":"s1g"},{"type":"tool_use","id":"t1","name":"order_total","input":{"order_id":7}}`,
			`{"type":"tool_result","tool_use_id":"t1"`},
		"openai_responses": {`"encrypted_content":"abc"},{"type":"function_call","call_id":"c1"`, `{"type":"function_call_output","call_id":"c1"`},
	} {
		name := "thoughts of " + provider
		s := hosted[provider]["a streamed call"]
		s.provider = provider
		s.test(t, name)
		sent := server.Model.Requests(name)
		require.Len(t, sent, 2)
		for _, w := range want {
			require.Contains(t, string(sent[1].Body), w)
		}
		key := map[string]string{"anthropic_messages": sent[0].Header.Get("X-Api-Key"), "openai_responses": sent[0].Header.Get("Authorization")}[provider]
		require.Contains(t, key, servertest.Secret)
	}
}

// TestHostedProviders_GenerateText: a direct call may ask for JSON of a schema, and the probe costs as little as it can.
func TestHostedProviders_GenerateText(t *testing.T) {
	conn := caller(t, nil).Conn
	format := `{"response_format": {"type": "json_schema", "json_schema": {"schema": ` + schema + `}}, "max_tokens": 99}`
	for provider, c := range map[string]struct {
		reply fakemodel.Reply
		sent  string
	}{
		"anthropic_messages": {fakemodel.Call("answer", map[string]any{"total": "41.50"}), `"tool_choice":{"type":"tool","name":"answer"}`},
		"openai_responses":   {fakemodel.Say(`{"total":"41.50"}`), `"text":{"format":{"type":"json_schema","name":"answer","schema":{`},
	} {
		name := "direct " + provider
		server.Model.Script(name, c.reply)
		servertest.Exec(t, conn, `SELECT aidb.create_model($1, $2, $3::jsonb, credentials => $4::jsonb)`,
			name, provider, map[string]any{"model": name, "url": server.Model.URL()}, map[string]any{"api_key": servertest.Secret})
		require.Empty(t, server.Model.Requests(name), "the list of models is asked for first")
		require.JSONEq(t, `{"total":"41.50"}`, servertest.Value(t, conn, `SELECT aidb.generate_text($1, 'Which?', $2::json)`, name, format))
		body := string(server.Model.Requests(name)[0].Body)
		require.Contains(t, body, c.sent)
		require.Contains(t, body, `tokens":99`)
		require.Equal(t, "language", servertest.Value(t, conn, `SELECT aidb.validate_model($1)`, name))
	}
}
