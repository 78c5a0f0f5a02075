package conversation

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestClean(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"":                         "",
		"plain":                    "plain",
		"a\x00b":                   "ab",
		"\x00":                     "",
		"ünï 🙂 \u2028 \uFFFD":      "ünï 🙂 \u2028 \uFFFD",
		"x\xffy":                   "x\uFFFDy",
		"half \xed\xa0\x80 pair":   "half \uFFFD pair",
		"cut inside \xf0\x9f\x99":  "cut inside \uFFFD",
		"literal \\u0000 is text ": "literal \\u0000 is text ",
	}
	for in, want := range cases {
		require.Equal(t, want, Clean(in))
	}
}

func TestCleanJSON(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		`{"a":"x\u0000y"}`:                      `{"a":"xy"}`,
		`{"a\u0000":1}`:                         `{"a":1}`,
		`"\ud83d\ude42"`:                        `"\ud83d\ude42"`,
		`"\uD83D\uDE42"`:                        `"\uD83D\uDE42"`,
		`"\ud83d"`:                              `"\ufffd"`,
		`"\ud83dx"`:                             `"\ufffdx"`,
		`"\ude42"`:                              `"\ufffd"`,
		`"\ud83d\ud83d\ude42"`:                  `"\ufffd\ud83d\ude42"`,
		`"\ud83d\u0041"`:                        `"\ufffd\u0041"`,
		`"\\u0000"`:                             `"\\u0000"`,
		`"\\\u0000"`:                            `"\\"`,
		`"\u00e9\u0001"`:                        `"\u00e9\u0001"`,
		`{"a":"\u00`:                            `{"a":"\u00`,
		`{"a":"\`:                               `{"a":"\`,
		`"\uzzzz\u0000"`:                        `"\uzzzz"`,
		"{\"a\":\"\x00\\u0000\"}":               `{"a":""}`,
		"\"\\ud83d\xed\xa0\x80\"":               "\"\\ufffd\uFFFD\"",
		`no escapes at all`:                     `no escapes at all`,
		strings.Repeat(`\u0000`, 9):             strings.Repeat(`\u0000`, 9),
		"{\"a\":4\x002}":                        `{"a":4 2}`,
		`{"a":4\u00002}`:                        `{"a":4\u00002}`,
		"{\"a\":tr\x00ue,\"b\x00\":\"\\\x00\"}": `{"a":tr ue,"b":"\"}`,
		`{"a\"\u0000":"\\","b":1}`:              `{"a\"":"\\","b":1}`,
	}
	for in, want := range cases {
		got := CleanJSON(in)
		require.Equal(t, want, got, in)
		require.Equal(t, got, CleanJSON(got), "cleaning twice changes nothing")
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{`\u0000`, `\\u0000`, "\xed\xa0\x80", `\ud800\udc00`, `{"a":"\u00"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c := CleanJSON(s)
		require.True(t, utf8.ValidString(c))
		require.NotContains(t, c, "\x00")
		if json.Valid([]byte(Clean(s))) {
			require.True(t, json.Valid([]byte(c)))
			var v any
			dec := json.NewDecoder(strings.NewReader(c))
			dec.UseNumber() // numbers may be of any size
			require.NoError(t, dec.Decode(&v))
			require.NotContains(t, flatten(v), "\x00")
		}
		payload := ToolCallPayload(ToolCall{ID: s, Name: s, Arguments: s})
		require.True(t, json.Valid(payload))
		require.NotContains(t, string(ContentsPayload(s)), `\u0000`+"\x00")
		var back struct{ Contents string }
		require.NoError(t, json.Unmarshal(ContentsPayload(s), &back))
		require.Equal(t, Clean(s), back.Contents)
	})
}

func flatten(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		var b strings.Builder
		for _, e := range v {
			b.WriteString(flatten(e))
		}
		return b.String()
	case map[string]any:
		var b strings.Builder
		for k, e := range v {
			b.WriteString(k)
			b.WriteString(flatten(e))
		}
		return b.String()
	}
	return ""
}

func TestCleanCalls_CopiesOnlyWhatChanges(t *testing.T) {
	t.Parallel()
	fine := []ToolCall{{ID: "1", Name: "a", Arguments: "{}"}}
	require.Same(t, &fine[0], &CleanCalls(fine)[0])
	dirty := []ToolCall{{ID: "1\x00", Name: "a\xff", Arguments: `{"a":"\u0000"}`}}
	require.Equal(t, []ToolCall{{ID: "1", Name: "a\uFFFD", Arguments: `{"a":""}`}}, CleanCalls(dirty))
	require.Equal(t, "1\x00", dirty[0].ID, "the caller's slice is left alone")
}

func TestToolCallPayload_KeepsWhatJsonbTakes(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return `{"a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}` }
	cases := []struct {
		name, arguments string
		object          bool
	}{
		{"object", `{"q":"SELECT 1","n":[1,2.5,-3e4],"b":true,"x":null}`, true},
		{"object with white space", " \n{ }\t", true},
		{"array", "[1]", false},
		{"string", `"x"`, false},
		{"cut off", `{"q":`, false},
		{"two objects", `{}{}`, false},
		{"exponent beyond numeric", `{"n":1e999999}`, false},
		{"exponent beyond numeric, negative", `{"n":1E-999999}`, false},
		{"many digits", `{"n":` + strings.Repeat("9", 500) + `}`, false},
		{"digits in a string do not count", `{"n":"` + strings.Repeat("9", 5000) + `e99999"}`, true},
		{"words that end in e", `{"a":true,"b":false,"c":[true,false,1e5]}`, true},
		{"nested", deep(150), true},
		{"nested beyond the server's stack", deep(5000), false},
		{"escaped quotes", `{"a\"b\\":"\\"}`, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := ToolCallPayload(ToolCall{ID: "1", Name: "a", Arguments: c.arguments})
			var got struct {
				Arguments json.RawMessage `json:"arguments"`
			}
			require.NoError(t, json.Unmarshal(p, &got))
			if c.object {
				require.JSONEq(t, c.arguments, string(got.Arguments))
				return
			}
			var text string
			require.NoError(t, json.Unmarshal(got.Arguments, &text))
			require.Equal(t, c.arguments, text)
		})
	}
}

func TestToolCallPayload_NoArgumentsAreAnEmptyObject(t *testing.T) {
	t.Parallel()
	for _, none := range []string{"", " \n", "\x00"} {
		require.JSONEq(t, `{"tool_name":"a","arguments":{},"tool_call_id":"1"}`, string(ToolCallPayload(ToolCall{ID: "1", Name: "a", Arguments: none})))
	}
}

func TestRetried_TellsOfWhatFailedBefore(t *testing.T) {
	t.Parallel()
	require.Equal(t, `{"a":1}`, string(Retried(json.RawMessage(`{"a":1}`), nil)))
	require.JSONEq(t, `{"a":1,"retries":[{"error":"no \"way\"","wait_ms":1500}]}`,
		string(Retried(json.RawMessage(`{"a":1}`), []Retry{{Error: "no \"way\"\x00", Wait: 1500 * time.Millisecond}})))
	var all struct{ Retries []any }
	require.NoError(t, json.Unmarshal(Retried(json.RawMessage(`{"a":1}`), make([]Retry, 100)), &all))
	require.Len(t, all.Retries, maxRetries)
}

func TestPayloads_AreReadBackAsTheyWere(t *testing.T) {
	t.Parallel()
	text := "quote \" back \\ slash / tab\t line\n cr\r bell\a del\x7f ünï 🙂 \u2028 </script> &"
	calls := []ToolCall{{ID: "1", Name: text, Arguments: text}, {ID: "2"}}
	records := []Record{
		{Type: UserPrompt, Request: UserPromptPayload(text, text)},
		{Type: ModelRequest, Request: ModelRequestPayload(text, 1, 2, []string{text, "b"})},
		{Type: ModelResponse, Response: ModelResponsePayload(text, calls, text, text, Usage{})},
		{Type: ToolCalled, Request: ToolCallPayload(calls[0])},
		{Type: ToolResponse, Request: ToolResponsePayload(calls[0]), Response: ContentsPayload(text)},
		{Type: ToolResponse, Request: ToolResponsePayload(calls[1]), Response: ErrorPayload(text)},
		{Type: Answer, Response: ContentsPayload("ignored")},
	}
	for _, r := range records {
		require.True(t, r.Request == nil || json.Valid(r.Request), string(r.Request))
		require.True(t, r.Response == nil || json.Valid(r.Response), string(r.Response))
	}
	require.Equal(t, []Message{
		{Role: User, Content: text},
		{Role: Assistant, Content: text, ToolCalls: calls},
		{Role: Tool, Content: text, ToolCallID: "1", ToolName: text},
		{Role: Tool, Content: text, ToolCallID: "2"},
	}, Rebuild(records))
}

func TestRejected_IsStorable(t *testing.T) {
	t.Parallel()
	response := ModelResponsePayload("x", nil, "stop", "m", Usage{})
	before := string(response)
	got := Rejected(response, "a \"reason\"\x00")
	require.True(t, json.Valid(got))
	require.Equal(t, before[:len(before)-1]+`,"rejected":"a \"reason\""}`, string(got))
	require.Equal(t, before, string(response), "the payload itself stays as it is")
	require.Equal(t, `"a\"b\nc"`, Quote("a\"b\nc\x00"))
}

func TestRebuild_RepairsWhatALogMayHold(t *testing.T) {
	t.Parallel()
	prompt := Record{Type: UserPrompt, Request: UserPromptPayload("q", "u")}
	asks := func(ids ...string) Record {
		var calls []ToolCall
		for _, id := range ids {
			calls = append(calls, ToolCall{ID: id, Name: "t", Arguments: "{}"})
		}
		return Record{Type: ModelResponse, Response: ModelResponsePayload("", calls, "", "", Usage{})}
	}
	says := func(text string) Record {
		return Record{Type: ModelResponse, Response: ModelResponsePayload(text, nil, "", "", Usage{})}
	}
	rejects := func(text string) Record {
		r := says(text)
		r.Response = Rejected(r.Response, "a \"reason\"\x00")
		return r
	}
	gives := func(id, text string) Record {
		return Record{Type: ToolResponse, Request: ToolResponsePayload(ToolCall{ID: id, Name: "t"}), Response: ContentsPayload(text)}
	}
	cases := []struct {
		name string
		log  []Record
		want string
	}{
		{"nothing", nil, ""},
		{"in order", []Record{prompt, asks("1", "2"), gives("1", "A"), gives("2", "B"), says("x")}, "u:q a:[1 2] t1:A t2:B a:x"},
		{"results in another order", []Record{prompt, asks("1", "2"), gives("2", "B"), gives("1", "A")}, "u:q a:[1 2] t1:A t2:B"},
		{"crash between call and result", []Record{prompt, asks("1", "2"), gives("1", "A")}, "u:q a:[1 2] t1:A t2:-"},
		{"crash, then the next prompt", []Record{prompt, asks("1"), prompt}, "u:q a:[1] t1:- u:q"},
		{"result without a call", []Record{prompt, gives("9", "Z"), asks("1"), gives("1", "A"), gives("9", "Z")}, "u:q a:[1] t1:A"},
		{"result after somebody else spoke", []Record{prompt, asks("1"), prompt, gives("1", "A")}, "u:q a:[1] t1:- u:q"},
		{"the same id in two rounds", []Record{prompt, asks("1"), gives("1", "A"), asks("1"), gives("1", "B")}, "u:q a:[1] t1:A a:[1] t1:B"},
		{"the same id twice in a round", []Record{prompt, asks("1", "1"), gives("1", "A"), gives("1", "B")}, "u:q a:[1 1] t1:A t1:B"},
		{"empty answers", []Record{prompt, says(""), says(" \n"), says("x")}, "u:q a:x"},
		{"answers that were rejected", []Record{prompt, rejects("y"), {Type: ModelResponse, Response: []byte(`{"rejected": "why", "contents": "z"}`)}, says("x")}, "u:q a:x"},
		{"failed model call", []Record{prompt, {Type: ModelResponse, Error: "down"}, says("x")}, "u:q a:x"},
		{"payloads that cannot be read", []Record{{Type: UserPrompt, Request: []byte("{")}, {Type: UserPrompt}, {Type: ToolResponse},
			{Type: ModelResponse, Response: []byte(`[]`)}, {Type: ToolResponse, Request: []byte(`{}`), Response: []byte(`7`)}, prompt}, "u:q"},
		{"written by jsonb", []Record{{Type: UserPrompt, Request: []byte(`{"user": "u", "contents": "q"}`)},
			{Type: ModelResponse, Response: []byte(`{"usage": {}, "contents": null, "tool_calls": [{"id": "1", "name": "t", "arguments": "{}"}]}`)},
			{Type: ToolResponse, Request: []byte(`{"tool_name": "t", "tool_call_id": "1"}`), Response: []byte(`{"contents": [{"n": 1}]}`)}},
			`u:q a:[1] t1:[{"n": 1}]`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, m := range Rebuild(c.log) {
				switch {
				case m.Role == Tool && m.Content == NoResult:
					got = append(got, "t"+m.ToolCallID+":-")
				case m.Role == Tool:
					got = append(got, "t"+m.ToolCallID+":"+m.Content)
				case len(m.ToolCalls) > 0:
					var ids []string
					for _, call := range m.ToolCalls {
						ids = append(ids, call.ID)
					}
					got = append(got, "a:["+strings.Join(ids, " ")+"]")
				default:
					got = append(got, string(m.Role[0])+":"+m.Content)
				}
			}
			require.Equal(t, c.want, strings.Join(got, " "))
		})
	}
}

// The reader finds the same members as encoding/json in everything that is valid, and stays within bounds in
// everything that is not.
func FuzzObject(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":1}`, ` { "a" : [1,{"b":"]"}] , "c" : "\"" } `, `{"a":1,}`, `{"a"`, `[1]`, `{"a":"\u00e9"}`, `{"a":nul}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := map[string]string{}
		ok := object([]byte(s), func(name, value []byte) bool {
			var key string
			if json.Unmarshal(name, &key) == nil {
				got[key] = string(value)
			}
			return true
		})
		var want map[string]json.RawMessage
		if !strings.HasPrefix(strings.TrimSpace(s), "{") || json.Unmarshal([]byte(s), &want) != nil {
			return
		}
		require.True(t, ok, s)
		require.Len(t, got, len(want), s)
		for key, value := range want {
			require.Equal(t, string(value), got[key], s)
			if value[0] == '"' && utf8.ValidString(s) {
				var plain string
				require.NoError(t, json.Unmarshal(value, &plain))
				read, ok := text(value)
				require.True(t, ok)
				require.Equal(t, plain, read)
			}
		}
	})
}
