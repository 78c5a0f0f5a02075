package openai

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
)

func TestNormalize_Stream(t *testing.T) {
	t.Parallel()
	chunk := func(delta, finish string) string {
		return `data: {"id":"x","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}`
	}
	call := func(index, id, name, args string) string {
		return chunk(`{"tool_calls":[{`+index+`"id":`+id+`,"function":{"name":`+name+`,"arguments":`+args+`}}]}`, "null")
	}
	done := chunk(`{}`, `"stop"`)
	two := []conversation.ToolCall{{ID: "c1", Name: "get_total", Arguments: `{"id":7}`}, {ID: "c2", Name: "count", Arguments: "{}"}}
	for name, c := range map[string]struct {
		lines []string
		sep   string
		text  string
		calls []conversation.ToolCall
	}{
		"text":                    {[]string{chunk(`{"role":"assistant","content":"he"}`, "null"), chunk(`{"content":"llo"}`, "null"), done, "data: [DONE]"}, "\n\n", "hello", nil},
		"without empty lines":     {[]string{chunk(`{"content":"he"}`, "null"), chunk(`{"content":"llo"}`, "null"), done}, "\n", "hello", nil},
		"carriage returns":        {[]string{"event: x", chunk(`{"content":"hello"}`, "null"), ": alive", done}, "\r\n", "hello", nil},
		"no blank after data":     {[]string{`data:{"choices":[{"delta":{"content":"hello"},"finish_reason":"stop"}]}`}, "\n\n", "hello", nil},
		"an event in lines":       {[]string{"data: {\"choices\":\ndata: [{\"delta\":{\"content\":\"hello\"},\ndata: \"finish_reason\":\"stop\"}]}"}, "\n\n", "hello", nil},
		"no choices around":       {[]string{`data: {"choices":[],"prompt_filter_results":[{}]}`, chunk(`{"content":"hello"}`, "null"), done, `data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":6}}`, "data: [DONE]"}, "\n\n", "hello", nil},
		"a surrogate pair split":  {[]string{chunk(`{"content":"\ud83d"}`, "null"), chunk(`{"content":"\ude00"}`, "null"), done}, "\n\n", "😀", nil},
		"escaped and not":         {[]string{chunk(`{"content":"a\n"}`, "null"), chunk(`{"content":"é"}`, "null"), chunk(`{"content":"\u00e9"}`, "null"), done}, "\n\n", "a\néé", nil},
		"calls in pieces":         {[]string{call(`"index":0,`, `"c1"`, `"get_total"`, `""`), call(`"index":0,`, `null`, `null`, `"{\"id\""`), call(`"index":0,`, `""`, `""`, `":7}"`), call(`"index":1,`, `"c2"`, `"count"`, `"{}"`), done}, "\n\n", "", two},
		"one index for all":       {[]string{call(`"index":0,`, `"c1"`, `"get_total"`, `"{\"id\":7}"`), call(`"index":0,`, `"c2"`, `"count"`, `"{}"`), done}, "\n\n", "", two},
		"no index":                {[]string{call(``, `"c1"`, `"get_total"`, `"{\"id\":7}"`), call(``, `"c2"`, `"count"`, `"{"`), call(``, `""`, `""`, `"}"`), done}, "\n\n", "", two},
		"the id in every piece":   {[]string{call(`"index":0,`, `"c1"`, `"get_total"`, `"{\"id\""`), call(`"index":0,`, `"c1"`, `"get_total"`, `":7}"`), call(`"index":1,`, `"c2"`, `"count"`, `"{}"`), done}, "\n\n", "", two},
		"arguments as an object":  {[]string{call(`"index":0,`, `"c1"`, `"get_total"`, `{"id":7}`), call(`"index":1,`, `"c2"`, `"count"`, `{}`), done}, "\n\n", "", two},
		"whole message at once":   {[]string{`data: ` + message(`{"content":"hello"}`), "data: [DONE]"}, "\n\n", "hello", nil},
		"ends with [DONE] only":   {[]string{chunk(`{"content":"hello"}`, "null"), "data: [DONE]"}, "\n\n", "hello", nil},
		"other choices too":       {[]string{chunk(`{"content":"hello"}`, "null"), `data: {"choices":[{"index":1,"delta":{"content":"no"}}]}`, done}, "\n\n", "hello", nil},
		"event line and comments": {[]string{": hi\nevent: message\nid: 1\nretry: 5\n" + chunk(`{"content":"hello"}`, "null"), done}, "\n\n", "hello", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, f := decode(t, strings.Join(c.lines, c.sep)+c.sep)
			require.Nil(t, f)
			require.Equal(t, c.text, got.content)
			require.Equal(t, c.calls, got.calls)
		})
	}
	for name, c := range map[string]struct {
		body  string
		kind  fault.Kind
		retry bool
	}{
		"cut":               {chunk(`{"content":"he"}`, "null") + "\n\n", fault.ModelProtocol, true},
		"cut in an event":   {chunk(`{"content":"he"}`, "null") + "\n\ndata: {\"choices\":[{\"del", fault.ModelProtocol, true},
		"error event":       {chunk(`{"content":"he"}`, "null") + "\n\ndata: {\"error\":{\"message\":\"malformed response; retry\",\"code\":502}}\n\n", fault.ModelUnavailable, true},
		"named error event": {"event: error\ndata: {\"message\":\"overloaded\",\"code\":503}\n\n", fault.ModelUnavailable, true},
		"nothing in it":     {"data: [DONE]\n\n", fault.ModelProtocol, true},
		"not JSON":          {"data: hello\n\n", fault.ModelProtocol, false},
	} {
		_, f := decode(t, c.body)
		require.NotNil(t, f, name)
		require.Equal(t, c.kind, f.Kind, "%s: %s", name, f.Text)
		require.Equal(t, c.retry, f.Retry, name)
	}
}

func TestNormalize_StreamIsLinear(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"many small chunks":     `data: {"choices":[{"index":0,"delta":{"content":"a\n","reasoning_content":"b"}}]}` + "\n",
		"events that never end": "data: {\n",
		"lines without meaning": "x\n",
		"calls":                 `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}}]}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Quadratic work on this much would take minutes.
			_, _ = decode(t, "data: {}\n"+strings.Repeat(line, (4<<20)/len(line)))
		})
	}
}
