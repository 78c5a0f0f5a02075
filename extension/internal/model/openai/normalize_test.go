package openai

import (
	"encoding/json"
	"strings"
	"testing"

	goopenai "github.com/sashabaranov/go-openai"
	"github.com/stretchr/testify/require"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/wire"
)

var testTools = []agent.ToolSpec{
	{Name: "get_total", Description: "A total.", Parameters: json.RawMessage(`{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}`)},
	{Name: "count", Parameters: json.RawMessage(`{"type":"object","properties":{}}`)},
}

// decoded is a reply as it comes out on the other side of the library.
type decoded struct {
	content, refusal, finish, model string
	calls                           []conversation.ToolCall
	usage                           conversation.Usage
	keep                            kept
}

func decode(t testing.TB, body string) (decoded, *wire.Failure) {
	t.Helper()
	n, f := normalize([]byte(body), "application/json", wire.NewNames(agent.Request{Tools: testTools}))
	if f != nil {
		return decoded{}, f
	}
	require.True(t, json.Valid(n.body), "normalised to what is not JSON: %q", n.body)
	var r goopenai.ChatCompletionResponse
	require.NoError(t, json.Unmarshal(n.body, &r))
	require.Len(t, r.Choices, 1)
	m := r.Choices[0].Message
	d := decoded{content: m.Content, refusal: m.Refusal, finish: string(r.Choices[0].FinishReason), model: r.Model, usage: n.usage, keep: n.keep}
	for _, c := range m.ToolCalls {
		d.calls = append(d.calls, conversation.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
	}
	return d, nil
}

// message wraps an assistant message into a completion.
func message(m string) string {
	return `{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":` + m + `,"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}`
}

func withCall(call string) string {
	return message(`{"role":"assistant","content":null,"tool_calls":[` + call + `]}`)
}

func TestNormalize_Content(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, want string }{
		"plain":                         {message(`{"role":"assistant","content":"hi"}`), "hi"},
		"escapes":                       {message(`{"content":"a\n\"b\"\\\/\t\u00e9\ud83d\ude00"}`), "a\n\"b\"\\/\té😀"},
		"null":                          {message(`{"content":null}`), ""},
		"absent":                        {message(`{"role":"assistant"}`), ""},
		"no message":                    {`{"choices":[{"index":0}]}`, ""},
		"message null":                  {`{"choices":[{"message":null}]}`, ""},
		"message is the text":           {`{"choices":[{"message":"hi"}]}`, "hi"},
		"text of the old API":           {`{"choices":[{"text":"hi"}]}`, "hi"},
		"delta instead of message":      {`{"choices":[{"delta":{"content":"hi"}}]}`, "hi"},
		"one choice without list":       {`{"choices":{"message":{"content":"hi"}}}`, "hi"},
		"another API's shape":           {`{"model":"m","message":{"role":"assistant","content":"hi"},"done_reason":"stop","prompt_eval_count":3}`, "hi"},
		"parts":                         {message(`{"content":[{"type":"text","text":"a"},{"type":"reference","ids":[1]},{"type":"thinking","thinking":[{"type":"text","text":"no"}]},{"type":"output_text","text":"b"},"c",null,7]}`), "abc"},
		"no parts":                      {message(`{"content":[]}`), ""},
		"an object with a text":         {message(`{"content":{"type":"text","text":"a\u0000b"}}`), "ab"},
		"an object":                     {message(`{"content":{"total":4}}`), `{"total":4}`},
		"a number":                      {message(`{"content":42}`), "42"},
		"NUL escape":                    {message(`{"content":"a\u0000b"}`), "ab"},
		"raw NUL":                       {message("{\"content\":\"a\x00b\"}"), "ab"},
		"raw line break":                {message("{\"content\":\"a\nb\"}"), "a\nb"},
		"unpaired high surrogate":       {message(`{"content":"a\ud83db"}`), "a\uFFFDb"},
		"unpaired low surrogate":        {message(`{"content":"\ude00"}`), "\uFFFD"},
		"surrogates in the wrong order": {message(`{"content":"\ude00\ud83d"}`), "\uFFFD\uFFFD"},
		"invalid UTF-8":                 {message("{\"content\":\"a\xff\xfeb\xed\xa0\x80\"}"), "a\uFFFDb\uFFFD"},
		"an invented escape":            {message(`{"content":"\d+ \x41 \u12"}`), `\d+ \x41 \u12`},
		"BOM":                           {"\xef\xbb\xbf" + message(`{"content":"hi"}`), "hi"},
		"blank lines":                   {"\n\n \r\n\n" + message(`{"content":"hi"}`), "hi"},
		"signs of life":                 {": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n" + message(`{"content":"hi"}`), "hi"},
		"trailing bytes":                {message(`{"content":"hi"}`) + "\n<!-- proxy -->", "hi"},
		"two documents":                 {message(`{"content":"hi"}`) + message(`{"content":"ho"}`), "hi"},
		"trailing comma":                {`{"choices":[{"message":{"content":"hi",},},],}`, "hi"},
		"wrapped into an array":         {"[" + message(`{"content":"hi"}`) + "]", "hi"},
		"unknown members":               {message(`{"content":"hi","reasoning":"x","reasoning_details":[{"a":1}],"refusal":null,"audio":null,"annotations":[],"x":{"y":[{}]}}`), "hi"},
		"nonsense in unknown members":   {`{"x":{"a":[}],"choices":[{"message":{"content":"hi"}}]}`, ""},
		"null choice first":             {`{"choices":[null,{"message":{"content":"hi"}}]}`, "hi"},
		"error is null":                 {`{"error":null,"choices":[{"message":{"content":"hi"}}]}`, "hi"},
		"error is empty":                {`{"error":{},"choices":[{"message":{"content":"hi"}}]}`, "hi"},
		"thought":                       {message(`{"content":"<think>hm {\"a\":1}</think>\n\nhi"}`), "hi"},
		"thought with escaped tags":     {message(`{"content":"\u003cthink\u003ehm\u003c/think\u003ehi"}`), "hi"},
		"thought opened by the prompt":  {message(`{"content":"hm hm\n</think>\n\nhi"}`), "hi"},
		"thought without end":           {message(`{"content":"<think>hm"}`), "<think>hm"},
		"the final channel":             {message(`{"content":"<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>hi<|return|>"}`), "hi"},
		"only another channel":          {message(`{"content":"<|channel|>analysis<|message|>hm"}`), "<|channel|>analysis<|message|>hm"},
		"text about channels":           {message(`{"content":"It ends with <|channel|>final<|message|>x"}`), "It ends with <|channel|>final<|message|>x"},
		"an object on each line":        {`{"choices":[{"delta":{"content":"h"}}]}` + "\n" + `{"choices":[{"delta":{"content":"i"},"finish_reason":"stop"}]}` + "\n", "hi"},
		"text about thoughts":           {message(`{"content":"the <think> tag ends with </think>"}`), "the <think> tag ends with </think>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, f := decode(t, c.body)
			if name == "nonsense in unknown members" {
				return // an error or an answer, both are fine
			}
			require.Nil(t, f)
			require.Equal(t, c.want, got.content)
			require.Empty(t, got.calls)
		})
	}
}

func TestNormalize_Calls(t *testing.T) {
	t.Parallel()
	one := func(id, name, args string) []conversation.ToolCall {
		return []conversation.ToolCall{{ID: id, Name: name, Arguments: args}}
	}
	standard := `{"id":"c1","type":"function","function":{"name":"get_total","arguments":"{\"id\":7}"}}`
	for name, c := range map[string]struct {
		body string
		want []conversation.ToolCall
	}{
		"standard":            {withCall(standard), one("c1", "get_total", `{"id":7}`)},
		"null list":           {message(`{"content":"x","tool_calls":null}`), nil},
		"empty list":          {message(`{"content":"x","tool_calls":[]}`), nil},
		"null in the list":    {withCall(`null,` + standard), one("c1", "get_total", `{"id":7}`)},
		"no list":             {message(`{"tool_calls":` + standard + `}`), one("c1", "get_total", `{"id":7}`)},
		"legacy":              {message(`{"content":null,"function_call":{"name":"count","arguments":"{}"}}`), one("call00001", "count", `{}`)},
		"object":              {withCall(`{"id":"c1","function":{"name":"get_total","arguments":{ "id": 9007199254740993 }}}`), one("c1", "get_total", `{"id":9007199254740993}`)},
		"without wrapper":     {withCall(`{"id":"c1","name":"count","arguments":{}}`), one("c1", "count", `{}`)},
		"parameters":          {withCall(`{"id":"c1","function":{"name":"count","parameters":{"a":1}}}`), one("c1", "count", `{"a":1}`)},
		"numeric id":          {withCall(`{"id":17,"function":{"name":"count","arguments":"{}"}}`), one("17", "count", `{}`)},
		"null id":             {withCall(`{"id":null,"function":{"name":"count","arguments":"{}"}}`), one("call00001", "count", `{}`)},
		"no id":               {withCall(`{"function":{"name":"count","arguments":"{}"}}`), one("call00001", "count", `{}`)},
		"same id twice":       {withCall(standard + `,{"id":"c1","function":{"name":"count","arguments":"{}"}}`), append(one("c1", "get_total", `{"id":7}`), one("call00001", "count", `{}`)...)},
		"empty arguments":     {withCall(`{"id":"c1","function":{"name":"count","arguments":""}}`), one("c1", "count", "")},
		"null arguments":      {withCall(`{"id":"c1","function":{"name":"count","arguments":null}}`), one("c1", "count", "")},
		"null as text":        {withCall(`{"id":"c1","function":{"name":"count","arguments":"null"}}`), one("c1", "count", "")},
		"blank arguments":     {withCall(`{"id":"c1","function":{"name":"count","arguments":" \n"}}`), one("c1", "count", "")},
		"name with marks":     {withCall(`{"id":"c1","function":{"name":"count<|channel|>commentary","arguments":"{}"}}`), one("c1", "count", "{}")},
		"no arguments":        {withCall(`{"id":"c1","function":{"name":"count"}}`), one("c1", "count", "")},
		"text in text":        {withCall(`{"id":"c1","function":{"name":"get_total","arguments":"\"{\\\"id\\\":7}\""}}`), one("c1", "get_total", `{"id":7}`)},
		"fence":               {withCall("{\"id\":\"c1\",\"function\":{\"name\":\"get_total\",\"arguments\":\"```json\\n{\\\"id\\\":7}\\n```\"}}"), one("c1", "get_total", `{"id":7}`)},
		"Python":              {withCall(`{"id":"c1","function":{"name":"get_total","arguments":"{'id': 7}"}}`), one("c1", "get_total", `{'id': 7}`)},
		"cut":                 {withCall(`{"id":"c1","function":{"name":"get_total","arguments":"{\"id\": "}}`), one("c1", "get_total", `{"id": `)},
		"not an object":       {withCall(`{"id":"c1","function":{"name":"get_total","arguments":"[7]"}}`), one("c1", "get_total", `[7]`)},
		"NUL escape inside":   {withCall(`{"id":"c1","function":{"name":"get_total","arguments":"{\"id\":\"a\\u0000b\"}"}}`), one("c1", "get_total", `{"id":"ab"}`)},
		"literal backslash u": {withCall(`{"id":"c1","function":{"name":"get_total","arguments":"{\"id\":\"a\\\\u0000b\"}"}}`), one("c1", "get_total", `{"id":"a\\u0000b"}`)},
		"surrogate inside":    {withCall(`{"id":"c1","function":{"name":"get_total","arguments":"{\"id\":\"\\ud83d\"}"}}`), one("c1", "get_total", `{"id":"\ufffd"}`)},
		"surrogate in object": {withCall(`{"id":"c1","function":{"name":"get_total","arguments":{"id":"\ud83d"}}}`), one("c1", "get_total", `{"id":"\ufffd"}`)},
		"name with blanks":    {withCall(`{"id":"c1","function":{"name":" Get_Total ","arguments":"{}"}}`), one("c1", "get_total", `{}`)},
		"name with prefix":    {withCall(`{"id":"c1","function":{"name":"functions.get_total","arguments":"{}"}}`), one("c1", "get_total", `{}`)},
		"unknown name":        {withCall(`{"id":"c1","function":{"name":"nope","arguments":"{}"}}`), one("c1", "nope", `{}`)},
		"empty name":          {withCall(`{"id":"c1","function":{"name":"","arguments":"{}"}}`), one("c1", "", `{}`)},
		"no function":         {withCall(`{"id":"c1","type":"function","function":null}`), one("c1", "", "")},
		"calls in second choice": {
			`{"choices":[{"message":{"content":"let me see"},"finish_reason":"tool_calls"},{"message":{"tool_calls":[` + standard + `]},"finish_reason":"tool_calls"}]}`,
			one("c1", "get_total", `{"id":7}`),
		},
		"leaked":                      {message(`{"content":"<tool_call>\n{\"name\": \"get_total\", \"arguments\": {\"id\": 7}}\n</tool_call>"}`), one("call00001", "get_total", `{"id": 7}`)},
		"leaked twice":                {message(`{"content":"<tool_call>{\"name\":\"count\",\"arguments\":{}}</tool_call>\n<tool_call>{\"name\":\"count\",\"arguments\":\"{}\"}</tool_call>"}`), append(one("call00001", "count", `{}`), one("call00002", "count", `{}`)...)},
		"leaked list":                 {message(`{"content":"[TOOL_CALLS] [{\"name\":\"count\",\"arguments\":{}}]"}`), one("call00001", "count", `{}`)},
		"leaked llama":                {message(`{"content":"<function=count>{}</function>"}`), one("call00001", "count", `{}`)},
		"leaked python":               {message(`{"content":"<|python_tag|>{\"name\":\"count\",\"parameters\":{}}"}`), one("call00001", "count", `{}`)},
		"leaked Mistral":              {message(`{"content":"[TOOL_CALLS]get_total[CALL_ID]a1[ARGS]{\"id\": 7}[TOOL_CALLS]count[ARGS]{}"}`), append(one("call00001", "get_total", `{"id": 7}`), one("call00002", "count", `{}`)...)},
		"leaked parameters":           {message(`{"content":"<tool_call>\n<function=get_total>\n<parameter=id>\n7\n</parameter>\n</function>\n</tool_call>"}`), one("call00001", "get_total", `{"id":"7"}`)},
		"leaked parameter twice":      {message(`{"content":"<tool_call><function=get_total><parameter=id>7</parameter><parameter=id>8</parameter></function></tool_call>"}`), nil},
		"leaked keys and values":      {message(`{"content":"<tool_call>get_total\n<arg_key>id</arg_key>\n<arg_value>[7]</arg_value>\n</tool_call>"}`), one("call00001", "get_total", `{"id":[7]}`)},
		"leaked invocation":           {message(`{"content":"<function_calls>\n<invoke name=\"get_total\">\n<parameter name=\"id\">7</parameter>\n</invoke>\n</function_calls>"}`), one("call00001", "get_total", `{"id":"7"}`)},
		"leaked DeepSeek":             {message(`{"content":"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_total\n` + "```json\\n{\\\"id\\\": 7}\\n```" + `<｜tool▁call▁end｜><｜tool▁calls▁end｜>"}`), one("call00001", "get_total", `{"id": 7}`)},
		"leaked newer DeepSeek":       {message(`{"content":"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>count<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"}`), one("call00001", "count", `{}`)},
		"leaked Kimi":                 {message(`{"content":"<|tool_calls_section_begin|><|tool_call_begin|>functions.get_total:0<|tool_call_argument_begin|>{\"id\": 7}<|tool_call_end|><|tool_calls_section_end|>"}`), one("call00001", "get_total", `{"id": 7}`)},
		"leaked, a section of words":  {message(`{"content":"<function_calls>none</function_calls>"}`), nil},
		"leaked after a thought":      {message(`{"content":"<think>count</think><tool_call>{\"name\":\"count\",\"arguments\":{}}</tool_call>"}`), one("call00001", "count", `{}`)},
		"leaked, no such tool":        {message(`{"content":"<tool_call>{\"name\":\"drop\",\"arguments\":{}}</tool_call>"}`), nil},
		"a quotation is not a call":   {message(`{"content":"The note says <tool_call>{\"name\":\"count\",\"arguments\":{}}</tool_call>"}`), nil},
		"a quotation with a comment":  {message(`{"content":"<tool_call>{\"name\":\"count\",\"arguments\":{}}</tool_call> is in the note"}`), nil},
		"a bare object is an answer":  {message(`{"content":"{\"name\":\"count\",\"arguments\":{}}"}`), nil},
		"leaked, arguments no object": {message(`{"content":"<tool_call>{\"name\":\"count\",\"arguments\":[]}</tool_call>"}`), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, f := decode(t, c.body)
			require.Nil(t, f)
			require.Equal(t, c.want, got.calls)
			if len(c.want) > 0 {
				require.Equal(t, agent.FinishToolCalls, got.finish)
			}
		})
	}
}

func TestNormalize_Finish(t *testing.T) {
	t.Parallel()
	cut, failure := decode(t, `{"choices":[{"message":{"content":"<tool_call>{\"name\":\"count\",\"arguments\":{}}</tool_call>"},"finish_reason":"length"}]}`)
	require.Nil(t, failure)
	require.Equal(t, "length", cut.finish, "a text that was cut, whose calls must not run")
	for word, want := range map[string]string{
		`"stop"`: "stop", `null`: "stop", `""`: "stop", `"STOP"`: "stop", `"eos_token"`: "stop", `"end_turn"`: "stop", `"tool_calls"`: "stop",
		`"length"`: "length", `"MAX_TOKENS"`: "length", `"model_length"`: "length", `"content_filter"`: "content_filter", `"SAFETY"`: "content_filter",
		`"RECITATION"`: "content_filter", `"abort"`: "other", `"MALFORMED_FUNCTION_CALL"`: "other", `7`: "stop",
	} {
		got, f := decode(t, `{"choices":[{"message":{"content":"x"},"finish_reason":`+word+`}]}`)
		require.Nil(t, f)
		require.Equal(t, want, got.finish, word)
	}
	call := `"tool_calls":[{"id":"c","function":{"name":"count","arguments":"{}"}}]`
	for word, want := range map[string]string{"stop": "tool_calls", "tool_use": "tool_calls", "weird": "tool_calls", "length": "length", "content_filter": "content_filter"} {
		got, f := decode(t, `{"choices":[{"message":{`+call+`},"finish_reason":"`+word+`"}]}`)
		require.Nil(t, f)
		require.Equal(t, want, got.finish, word)
	}
}

func TestNormalize_Usage(t *testing.T) {
	t.Parallel()
	n := func(i int64) *int64 { return &i }
	for name, c := range map[string]struct {
		usage string
		want  conversation.Usage
	}{
		"plain":                {`{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}`, conversation.Usage{Input: n(5), Output: n(2)}},
		"null":                 {`null`, conversation.Usage{}},
		"a list":               {`[1]`, conversation.Usage{}},
		"empty":                {`{}`, conversation.Usage{}},
		"null counts":          {`{"prompt_tokens":null,"completion_tokens":null}`, conversation.Usage{}},
		"zero":                 {`{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`, conversation.Usage{Input: n(0), Output: n(0)}},
		"floats":               {`{"prompt_tokens":12.0,"completion_tokens":3.0,"total_tokens":1.5e1}`, conversation.Usage{Input: n(12), Output: n(3)}},
		"strings":              {`{"prompt_tokens":"12","completion_tokens":" 3 "}`, conversation.Usage{Input: n(12), Output: n(3)}},
		"nonsense":             {`{"prompt_tokens":-1,"completion_tokens":1e300,"total_tokens":"many"}`, conversation.Usage{}},
		"fractions":            {`{"prompt_tokens":1.5,"completion_tokens":true}`, conversation.Usage{}},
		"details":              {`{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":3}}`, conversation.Usage{Input: n(9), Output: n(4), Cached: n(8), Reasoning: n(3)}},
		"details null":         {`{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":null}`, conversation.Usage{Input: n(9), Output: n(4)}},
		"thinking outside":     {`{"prompt_tokens":21,"completion_tokens":0,"total_tokens":81,"completion_tokens_details":{"reasoning_tokens":60}}`, conversation.Usage{Input: n(21), Output: n(60), Reasoning: n(60)}},
		"another API's names":  {`{"input_tokens":5,"output_tokens":2}`, conversation.Usage{Input: n(5), Output: n(2)}},
		"a cache of its own":   {`{"prompt_tokens":9,"completion_tokens":4,"prompt_cache_hit_tokens":5}`, conversation.Usage{Input: n(9), Output: n(4), Cached: n(5)}},
		"total only":           {`{"total_tokens":7}`, conversation.Usage{}},
		"total below the rest": {`{"prompt_tokens":9,"completion_tokens":4,"total_tokens":1}`, conversation.Usage{Input: n(9), Output: n(4)}},
	} {
		got, f := decode(t, `{"choices":[{"message":{"content":"x"}}],"usage":`+c.usage+`}`)
		require.Nil(t, f)
		require.Equal(t, c.want, got.usage, name)
	}
}

func TestNormalize_RepliesThatAreNone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body  string
		kind  fault.Kind
		retry bool
		text  string
	}{
		"empty":                {"", fault.ModelProtocol, true, "empty body"},
		"white space":          {" \n\n", fault.ModelProtocol, true, "empty body"},
		"only signs of life":   {": hello", fault.ModelProtocol, true, "empty body"},
		"a page":               {"<html><head><title>Sign in</title><style>x{}</style></head><body>Please <b>log in</b></body></html>", fault.ModelProtocol, false, "text/html, not JSON (HTTP 200): Sign in Please log in"},
		"plain text":           {"upstream request timeout", fault.ModelProtocol, false, "not JSON (HTTP 200): upstream"},
		"cut":                  {`{"choices":[{"message":{"content":"hel`, fault.ModelProtocol, true, "ends in the middle"},
		"broken":               {`{"choices" [}`, fault.ModelProtocol, false, "not JSON"},
		"choices null":         {`{"id":"x","choices":null}`, fault.ModelProtocol, true, "without choices"},
		"choices empty":        {`{"id":"x","choices":[]}`, fault.ModelProtocol, true, "without choices"},
		"filtered":             {`{"choices":[],"prompt_filter_results":[{"content_filter_results":{"hate":{"filtered": true}}}]}`, fault.ModelRefused, false, "content filter"},
		"nothing":              {`{}`, fault.ModelProtocol, true, "without choices"},
		"error object":         {`{"error":{"message":"Rate limit exceeded","code":429}}`, fault.ModelRateLimited, true, "Rate limit exceeded"},
		"error as text":        {`{"error":"the engine is overloaded, try again"}`, fault.ModelUnavailable, true, "overloaded"},
		"error beside choices": {`{"choices":null,"error":{"message":"bad gateway","code":"502"}}`, fault.ModelUnavailable, true, "bad gateway"},
		"error in the choice":  {`{"choices":[{"message":{"content":""},"finish_reason":"error","error":{"code":503,"message":"no instance"}}]}`, fault.ModelUnavailable, true, "no instance"},
		"flat error":           {`{"object":"error","message":"model overloaded","code":503}`, fault.ModelUnavailable, true, "model overloaded"},
		"flat, no object":      {`{"code":401,"msg":"invalid key","success":false}`, fault.ModelAuth, false, "invalid key"},
		"detail":               {`{"detail":"no such model"}`, fault.ModelRejected, false, "no such model"},
		"status in base_resp":  {`{"choices":null,"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}`, fault.ModelQuota, false, "insufficient balance"},
		"wrapped in an array":  {`[{"error":{"code":400,"message":"The input token count (9) exceeds the maximum number of tokens allowed (8).","status":"INVALID_ARGUMENT"}}]`, fault.ModelOverflow, false, "input token count"},
		"server gave up":       {`{"choices":[{"message":{"content":"half"},"finish_reason":"insufficient_system_resource"}]}`, fault.ModelProtocol, true, "insufficient_system_resource"},
		"context full":         {`{"choices":[{"message":{"content":""},"finish_reason":"model_context_window_exceeded"}]}`, fault.ModelOverflow, false, "context"},
		"too many calls":       {withCall(strings.Repeat(`{"id":"a","function":{"name":"count"}},`, wire.MaxCalls+1)), fault.ModelProtocol, false, "256"},
		"deep nesting":         {`{"choices":` + strings.Repeat("[", 1<<20), fault.ModelProtocol, true, "ends in the middle"},
		"deep functions":       {withCall(strings.Repeat(`{"function":`, 1<<16)), fault.ModelProtocol, true, "ends in the middle"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, f := decode(t, c.body)
			require.NotNil(t, f)
			require.Equal(t, c.kind, f.Kind, f.Text)
			require.Equal(t, c.retry, f.Retry)
			require.Contains(t, f.Text, c.text)
		})
	}
}

func TestNormalize_KeepsWhatTheServerWantsBack(t *testing.T) {
	t.Parallel()
	got, f := decode(t, message(`{"content":null,"reasoning_content":"hm \ud83d","reasoning_details":[{"type":"reasoning.encrypted","data":"AAAA"}],"extra_content":{"s":1},"tool_calls":[`+
		`{"id":"c1","function":{"name":"count","arguments":"{}"},"extra_content":{"google":{"thought_signature":"sig"}}},{"id":"c2","function":{"name":"count","arguments":"{}"}}]}`))
	require.Nil(t, f)
	require.Equal(t, "c1", got.keep.id)
	require.Equal(t, `,"reasoning_content":"hm `+"\uFFFD"+`","reasoning_details":[{"type":"reasoning.encrypted","data":"AAAA"}],"extra_content":{"s":1}`, string(got.keep.members))
	require.Equal(t, `,"extra_content":{"google":{"thought_signature":"sig"}}`, string(got.keep.calls[0]))
	require.Empty(t, got.keep.calls[1])

	got, f = decode(t, `data: {"choices":[{"delta":{"reasoning_details":[{"n":1}, {"n":2}]}}]}`+"\n\n"+
		`data: {"choices":[{"delta":{"reasoning_details":[{"n":3}],"tool_calls":[{"index":0,"id":"c1","function":{"name":"count","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`+"\n\n")
	require.Nil(t, f)
	require.Equal(t, `,"reasoning_details":[{"n":1}, {"n":2},{"n":3}]`, string(got.keep.members))
}

func FuzzNormalize(f *testing.F) {
	for _, s := range []string{
		message(`{"content":"hi \ud83d\ude00"}`), message(`{"content":[{"type":"text","text":"a"}]}`),
		withCall(`{"id":1,"function":{"name":"count","arguments":{"a":"\ud83d"}}}`), `{"error":{"message":"x","code":429}}`, `[{"error":"x"}]`,
		"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\"}}]}}]}\n\ndata: [DONE]\n", "<html>", "",
		`{"choices":[{"message":{"content":"<tool_call>{\"name\":\"count\",\"arguments\":{}}</tool_call>"}}],"usage":{"prompt_tokens":"7"}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, fail := decode(t, string(body))
		if fail != nil {
			e := fail.Fault("http://x", 1, strings.Clone)
			require.NotEmpty(t, e.Message)
			require.Equal(t, e.Message, conversation.Clean(e.Message))
			require.LessOrEqual(t, len(e.Message), 4000)
			return
		}
		require.Equal(t, got.content, conversation.Clean(got.content))
		seen := map[string]bool{}
		for _, c := range got.calls {
			require.NotEmpty(t, c.ID)
			require.False(t, seen[c.ID])
			seen[c.ID] = true
			require.Equal(t, c.Arguments, conversation.CleanJSON(c.Arguments))
		}
	})
}
