package wire

import (
	"compress/gzip"
	"context"
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

// scenario is what a server sends, reply after reply, and what a user of aidb gets.
type scenario struct {
	replies  []fakemodel.Reply
	output   string            // a JSON Schema: a typed answer is wanted
	config   map[string]any    // more of the model's config
	settings map[string]string // of the server
	before   []fakemodel.Reply // a first call of the same conversation
	provider string            // openai_completions when empty

	answer   string   // the answer contains it
	failure  string   // the error contains it, whatever its case
	ran      []string // the tools that ran, each with its arguments
	requests int      // how many there were (0: not looked at)
	retries  int      // how many the log tells of
	in, out  int64    // tokens that are stored; 0: unknown, -1: not looked at
	hidden   string   // shown and stored nowhere
}

// raw is a body as it is, with status 200.
func raw(body string) fakemodel.Reply { return fakemodel.Reply{Raw: body, RawType: "application/json"} }

// says is a completion whose message is this JSON; more is put beside choices.
func says(message, finish string, more ...string) fakemodel.Reply {
	return raw(`{"id":"x","object":"chat.completion","choices":[{"index":0,"message":` + message + `,"finish_reason":` + finish + `}]` +
		strings.Join(append([]string{""}, more...), ",") + `}`)
}

// asks is a completion with these tool calls.
func asks(calls string) fakemodel.Reply {
	return says(`{"role":"assistant","content":null,"tool_calls":`+calls+`}`, `"tool_calls"`)
}

// total is a call of the tool order_total with these arguments, which are JSON.
func total(arguments string) string {
	return `{"id":"c1","type":"function","function":{"name":"order_total","arguments":` + arguments + `}}`
}

// status is an error body.
func status(code int, body string, header ...string) fakemodel.Reply {
	r := fakemodel.Reply{Status: code, Raw: body, RawType: "application/json", Header: map[string]string{}}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header[header[i]] = header[i+1]
	}
	return r
}

func stream(lines ...string) fakemodel.Reply {
	return fakemodel.Reply{Raw: strings.Join(lines, "\n\n") + "\n\n", RawType: "text/event-stream"}
}

func chunk(delta, finish string) string {
	return `data: {"choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}`
}

func zipped(n int) fakemodel.Reply {
	var b strings.Builder
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(`{"choices":[{"message":{"content":"`))
	for range n >> 10 {
		_, _ = z.Write([]byte(strings.Repeat("x", 1<<10)))
	}
	_ = z.Close()
	return fakemodel.Reply{Raw: b.String(), RawType: "application/json", Header: map[string]string{"Content-Encoding": "gzip"}}
}

var (
	done   = fakemodel.Say("Total is 41.50.")
	seven  = []string{`order_total {"order_id": 7}`}
	schema = `{"type":"object","properties":{"total":{"type":"string"}},"required":["total"],"additionalProperties":false}`
	errors = func(text string) string { return `{"error":{"message":"` + text + `","type":"x","code":null}}` }
	overf  = "does not fit into the model's context"
)

// scenarios, by kind.
var scenarios = map[string]map[string]scenario{
	"content": {
		"parts":                 {replies: list(says(`{"role":"assistant","content":[{"type":"text","text":"Total is "},{"type":"image","u":1},"41.50."]}`, `"stop"`)), answer: "Total is 41.50."},
		"an object":             {replies: list(says(`{"content":{"text":"Total is 41.50."}}`, `"stop"`)), answer: "Total is 41.50."},
		"null, then a text":     {replies: list(says(`{"content":null}`, `"stop"`), done), answer: "41.50"},
		"empty for ever":        {replies: list(says(`{"content":""}`, `"stop"`)), failure: "empty answer 3 times", requests: 3},
		"white space for ever":  {replies: list(says(`{"content":" \n\u0000 "}`, `"stop"`)), failure: "empty answer 3 times", requests: 3},
		"a thought before it":   {replies: list(says(`{"content":"<think>hm</think>\nTotal is 41.50."}`, `"stop"`)), answer: "Total is 41.50."},
		"on channels":           {replies: list(says(`{"content":"<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Total is 41.50.<|return|>"}`, `"stop"`)), answer: "Total is 41.50."},
		"NUL and surrogates":    {replies: list(says(`{"content":"Total\u0000 is \ud800 41.50.\ud83d\ude00"}`, `"stop"`)), answer: "41.50.😀"},
		"invalid UTF-8":         {replies: list(says("{\"content\":\"Total \xff is 41.50.\"}", `"stop"`)), answer: "41.50"},
		"reasoning beside it":   {replies: list(says(`{"content":"Total is 41.50.","reasoning_content":"hm","reasoning_details":[{"a":1}]}`, `"stop"`)), answer: "Total is 41.50."},
		"a filter's stop":       {replies: list(says(`{"content":"Total"}`, `"content_filter"`)), failure: "content filter"},
		"a refusal":             {replies: list(says(`{"content":null,"refusal":"I cannot assist."}`, `"stop"`)), failure: "cannot assist"},
		"a call leaked as text": {replies: list(says(`{"content":"<tool_call>{\"name\":\"order_total\",\"arguments\":{\"order_id\":7}}</tool_call>"}`, `"stop"`), done), answer: "41.50", ran: seven},
		"a quoted call":         {replies: list(says(`{"content":"It said <tool_call>{\"name\":\"order_total\",\"arguments\":{\"order_id\":7}}</tool_call>, 41.50"}`, `"stop"`)), answer: "41.50"},
	},
	"arguments": {
		"text":              {replies: list(asks(`[`+total(`"{\"order_id\":7}"`)+`]`), done), answer: "41.50", ran: seven},
		"an object":         {replies: list(asks(`[`+total(`{"order_id":7}`)+`]`), done), answer: "41.50", ran: seven},
		"twice encoded":     {replies: list(asks(`[`+total(`"\"{\\\"order_id\\\":7}\""`)+`]`), done), answer: "41.50", ran: seven},
		"in a fence":        {replies: list(asks(`[`+total("\"```json\\n{\\\"order_id\\\":7}\\n```\"")+`]`), done), answer: "41.50", ran: seven},
		"Python":            {replies: list(asks(`[`+total(`"{'order_id': 7}"`)+`]`), done), answer: "41.50"},
		"cut":               {replies: list(asks(`[`+total(`"{\"order_id\":"`)+`]`), done), answer: "41.50"},
		"cut at the limit":  {replies: list(says(`{"tool_calls":[`+total(`"{\"order_id\":7}"`)+`]}`, `"length"`), done), answer: "41.50"},
		"a list":            {replies: list(asks(`[`+total(`"[7]"`)+`]`), done), answer: "41.50"},
		"a number":          {replies: list(asks(`[`+total(`7`)+`]`), done), answer: "41.50"},
		"none where needed": {replies: list(asks(`[`+total(`""`)+`]`), done), answer: "41.50"},
		"of the wrong type": {replies: list(asks(`[`+total(`"{\"order_id\":\"seven\"}"`)+`]`), done), answer: "41.50"},
		"one too many":      {replies: list(asks(`[`+total(`"{\"order_id\":7,\"x\":1}"`)+`]`), done), answer: "41.50"},
		"given twice":       {replies: list(asks(`[`+total(`"{\"order_id\":8,\"order_id\":7}"`)+`]`), done), answer: "41.50", ran: nil},
		"above 2^53":        {replies: list(asks(`[`+total(`"{\"order_id\":9007199254740993}"`)+`]`), done), answer: "41.50", ran: []string{`order_total {"order_id": 9007199254740993}`}},
		"very deep":         {replies: list(asks(`[`+total(`"{\"order_id\":`+strings.Repeat("[", 5000)+strings.Repeat("]", 5000)+`}"`)+`]`), done), answer: "41.50"},
		"NUL inside":        {replies: list(asks(`[{"id":"c1","function":{"name":"save_note","arguments":"{\"text\":\"a\\u0000b\"}"}}]`), done), answer: "41.50", ran: []string{`save_note {"text": "ab"}`}},
		"empty where none":  {replies: list(asks(`[{"id":"c1","function":{"name":"count_orders","arguments":""}}]`), done), answer: "41.50", ran: []string{`count_orders {}`}},
		"null where none":   {replies: list(asks(`[{"id":"c1","function":{"name":"count_orders","arguments":null}}]`), done), answer: "41.50", ran: []string{`count_orders {}`}},
	},
	"calls": {
		"an empty list":      {replies: list(says(`{"content":"Total is 41.50.","tool_calls":[]}`, `"stop"`)), answer: "41.50"},
		"none although said": {replies: list(says(`{"content":"Total is 41.50."}`, `"tool_calls"`)), answer: "41.50"},
		"though stop":        {replies: list(says(`{"content":"","tool_calls":[`+total(`"{\"order_id\":7}"`)+`]}`, `"stop"`), done), answer: "41.50", ran: seven},
		"in function_call":   {replies: list(says(`{"content":null,"function_call":{"name":"order_total","arguments":"{\"order_id\":7}"}}`, `"function_call"`), done), answer: "41.50", ran: seven},
		"the same id twice":  {replies: list(asks(`[`+total(`"{\"order_id\":7}"`)+`,`+total(`"{\"order_id\":8}"`)+`]`), done), answer: "41.50", ran: []string{`order_total {"order_id": 7}`, `order_total {"order_id": 8}`}},
		"no id":              {replies: list(asks(`[{"function":{"name":"order_total","arguments":"{\"order_id\":7}"}}]`), done), answer: "41.50", ran: seven},
		"a number as id":     {replies: list(asks(`[{"id":5,"function":{"name":"order_total","arguments":"{\"order_id\":7}"}}]`), done), answer: "41.50", ran: seven},
		"a very long id":     {replies: list(asks(`[{"id":"`+strings.Repeat("i", 9000)+`","function":{"name":"order_total","arguments":"{\"order_id\":7}"}}]`), done), answer: "41.50", ran: seven},
		"another case":       {replies: list(asks(`[{"id":"a","function":{"name":"Order_Total","arguments":"{\"order_id\":7}"}}]`), done), answer: "41.50", ran: seven},
		"a prefix":           {replies: list(asks(`[{"id":"a","function":{"name":"functions.order_total","arguments":"{\"order_id\":7}"}}]`), done), answer: "41.50", ran: seven},
		"an unknown tool":    {replies: list(asks(`[{"id":"a","function":{"name":"drop_all","arguments":"{}"}}]`), done), answer: "41.50"},
		"no name":            {replies: list(asks(`[{"id":"a","function":{"name":"","arguments":"{}"}}]`), done), answer: "41.50"},
		"the same for ever":  {replies: list(asks(`[` + total(`"{\"order_id\":7}"`) + `]`)), failure: "", answer: "", ran: []string{seven[0], seven[0], seven[0]}, requests: 5},
		"thousands":          {replies: list(asks(`[` + strings.Repeat(total(`"{}"`)+",", 4000) + total(`"{}"`) + `]`)), failure: "more than 256 tool calls", requests: 1},
	},
	"usage": {
		"null":       {replies: list(says(`{"content":"41.50"}`, `"stop"`, `"usage":null`)), answer: "41.50"},
		"nothing":    {replies: list(says(`{"content":"41.50"}`, `"stop"`)), answer: "41.50"},
		"floats":     {replies: list(says(`{"content":"41.50"}`, `"stop"`, `"usage":{"prompt_tokens":12.0,"completion_tokens":"3"}`)), answer: "41.50", in: 12, out: 3},
		"in total":   {replies: list(says(`{"content":"41.50"}`, `"stop"`, `"usage":{"prompt_tokens":21,"completion_tokens":0,"total_tokens":81}`)), answer: "41.50", in: 21, out: 60},
		"negative":   {replies: list(says(`{"content":"41.50"}`, `"stop"`, `"usage":{"prompt_tokens":-5,"completion_tokens":-1}`)), answer: "41.50"},
		"impossible": {replies: list(says(`{"content":"41.50"}`, `"stop"`, `"usage":{"prompt_tokens":1e300,"completion_tokens":[1]}`)), answer: "41.50"},
		"other names": {replies: list(says(`{"content":"41.50"}`, `"stop"`, `"usage":{"input_tokens":4,"output_tokens":5}`)), answer: "41.50",
			in: 4, out: 5},
	},
	"overflow": {
		"a code":       {replies: list(status(400, `{"error":{"message":"too long","code":"context_length_exceeded"}}`)), failure: overf},
		"words":        {replies: list(status(400, errors("This model's maximum context length is 8192 tokens. However, you requested 9000 tokens."))), failure: overf},
		"a list":       {replies: list(status(400, `[{"error":{"code":400,"message":"The input token count (9) exceeds the maximum number of tokens allowed (5).","status":"INVALID_ARGUMENT"}}]`)), failure: overf},
		"a plain text": {replies: list(status(400, "the request exceeds the available context size")), failure: overf},
		"as a 500":     {replies: list(status(500, errors("prompt is too long: 200001 tokens > 200000 maximum"))), failure: overf, requests: 1},
		"no overflow":  {replies: list(status(429, errors("Too many tokens, please wait before trying again.")), done), answer: "41.50", retries: 1, requests: 2},
	},
	"errors": {
		"a secret echoed":      {replies: list(status(401, errors("Incorrect API key provided: "+servertest.Secret))), failure: "did not accept the credentials", requests: 1, hidden: servertest.Secret},
		"a plain 404":          {replies: list(status(404, "404 page not found")), failure: "404", requests: 1},
		"a page":               {replies: list(fakemodel.HTML("<html><title>Log in</title></html>")), failure: "not JSON", requests: 1},
		"no credit":            {replies: list(status(429, `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`)), failure: "no quota left", requests: 1},
		"too many, for ever":   {replies: list(status(429, errors("slow down"))), failure: "limits the rate", requests: 4},
		"Retry-After":          {replies: list(status(429, errors("slow down"), "Retry-After", "0.05"), done), answer: "41.50", retries: 1},
		"Retry-After too long": {replies: list(status(429, errors("slow down"), "Retry-After", "86400")), failure: "limits the rate", requests: 1},
		"a 500":                {replies: list(status(500, "{}"), done), answer: "41.50", retries: 1},
		"a 529":                {replies: list(status(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), done), answer: "41.50", retries: 1},
		"a 408":                {replies: list(status(408, errors("timed out")), done), answer: "41.50", retries: 1},
		"inside a 200":         {replies: list(raw(`{"error":{"message":"Upstream error","code":502}}`), done), answer: "41.50", retries: 1},
		"no choices":           {replies: list(raw(`{"choices":[]}`)), failure: "without choices", requests: 4},
		"choices null":         {replies: list(raw(`{"choices":null}`)), failure: "without choices", requests: 4},
		"a refused parameter":  {replies: list(status(422, `{"object":"error","message":{"detail":[{"loc":["body","top_k"],"msg":"Extra inputs are not permitted"}]}}`)), failure: "top_k", requests: 1},
		"its own as a 500":     {replies: list(status(500, `{"error":{"message":"Unsupported value: 'temperature'","type":"invalid_request_error","param":"temperature"}}`)), failure: "temperature", requests: 1, config: map[string]any{"temperature": 0.5}},
		"a huge one":           {replies: list(status(400, errors(strings.Repeat("no ", 1<<20)))), failure: "HTTP 400", requests: 1},
		"a blocked prompt":     {replies: list(raw(`{"choices":[],"prompt_filter_results":[{"content_filter_results":{"hate":{"filtered":true}}}]}`)), failure: "filter", requests: 1},
		"a redirect":           {replies: list(status(302, "", "Location", "http://192.0.2.1/v1/chat/completions")), failure: ""},
	},
	"transport": {
		"closed at once":       {replies: list(fakemodel.Reply{Close: true}, done), answer: "41.50", retries: 1},
		"closed in the middle": {replies: list(fakemodel.Reply{Content: strings.Repeat("x", 4000), CloseAfter: 900}, done), answer: "41.50", retries: 1},
		"an empty body":        {replies: list(raw(" "), done), answer: "41.50", retries: 1},
		"cut JSON":             {replies: list(raw(`{"choices":[{"message":{"content":"Tot`), done), answer: "41.50", retries: 1},
		"a mark before it":     {replies: list(raw("\xef\xbb\xbf\n\n" + `{"choices":[{"message":{"content":"41.50"}}]}`)), answer: "41.50"},
		"bytes after it":       {replies: list(raw(`{"choices":[{"message":{"content":"41.50"}}]}` + "\n\x00garbage")), answer: "41.50"},
		"too large":            {replies: list(fakemodel.Reply{Content: "x", Size: 9 << 20}), failure: "larger than the limit", requests: 1},
		"too large, packed":    {replies: list(zipped(9 << 20)), failure: "larger than the limit", requests: 1},
		"never an answer":      {replies: list(fakemodel.Reply{Hang: true}), failure: "timeout", requests: 2, settings: map[string]string{"aidb.model_timeout": "100ms", "aidb.model_retries": "1"}},
		"a list around it":     {replies: list(raw(`[{"choices":[{"message":{"content":"41.50"}}]}]`)), answer: "41.50"},
		"another API's shape":  {replies: list(raw(`{"message":{"role":"assistant","content":"41.50"},"done_reason":"stop"}`)), answer: "41.50"},
	},
	"streams": {
		"unasked":            {replies: list(stream(chunk(`{"role":"assistant","content":"Total is "}`, "null"), chunk(`{"content":"41.50."}`, `"stop"`), "data: [DONE]")), answer: "Total is 41.50."},
		"calls":              {replies: list(stream(chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"order_total","arguments":"{\"ord"}}]}`, "null"), chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"er_id\":7}"}}]}`, "null"), chunk(`{}`, `"tool_calls"`), "data: [DONE]"), done), answer: "41.50", ran: seven},
		"one index for all":  {replies: list(stream(chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"order_total","arguments":"{\"order_id\":7}"}}]}`, "null"), chunk(`{"tool_calls":[{"index":0,"id":"b","function":{"name":"count_orders","arguments":"{}"}}]}`, `"tool_calls"`)), done), answer: "41.50", ran: []string{seven[0], `count_orders {}`}},
		"no choices in some": {replies: list(stream(`data: {"choices":[]}`, ": alive", chunk(`{"content":"41.50"}`, `"stop"`), `data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":6}}`, "data: [DONE]")), answer: "41.50", in: 5, out: 6},
		"a mark before it":   {replies: list(stream("\xef\xbb\xbf"+chunk(`{"content":"Total is "}`, "null"), chunk(`{"content":"41.50."}`, `"stop"`), "data: [DONE]")), answer: "Total is 41.50."},
		"an object a line":   {replies: list(fakemodel.Reply{Raw: `{"choices":[{"index":0,"delta":{"content":"Total is "}}]}` + "\n" + `{"choices":[{"index":0,"delta":{"content":"41.50."},"finish_reason":"stop"}]}` + "\n"}), answer: "Total is 41.50."},
		"cut, in objects":    {replies: list(fakemodel.Reply{Raw: `{"choices":[{"index":0,"delta":{"content":"Total is "}}]}` + "\n" + `{"choices":[{"index":0,"delta":{"content":"41"}}]}` + "\n"}, done), answer: "Total is 41.50.", retries: 1},
		"an error in it":     {replies: list(stream(chunk(`{"content":"Tot"}`, "null"), `data: {"error":{"message":"overloaded","code":503}}`), done), answer: "41.50", retries: 1},
		"without an end":     {replies: list(stream(chunk(`{"content":"Tot"}`, "null")), done), answer: "41.50", retries: 1},
		"a name in pieces":   {replies: list(stream(chunk(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"order"}}]}`, "null"), chunk(`{"tool_calls":[{"index":0,"function":{"name":"_total","arguments":""}}]}`, "null"), chunk(`{"tool_calls":[{"index":0,"function":{"name":"order_total","arguments":"{\"order_id\":7}"}}]}`, `"tool_calls"`)), done), answer: "41.50", ran: seven},
		"all again at last":  {replies: list(stream(chunk(`{"content":"Total is "}`, "null"), chunk(`{"content":"41.50."}`, "null"), `data: {"choices":[{"index":0,"delta":{},"message":{"role":"assistant","content":"Total is 41.50."},"finish_reason":"stop"}]}`)), answer: "Total is 41.50."},
		"half a surrogate":   {replies: list(stream(chunk(`{"content":"41.50 \ud83d"}`, "null"), chunk(`{"content":"\ude00"}`, `"stop"`))), answer: "41.50 😀"},
	},
	"typed": {
		"among words":   {output: schema, replies: list(fakemodel.Say(`It is {"total":"41.50"}, of {course}.`)), answer: `{"total":"41.50"}`, requests: 1},
		"as wanted":     {output: schema, replies: list(fakemodel.Say(`{"total":"41.50"}`)), answer: "41.50", requests: 1},
		"fenced":        {output: schema, replies: list(fakemodel.Say("<think>x</think>\n```json\n{\"total\":\"41.50\"}\n```")), answer: "41.50", requests: 1},
		"repaired":      {output: schema, replies: list(fakemodel.Say(`{"total":41.5}`), fakemodel.Say(`{"total":"41.50"}`)), answer: "41.50", requests: 2},
		"wrong forever": {output: schema, replies: list(fakemodel.Say(`{"sum":1}`)), failure: "total", requests: 3},
		"a refusal":     {output: schema, replies: list(says(`{"content":null,"refusal":"I cannot assist."}`, `"stop"`)), failure: "refused"},
	},
	"history": {
		"after a failure": {before: list(status(400, errors("no"))), replies: list(done), answer: "41.50"},
		"after a bad call": {before: list(asks(`[`+total(`"{\"order_id\":"`)+`,{"id":"x\u0000\ud800","function":{"name":"né \ud800","arguments":"\ud800"}}]`), done),
			replies: list(done), answer: "41.50"},
	},
}

func list(replies ...fakemodel.Reply) []fakemodel.Reply { return replies }

// tools registers those of the scenarios for a test.
func tools(t *testing.T) {
	conn := caller(t, nil).Conn
	sqlTool(t, conn, "order_total", "The total of an order.", json.RawMessage(`{"properties":{"order_id":{"type":"integer"}},"required":["order_id"]}`), "SELECT '41.50' AS total WHERE true<used>")
	sqlTool(t, conn, "count_orders", "How many orders there are.", json.RawMessage(`{}`), "SELECT 120 AS count WHERE true<used>")
	sqlTool(t, conn, "save_note", "Keeps a text.", json.RawMessage(`{"properties":{"text":{"type":"string"}},"required":["text"]}`), "SELECT 'saved' AS note WHERE true<used>")
	t.Cleanup(func() {
		for _, name := range []string{"order_total", "count_orders", "save_note"} {
			_, err := conn.Exec(context.Background(), "SELECT aidb.delete_tool($1)", name)
			require.NoError(t, err)
		}
	})
}

func TestScenarios(t *testing.T) {
	tools(t)
	for _, kind := range slices.Sorted(maps.Keys(scenarios)) {
		for _, name := range slices.Sorted(maps.Keys(scenarios[kind])) {
			t.Run(kind+"/"+name, func(t *testing.T) { scenarios[kind][name].test(t, "wire "+kind+" "+name) })
		}
	}
}

func (s scenario) test(t *testing.T, name string) {
	settings := map[string]string{"aidb.model_retry_delay": "1ms"}
	maps.Copy(settings, s.settings)
	user := caller(t, settings)
	conn := user.Conn
	server.Model.Script(name, append(slices.Clone(s.before), s.replies...)...)
	config := map[string]any{"model": name, "url": server.Model.URL()}
	maps.Copy(config, s.config)
	if s.provider == "" {
		s.provider = "openai_completions"
	}
	servertest.Exec(t, conn, `SELECT aidb.create_model($1, $2, $3::jsonb, credentials => $4::jsonb, validate => false)`,
		name, s.provider, config, map[string]any{"api_key": servertest.Secret})
	var output *string
	if s.output != "" {
		output = &s.output
	}
	servertest.Exec(t, conn, `SELECT * FROM aidb.create_agent($1, 'Answer briefly.', $1, tools => '{order_total,count_orders,save_note}', output_type => $2::jsonb, timeout => 60)`, name, output)
	var args []string
	if s.before != nil {
		id := servertest.Value(t, conn, "SELECT gen_random_uuid()")
		args = []string{"conversation_id => '" + id + "'"}
		_, err := servertest.Ask(t.Context(), conn, name, "Begin.", args...)
		require.NoError(t, err)
	}
	before := len(server.Model.Requests(name))
	r := user.ask(t, name, "What does order 7 total?", args...)
	s.check(t, r, len(server.Model.Requests(name))-before)
	for _, q := range server.Model.Requests(name) {
		acceptable(t, q)
	}
}

func (s scenario) check(t *testing.T, r *ran, requests int) {
	if s.failure != "" || r.failed() {
		require.True(t, r.failed(), "an answer: %q", r.Message)
		require.Contains(t, strings.ToLower(r.Error), strings.ToLower(s.failure))
		require.Empty(t, s.answer, r.Error)
		require.LessOrEqual(t, len(r.Error), 4000)
	} else {
		require.Contains(t, r.Message, s.answer)
	}
	var ran []string
	for _, c := range r.tools() {
		ran = append(ran, c.Name+" "+c.Raw)
	}
	require.Equal(t, s.ran, ran)
	if s.requests > 0 {
		require.Equal(t, s.requests, requests)
	}
	require.Equal(t, s.retries, r.retries)
	if s.in > 0 {
		require.Equal(t, []int64{s.in, s.out}, []int64{*r.input, *r.output})
	}
	if s.hidden != "" {
		require.NotContains(t, r.all, s.hidden)
	}
}

// acceptable is what every strict server demands of a request.
func acceptable(t testing.TB, q fakemodel.Request) {
	t.Helper()
	require.True(t, json.Valid(q.Body))
	require.NotContains(t, string(q.Body), `\u0000`)
	require.NotRegexp(t, `\\ud[89a-f]`, string(q.Body), "an unpaired surrogate")
	ids := map[string]bool{}
	for i := 0; i < len(q.Messages); i++ {
		m := q.Messages[i]
		require.False(t, i > 0 && m.Role == "system", "a system message that is not the first")
		require.NotEqual(t, "tool", m.Role, "a result without a call")
		for j, c := range m.ToolCalls {
			require.NotEmpty(t, c.ID)
			require.False(t, ids[c.ID], "the id %q is there twice", c.ID)
			ids[c.ID] = true
			require.Regexp(t, `^[A-Za-z0-9_-]{1,64}$`, c.Function.Name)
			require.True(t, strings.HasPrefix(c.Function.Arguments, "{") && json.Valid([]byte(c.Function.Arguments)), c.Function.Arguments)
			require.Less(t, i+1+j, len(q.Messages), "a call without a result")
			result := q.Messages[i+1+j]
			require.Equal(t, "tool", result.Role, fmt.Sprintf("a result must follow call %d", j))
			require.Equal(t, c.ID, result.ToolCallID)
		}
		i += len(m.ToolCalls)
	}
}
