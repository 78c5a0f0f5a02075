package openai

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/wire"
)

type (
	msg  = conversation.Message
	tc   = conversation.ToolCall
	body = struct {
		Model    string
		Messages []struct {
			Role, Content    string
			ToolCallID       string  `json:"tool_call_id"`
			ReasoningContent *string `json:"reasoning_content"`
			ToolCalls        []struct {
				ID, Type     string
				Function     struct{ Name, Arguments string }
				ExtraContent json.RawMessage `json:"extra_content"`
			} `json:"tool_calls"`
		}
		Tools []struct {
			Type     string
			Function struct {
				Name, Description string
				Parameters        json.RawMessage
			}
		}
	}
)

func write(t testing.TB, config string, d dialect, r agent.Request, k ...kept) (string, body, sent) {
	t.Helper()
	c, err := parseConfig(json.RawMessage(config))
	require.NoError(t, err)
	if d == (dialect{}) {
		d = c.start()
	}
	w := writer{d: d, names: wire.NewNames(r), kept: k}
	raw := w.body(c, r)
	var b body
	require.NoError(t, json.Unmarshal(raw, &b), string(raw))
	return string(raw), b, w.sent
}

func user(s string) msg      { return msg{Role: conversation.User, Content: s} }
func system(s string) msg    { return msg{Role: conversation.System, Content: s} }
func assistant(s string) msg { return msg{Role: conversation.Assistant, Content: s} }
func calls(c ...tc) msg      { return msg{Role: conversation.Assistant, ToolCalls: c} }
func result(id, s string) msg {
	return msg{Role: conversation.Tool, ToolCallID: id, Content: s}
}

// shape is the roles of the messages that were written, and their texts.
func shape(b body) string {
	var s []string
	for _, m := range b.Messages {
		s = append(s, m.Role+":"+m.Content)
	}
	return strings.Join(s, "|")
}

func TestRequest_SendsTheLeast(t *testing.T) {
	t.Parallel()
	raw, _, _ := write(t, `{"model":"gpt-5"}`, dialect{noStream: true}, agent.Request{Messages: []msg{system("s"), user("p")}})
	require.Equal(t, `{"model":"gpt-5","messages":[{"role":"system","content":"s"},{"role":"user","content":"p"}]}`, raw)
	raw, _, _ = write(t, `{"model":"m"}`, dialect{noStream: true}, agent.Request{Messages: []msg{user("p")}, Tools: testTools[1:]})
	require.Equal(t, `{"model":"m","messages":[{"role":"user","content":"p"}],"tools":[{"type":"function","function":{"name":"count","parameters":{"type":"object","properties":{}}}}]}`, raw)
}

func TestRequest_SendsWhatTheConfigSets(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		`{"model":"m","stream":false,"temperature":0,"top_p":0.5,"seed":9007199254740993}`:            `,"temperature":0,"top_p":0.5,"seed":9007199254740993}`,
		`{"model":"m","stream":false,"max_tokens":{"size":9}}`:                                        `,"max_completion_tokens":9}`,
		`{"model":"m","stream":false,"max_tokens":{"size":9,"format":"default"}}`:                     `,"max_completion_tokens":9}`,
		`{"model":"m","stream":false,"max_tokens":{"size":9,"format":"legacy"}}`:                      `,"max_tokens":9}`,
		`{"model":"m","stream":false,"max_tokens":{"size":9,"format":"both"}}`:                        `,"max_tokens":9,"max_completion_tokens":9}`,
		`{"model":"m","stream":false,"max_tokens":9}`:                                                 `,"max_completion_tokens":9}`,
		`{"model":"m","stream":false,"thinking":false}`:                                               `,"chat_template_kwargs":{"enable_thinking":false}}`,
		`{"model":"m","stream":false,"extra_args":{"b":[1],"a":"x","temperature":1},"temperature":0}`: `,"a":"x","b":[1],"temperature":1}`,
		`{"model":"m","stream":false,"temperature":null,"thinking":null,"max_tokens":null}`:           `]}`,
	} {
		raw, _, _ := write(t, config, dialect{}, agent.Request{Messages: []msg{user("p")}})
		require.True(t, strings.HasSuffix(raw, want), "%s gave %s", config, raw)
	}
}

func TestRequest_AsksForAStream(t *testing.T) {
	t.Parallel()
	const whole, counts = `"stream":true}`, `"stream":true,"stream_options":{"include_usage":true}}`
	for _, c := range []struct {
		config string
		d      dialect
		want   string
	}{
		{`{"model":"m"}`, dialect{}, counts},
		{`{"model":"m","url":"https://api.openai.com/v1"}`, dialect{}, counts},
		{`{"model":"m","stream":false}`, dialect{}, `]}`},
		{`{"model":"m","url":"https://api.openai.com.example/v1"}`, dialect{}, `]}`},
		{`{"model":"m","url":"http://127.0.0.1/v1"}`, dialect{}, `]}`},
		{`{"model":"m","url":"http://127.0.0.1/v1","stream":true}`, dialect{}, counts},
		{`{"model":"m","stream":true}`, dialect{noStreamUsage: true}, whole},
		{`{"model":"m","stream":true}`, dialect{noStream: true}, `]}`},
	} {
		raw, _, _ := write(t, c.config, c.d, agent.Request{Messages: []msg{user("p")}})
		require.True(t, strings.HasSuffix(raw, c.want), "%s %+v gave %s", c.config, c.d, raw)
	}
}

func TestRequest_RepairsTheHistory(t *testing.T) {
	t.Parallel()
	c1 := tc{ID: "c1", Name: "count", Arguments: "{}"}
	for name, c := range map[string]struct {
		messages []msg
		want     string
	}{
		"one system message":          {[]msg{system("a"), system("b"), user("p"), system("c")}, "system:a\n\nb\n\nc|user:p"},
		"no system message":           {[]msg{system(""), user("p")}, "user:p"},
		"user twice":                  {[]msg{user("a"), user("b"), system("s"), user("c")}, "system:s|user:a\n\nb\n\nc"},
		"assistant twice":             {[]msg{user("a"), assistant("b "), assistant("c\n"), user("d")}, "user:a|assistant:b\n\nc|user:d"},
		"white space at the end":      {[]msg{user("a "), assistant("b \n"), user("c")}, "user:a |assistant:b|user:c"},
		"a result is missing":         {[]msg{user("a"), calls(c1), user("b")}, "user:a|assistant:|tool:" + conversation.NoResult + "|user:b"},
		"a result without a call":     {[]msg{user("a"), result("x", "y"), assistant("b"), user("c")}, "user:a|assistant:b|user:c"},
		"an assistant without a word": {[]msg{user("a"), assistant(""), user("b")}, "user:a\n\nb"},
		"an empty result":             {[]msg{user("a"), calls(c1), result("c1", "")}, "user:a|assistant:|tool:"},
		"what cannot be sent":         {[]msg{user("a\x00b\xed\xa0\x80\xff"), assistant("\u2028😀")}, "user:ab\uFFFD\uFFFD\uFFFD\uFFFD|assistant:\u2028😀"},
		"nothing":                     {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw, b, _ := write(t, `{"model":"m"}`, dialect{}, agent.Request{Messages: c.messages})
			require.Equal(t, c.want, shape(b))
			for i := range b.Messages {
				require.Contains(t, raw, `"content":`)
				if b.Messages[i].Role == "tool" {
					require.NotEmpty(t, b.Messages[i].ToolCallID)
				}
			}
			require.NotContains(t, raw, "null")
		})
	}
}

func TestRequest_RepairsCalls(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", 600)
	r := agent.Request{Tools: []agent.ToolSpec{{Name: "count"}, {Name: "größe.lesen"}, {Name: "gr__e_lesen"}}, Messages: []msg{
		user("p"),
		calls(tc{ID: "x", Name: "count", Arguments: ""}, tc{ID: "x", Name: "größe.lesen", Arguments: `{"a":`}, tc{ID: "", Name: "", Arguments: `[1]`}, tc{ID: long, Name: "nope nope", Arguments: ` {"a":"` + "\xff" + `"} `}),
		result("x", "1"), result("x", "2"), result("", "3"), result(long, "4"),
		calls(tc{ID: "x", Name: "count", Arguments: `{"b":9007199254740993}`}), result("x", "5"),
	}}
	_, b, _ := write(t, `{"model":"m"}`, dialect{}, r)
	got := b.Messages[1].ToolCalls
	ids := []string{"x", "x_2", "call00003", long}
	names := []string{"count", "gr__e_lesen_2", "unnamed_tool", "nope_nope"}
	args := []string{"{}", "{}", "{}", " {\"a\":\"\uFFFD\"} "}
	for i := range got {
		require.Equal(t, ids[i], got[i].ID)
		require.Equal(t, "function", got[i].Type)
		require.Equal(t, names[i], got[i].Function.Name)
		require.Equal(t, args[i], got[i].Function.Arguments)
		require.Equal(t, ids[i], b.Messages[2+i].ToolCallID)
		require.Equal(t, string(rune('1'+i)), b.Messages[2+i].Content)
	}
	require.Equal(t, "x_3", b.Messages[6].ToolCalls[0].ID)
	require.Equal(t, "x_3", b.Messages[7].ToolCallID)
	require.Equal(t, `{"b":9007199254740993}`, b.Messages[6].ToolCalls[0].Function.Arguments)
	require.Equal(t, []string{"count", "gr__e_lesen_2", "gr__e_lesen"}, []string{b.Tools[0].Function.Name, b.Tools[1].Function.Name, b.Tools[2].Function.Name})
	n := wire.NewNames(r)
	require.Equal(t, "größe.lesen", n.Offered("gr__e_lesen_2"))
	require.Equal(t, "gr__e_lesen", n.Offered("gr__e_lesen"))

	_, b, _ = write(t, `{"model":"m"}`, dialect{shortIDs: true}, r)
	seen := map[string]bool{}
	for _, m := range b.Messages {
		for _, c := range m.ToolCalls {
			require.True(t, nineAlnum(c.ID), c.ID)
			require.False(t, seen[c.ID])
			seen[c.ID] = true
		}
	}
	for _, m := range b.Messages {
		if m.Role == "tool" {
			require.True(t, seen[m.ToolCallID])
		}
	}
}

func TestRequest_ToolSchemas(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		``:                  `{"type":"object","properties":{}}`,
		`{`:                 `{"type":"object","properties":{}}`,
		`[]`:                `{"type":"object","properties":{}}`,
		`null`:              `{"type":"object","properties":{}}`,
		`{}`:                `{"properties":{},"type":"object"}`,
		`{"type":"object"}`: `{"properties":{},"type":"object"}`,
		`{"type":"object","properties":{"a":{}}}`:                        `{"type":"object","properties":{"a":{}}}`,
		`{"$schema":"x","type":"object","properties":{"a":{"const":1}}}`: `{"properties":{"a":{"const":1}},"type":"object"}`,
	} {
		require.Equal(t, want, string(wire.WithProperties(&agent.ToolSpec{Parameters: json.RawMessage(in)}, false)), in)
	}
	full := `{"$schema":"x","type":"object","additionalProperties":false,"required":["a"],"properties":{"a":{"type":["null","integer"],"exclusiveMinimum":0},"$ref":{"$ref":"#/x"},` +
		`"c":{"const":"x"},"l":{"type":"array","items":{"anyOf":[{}],"type":"string","maxLength":3}}}}`
	require.JSONEq(t, `{"type":"object","required":["a"],"properties":{"a":{"type":"integer"},"$ref":{},"c":{"enum":["x"]},"l":{"type":"array","items":{"type":"string"}}}}`,
		string(wire.WithProperties(&agent.ToolSpec{Parameters: json.RawMessage(full)}, true)))
}

func TestRequest_SendsBackWhatTheServerWants(t *testing.T) {
	t.Parallel()
	r := agent.Request{Messages: []msg{
		user("before"), calls(tc{ID: "c1", Name: "count"}), result("c1", "old"), assistant("done"),
		user("p"), calls(tc{ID: "c1", Name: "count"}, tc{ID: "c2", Name: "count"}), result("c1", "1"), result("c2", "2"),
	}}
	k := kept{id: "c1", members: []byte(`,"reasoning_content":"hm"`), calls: [][]byte{nil, []byte(`,"extra_content":{"s":1}`)}}
	_, b, s := write(t, `{"model":"m"}`, dialect{}, r, k)
	require.True(t, s.extras)
	require.Nil(t, b.Messages[1].ReasoningContent, "an earlier run's thoughts are not sent")
	require.Equal(t, "hm", *b.Messages[5].ReasoningContent)
	require.Nil(t, b.Messages[5].ToolCalls[0].ExtraContent)
	require.JSONEq(t, `{"s":1}`, string(b.Messages[5].ToolCalls[1].ExtraContent))
	_, b, s = write(t, `{"model":"m"}`, dialect{noExtras: true}, r, k)
	require.False(t, s.extras)
	require.Nil(t, b.Messages[5].ReasoningContent)
}

func TestDialect_Adapt(t *testing.T) {
	t.Parallel()
	c1 := tc{ID: "c1", Name: "count", Arguments: "{}"}
	round := []msg{system("s"), user("a"), calls(c1), result("c1", "")}
	for name, c := range map[string]struct {
		config   string
		messages []msg
		tools    []agent.ToolSpec
		says     string
		want     string // in the request that is sent instead; "" when none is
		not      string
	}{
		"new name of the bound":      {`{"model":"m","max_tokens":{"size":9,"format":"legacy"}}`, round, nil, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", `"max_completion_tokens":9`, `"max_tokens"`},
		"old name of the bound":      {`{"model":"m","max_tokens":{"size":9}}`, round, nil, "Unrecognized request argument supplied: max_completion_tokens", `"max_tokens":9`, `"max_completion_tokens"`},
		"one name of both":           {`{"model":"m","max_tokens":{"size":9,"format":"both"}}`, round, nil, "body.max_completion_tokens: Extra inputs are not permitted", `"max_tokens":9`, `"max_completion_tokens"`},
		"a bound that is too high":   {`{"model":"m","max_tokens":{"size":9,"format":"legacy"}}`, []msg{user("p")}, nil, "max_tokens must be at least 16", "", ""},
		"ids, Mistral":               {`{"model":"m"}`, round, nil, "Tool call id was c1 but must be a-z, A-Z, 0-9, with a length of 9.", `"tool_call_id":"call00001"`, `"c1"`},
		"ids, OpenAI":                {`{"model":"m"}`, round, nil, "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40", `"id":"call00001"`, `"c1"`},
		"content must not be empty":  {`{"model":"m"}`, round, nil, "messages.1: content must be non-empty", `"content":"(no output)"`, `"content":""`},
		"content null in their word": {`{"model":"m"}`, round, nil, "messages: text content blocks must be non-empty", `"content":"(no output)"`, `"content":""`},
		"a bridge":                   {`{"model":"m"}`, append(round, user("b")), nil, "Unexpected role 'user' after role 'tool'", `{"role":"assistant","content":"(The results are noted`, ""},
		"a bridge, alternate":        {`{"model":"m"}`, append(round, user("b")), nil, "conversation roles must alternate user and assistant", `{"role":"assistant","content":"(The results are noted`, ""},
		"past tools":                 {`{"model":"m"}`, round, nil, "ValidationException: The toolConfig field must be defined when using toolUse and toolResult content blocks", `"tools":[{"type":"function","function":{"name":"count"`, ""},
		"plain schemas":              {`{"model":"m"}`, []msg{user("p")}, []agent.ToolSpec{{Name: "t", Parameters: json.RawMessage(`{"type":"object","properties":{"a":{"exclusiveMinimum":0}}}`)}}, "Unknown name \"exclusiveMinimum\" at 'tools[0].function_declarations[0].parameters'", `"tools"`, "exclusiveMinimum"},
		"no schema of the answer":    {`{"model":"m","structured_output":true}`, []msg{user("p")}, nil, "This response_format type is unavailable now", `"model":"m"`, "response_format"},
		"no system role":             {`{"model":"m","system_prompt":"x"}`, round, nil, "System role not supported", `{"role":"user","content":"x\n\ns\n\na"}`, `"role":"system"`},
		"temperature stays":          {`{"model":"m","temperature":0}`, []msg{user("p")}, nil, "Unsupported value: 'temperature' does not support 0 with this model.", "", ""},
		"something else":             {`{"model":"m"}`, round, nil, "The model does not exist", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := agent.Request{Messages: c.messages, Tools: c.tools, Output: json.RawMessage(`{"type":"object"}`)}
			conf, err := parseConfig(json.RawMessage(c.config))
			require.NoError(t, err)
			_, _, s := write(t, c.config, dialect{}, r)
			f := wire.Complaint{Message: c.says}.Failure(400, nil)
			next, ok := conf.start().adapt(f, s)
			require.Equal(t, c.want != "", ok, f.Kind)
			if !ok {
				return
			}
			raw, _, s := write(t, c.config, next, r)
			require.Contains(t, raw, c.want)
			if c.not != "" {
				require.NotContains(t, raw, c.not)
			}
			_, again := next.adapt(f, s)
			if name != "content must not be empty" {
				require.False(t, again && next == conf.start(), "a dialect must not be tried twice")
			}
		})
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		``:                                   "https://api.openai.com/v1/chat/completions",
		`http://h:1/v1`:                      "http://h:1/v1/chat/completions",
		`http://h:1/v1/`:                     "http://h:1/v1/chat/completions",
		`http://h:1`:                         "http://h:1/chat/completions",
		`http://h:1/v1/chat/completions`:     "http://h:1/v1/chat/completions",
		`http://h:1/v1/chat/completions/`:    "http://h:1/v1/chat/completions",
		`https://h/openai/d?api-version=1#x`: "https://h/openai/d/chat/completions?api-version=1",
	} {
		c := &config{URL: in}
		require.NoError(t, c.locate())
		require.Equal(t, want, c.endpoint)
		require.Equal(t, strings.Replace(want, "/chat/completions", "/models", 1), c.models)
	}
	for in, want := range map[string]string{
		`[]`:                                     "cannot be read",
		`{"model":7}`:                            "member 'model' must not be a JSON number",
		`{}`:                                     "no model",
		`{"model":"m","url":"ftp://h"}`:          "not an http or https URL",
		`{"model":"m","url":"http://u:pw@h/v1"}`: "user or a password",
		`{"model":"m","url":"h/v1"}`:             "not an http",
		`{"model":"m","max_tokens":0}`:           "above zero",
		`{"model":"m","max_tokens":{}}`:          "no size",
		`{"model":"m","max_tokens":{"size":1,"format":"x"}}`: "not default, legacy or both",
		`{"model":"m","max_concurrent_requests":0}`:          "above zero",
		`{"model":"m","temperature":"hot"}`:                  "cannot be read",
		`{"model":"m","thinking":"yes"}`:                     "'thinking' must not be a JSON string",
		`{"model":"m","extra_args":{"messages":[]}}`:         "must not contain 'messages'",
	} {
		_, err := parseConfig(json.RawMessage(in))
		require.ErrorContains(t, err, want, in)
		require.NotContains(t, err.Error(), "pw")
	}
	require.NoError(t, CheckConfig(json.RawMessage(`{"model":"m","is_hcp_model":false,"tls_config":{"ca_path":"x"}}`)))
	require.ErrorContains(t, CheckConfig(json.RawMessage(`{"model":"m","temprature":1}`)), "'temprature'")
	require.Error(t, CheckConfig(json.RawMessage(`{}`)))
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                         "",
		"null":                     "",
		"{}":                       "",
		" sk-1\n":                  "Bearer sk-1",
		`{"api_key":"sk-1"}`:       "Bearer sk-1",
		`{"basic_auth":"u:p"}`:     "Basic dTpw",
		`{"basic_auth":"dTpw"}`:    "Basic dTpw",
		`{"api_key":null,"x":"y"}`: "",
	} {
		c, err := wire.ParseCredentials(in)
		require.NoError(t, err)
		_, h, err := c.Header("")
		require.NoError(t, err)
		require.Equal(t, want, h, in)
	}
	for _, in := range []string{`{"api_key":7}`, `{"api_key":"s3cret`, `{"api_key":"s3cret","basic_auth":"s3cret"}`} {
		_, err := wire.ParseCredentials(in)
		require.ErrorContains(t, err, "credentials")
		require.NotContains(t, err.Error(), "s3cret")
	}
	for _, secret := range []string{"s3cret\n", "s3\x00cret", "s3cret”", "s3\tcret"} {
		_, _, err := wire.Credentials{APIKey: secret}.Header("")
		require.ErrorContains(t, err, "not allowed in an HTTP header")
		require.NotContains(t, err.Error(), "s3")
	}
	shown, err := json.Marshal(wire.Credentials{APIKey: "s3cret"})
	require.NoError(t, err)
	require.NotContains(t, string(shown)+wire.Credentials{APIKey: "s3cret"}.String()+wire.Credentials{APIKey: "s3cret"}.GoString(), "s3cret")
}

func FuzzRequest(f *testing.F) {
	f.Add("hi", "c1", "count", "{}", "res", uint8(3))
	f.Add("\xff\x00\"\\", "", "größe", "{'a'", "\xed\xa0\x80", uint8(255))
	f.Fuzz(func(t *testing.T, text, id, name, args, res string, bits uint8) {
		r := agent.Request{Tools: testTools, Messages: []msg{
			system(text), user(text), calls(tc{ID: id, Name: name, Arguments: args}, tc{ID: id, Name: name, Arguments: args}), result(id, res), user(text), assistant(text), assistant(text),
		}}
		d := dialect{
			shortIDs: bits&1 > 0, noEmptyText: bits&2 > 0, bridge: bits&4 > 0, noExtras: bits&8 > 0, pastTools: bits&16 > 0, plainSchema: bits&32 > 0, noSystem: bits&64 > 0,
		}
		_, b, _ := write(t, `{"model":"m"}`, d, r)
		open := map[string]bool{}
		for _, m := range b.Messages {
			require.Equal(t, m.Content, conversation.Clean(m.Content))
			for _, c := range m.ToolCalls {
				require.False(t, open[c.ID])
				open[c.ID] = true
				require.True(t, wire.LegalName(c.Function.Name))
				require.True(t, wire.IsObject(c.Function.Arguments))
			}
			if m.Role == "tool" {
				require.True(t, open[m.ToolCallID])
			}
		}
	})
}
