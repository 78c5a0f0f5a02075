package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// expectation is the outcome that a recorded scenario wants, one of several.
type expectation struct {
	Outcome           string
	AnswerContains    string          `json:"answer_contains"`
	AnswerEquals      *string         `json:"answer_equals"`
	AnswerNotContains *string         `json:"answer_not_contains"`
	Output            json.RawMessage `json:"output"`
	MessageContains   []string        `json:"message_contains"`
	AnyOf             bool            `json:"any_of"`
	ToolCalls         json.RawMessage `json:"tool_calls"`
	MaxRequests       *int            `json:"max_requests"`
	MaxToolRuns       *int            `json:"max_tool_runs"`
	ToolRuns          *int            `json:"tool_runs"`
	MinElapsedMS      *int            `json:"min_elapsed_ms"`
	MaxElapsedMS      *int            `json:"max_elapsed_ms"`
	MessageMaxChars   *int            `json:"message_max_chars"`
	MustNotContain    string          `json:"must_not_contain"`
	Usage             map[string]*int64
	Logged            []string
	ErrorClass        string `json:"error_class"`
	Retries           *int   // requests beyond one a round; nil: any number
}

// classes are the words of an error by which its class is known.
var classes = map[string]string{"context_overflow": "does not fit into the model's context", "auth": "did not accept the credentials"}

// against lists what differs from an expectation.
func (e expectation) against(r *ran, requests int) (problems []string) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	outcome := "answer"
	if r.failed() {
		outcome = "error"
	}
	if outcome != e.Outcome {
		bad("outcome %s, wanted %s", outcome, e.Outcome)
		return problems
	}
	if outcome == "answer" && !strings.Contains(r.Message, e.AnswerContains) {
		bad("answer lacks %q", e.AnswerContains)
	}
	if e.AnswerEquals != nil && r.Message != *e.AnswerEquals {
		bad("answer is not %q", *e.AnswerEquals)
	}
	if e.AnswerNotContains != nil && strings.Contains(r.Message, *e.AnswerNotContains) {
		bad("answer has %q", *e.AnswerNotContains)
	}
	if len(e.Output) > 0 && !sameJSON([]byte(r.Message), e.Output) {
		bad("output is not %s", e.Output)
	}
	e.words(r, bad)
	if len(e.ToolCalls) > 0 && !sameCalls(r.tools(), e.ToolCalls) {
		bad("tool calls differ, wanted %s", e.ToolCalls)
	}
	e.limits(r, requests, bad)
	if again := requests - r.rounds(); e.Retries != nil && *e.Retries != again {
		bad("%d requests made again, wanted %d", again, *e.Retries)
	}
	return problems
}

func (e expectation) words(r *ran, bad func(string, ...any)) {
	hits := 0
	for _, w := range e.MessageContains {
		if strings.Contains(strings.ToLower(r.Error), strings.ToLower(w)) {
			hits++
		}
	}
	if hits < len(e.MessageContains) && (!e.AnyOf || hits == 0) {
		bad("message lacks %v", e.MessageContains)
	}
	if e.MustNotContain != "" && strings.Contains(r.all, e.MustNotContain) {
		bad("%q was shown", e.MustNotContain)
	}
	if word := classes[e.ErrorClass]; !strings.Contains(r.Error, word) {
		bad("the error is not of class %s", e.ErrorClass)
	}
	if len(e.Logged) > 0 && r.retries == 0 {
		bad("no retry is in the log")
	}
}

func (e expectation) limits(r *ran, requests int, bad func(string, ...any)) {
	limit := func(what string, n int, at *int, least bool) {
		if at != nil && (least && n < *at || !least && n > *at) {
			bad("%s is %d, limit %d", what, n, *at)
		}
	}
	limit("requests", requests, e.MaxRequests, false)
	limit("tool runs", len(r.tools()), e.MaxToolRuns, false)
	limit("tool runs", len(r.tools()), e.ToolRuns, false)
	limit("tool runs", len(r.tools()), e.ToolRuns, true)
	limit("elapsed", int(r.elapsed.Milliseconds()), e.MaxElapsedMS, false)
	limit("elapsed", int(r.elapsed.Milliseconds()), e.MinElapsedMS, true)
	limit("message length", len([]rune(r.Error)), e.MessageMaxChars, false)
	for key, got := range map[string]*int64{"input_tokens": r.input, "output_tokens": r.output} {
		want, given := e.Usage[key]
		if given && !reflect.DeepEqual(got, want) {
			bad("%s differs", key)
		}
	}
	if total := e.Usage["total_tokens"]; total != nil && (r.input == nil || r.output == nil || *r.input+*r.output != *total) {
		bad("the sum of tokens is not %d", *total)
	}
}

func sameJSON(a, b []byte) bool {
	x, okX := decoded(a)
	y, okY := decoded(b)
	return okX && okY && reflect.DeepEqual(x, y)
}

func decoded(raw []byte) (v any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return v, d.Decode(&v) == nil
}

// sameCalls compares what ran with what is wanted; "*" stands for any text.
func sameCalls(got []call, wanted json.RawMessage) bool {
	var want []struct {
		Name      string
		Arguments json.RawMessage
	}
	if json.Unmarshal(wanted, &want) != nil || len(got) != len(want) {
		return false
	}
	for i := range got {
		v, _ := decoded(want[i].Arguments)
		arguments, ok := got[i].Arguments.(map[string]any)
		if m, is := v.(map[string]any); is && ok {
			for k := range m {
				if _, given := arguments[k].(string); m[k] == "*" && given {
					m[k] = arguments[k]
				}
			}
		}
		if got[i].Name != want[i].Name || !reflect.DeepEqual(got[i].Arguments, v) {
			return false
		}
	}
	return true
}
