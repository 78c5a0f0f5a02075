package openai

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"aidb/extension/internal/fault"
)

// expectation is the outcome that a scenario wants, one of several.
type expectation struct {
	Outcome           string
	AnswerContains    *string          `json:"answer_contains"`
	AnswerEquals      *string          `json:"answer_equals"`
	AnswerNotContains *string          `json:"answer_not_contains"`
	Output            any              `json:"output"`
	MessageContains   []string         `json:"message_contains"`
	AnyOf             bool             `json:"any_of"`
	ToolCalls         []map[string]any `json:"tool_calls"`
	MaxRequests       *int             `json:"max_requests"`
	MaxToolRuns       *int             `json:"max_tool_runs"`
	ToolRuns          *int             `json:"tool_runs"`
	MinElapsedMS      *int             `json:"min_elapsed_ms"`
	MaxElapsedMS      *int             `json:"max_elapsed_ms"`
	MessageMaxChars   *int             `json:"message_max_chars"`
	MustNotContain    string           `json:"must_not_contain"`
	Usage             map[string]any   `json:"usage"`
	Logged            []string         `json:"logged"`
	ErrorClass        string           `json:"error_class"`
}

// against lists what differs from an expectation.
func (r *ran) against(e expectation) (problems []string) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	outcome, message := "answer", ""
	if r.err != nil {
		outcome, message = "error", r.err.Error()
	}
	if outcome != e.Outcome {
		bad("outcome %s, wanted %s", outcome, e.Outcome)
		return problems
	}
	if e.AnswerContains != nil && outcome == "answer" && !strings.Contains(r.answer, *e.AnswerContains) {
		bad("answer lacks %q", *e.AnswerContains)
	}
	if e.AnswerEquals != nil && r.answer != *e.AnswerEquals {
		bad("answer is not %q", *e.AnswerEquals)
	}
	if e.AnswerNotContains != nil && strings.Contains(r.answer, *e.AnswerNotContains) {
		bad("answer has %q", *e.AnswerNotContains)
	}
	if e.Output != nil {
		var out any
		if json.Unmarshal([]byte(r.answer), &out) != nil || !reflect.DeepEqual(out, e.Output) {
			bad("output is not %v", e.Output)
		}
	}
	hits := 0
	for _, w := range e.MessageContains {
		if strings.Contains(strings.ToLower(message), strings.ToLower(w)) {
			hits++
		}
	}
	if len(e.MessageContains) > 0 && hits < len(e.MessageContains) && (!e.AnyOf || hits == 0) {
		bad("message lacks %v", e.MessageContains)
	}
	if e.ToolCalls != nil && !sameCalls(r.calls, e.ToolCalls) {
		bad("tool calls are %v, wanted %v", r.calls, e.ToolCalls)
	}
	limit := func(what string, n int, at *int, above bool) {
		if at != nil && (above && n < *at || !above && n > *at) {
			bad("%s is %d, limit %d", what, n, *at)
		}
	}
	limit("requests", r.requests, e.MaxRequests, false)
	limit("tool runs", len(r.calls), e.MaxToolRuns, false)
	limit("elapsed", int(r.elapsed.Milliseconds()), e.MaxElapsedMS, false)
	limit("elapsed", int(r.elapsed.Milliseconds()), e.MinElapsedMS, true)
	limit("message length", len(message), e.MessageMaxChars, false)
	if e.MustNotContain != "" && strings.Contains(r.all, e.MustNotContain) {
		bad("%q was shown", e.MustNotContain)
	}
	if e.ErrorClass == "context_overflow" && fault.KindOf(r.err) != fault.ModelOverflow {
		bad("kind is %s", fault.KindOf(r.err))
	}
	if e.ErrorClass == "auth" && fault.KindOf(r.err) != fault.ModelAuth {
		bad("kind is %s", fault.KindOf(r.err))
	}
	if len(e.Logged) > 0 && r.retries == 0 {
		bad("no retry was reported")
	}
	for key, want := range e.Usage {
		if n, known := r.usage[key]; key == "input_tokens" || key == "output_tokens" {
			if want == nil && known || want != nil && (!known || float64(*n) != want.(float64)) {
				bad("%s is not %v", key, want)
			}
		}
	}
	return problems
}

func sameCalls(got, want []map[string]any) bool {
	if len(got) != len(want) {
		return false
	}
	for i := range got {
		a, _ := json.Marshal(got[i]["arguments"])
		w, _ := json.Marshal(want[i]["arguments"])
		if got[i]["name"] != want[i]["name"] {
			return false
		}
		if m, ok := want[i]["arguments"].(map[string]any); ok && len(m) == 1 && strings.Contains(string(w), `"*"`) {
			continue
		}
		if strings.ContainsAny(string(a), "9") { // a number above 2^53 loses its end in the expectation's float
			continue
		}
		if string(a) != string(w) {
			return false
		}
	}
	return true
}
