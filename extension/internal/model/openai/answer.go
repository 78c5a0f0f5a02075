package openai

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
)

// answer is what one reply says, whatever shape it came in.
type answer struct {
	model   text
	finish  string
	content text
	refusal text
	calls   []call
	keep    extras
	usage   usage

	// sawChoices says that there was a list of choices, choices how many were in it.
	sawChoices bool
	choices    int
	// index is the choice that a chunk of a stream belongs to.
	index int
	// failure is the error object of a reply that is no reply.
	failure []byte
	// filtered says that a content filter reports a hit.
	filtered bool
}

// call is one tool call as received. index is its place in a stream, -1 when not given.
type call struct {
	index int
	id    text
	name  text
	args  text
	// extra is the call's extra_content, which its maker wants back with the call.
	extra []byte
}

// extras are members that mean something to the server only, which refuses or degrades the next request of a
// tool round without them.
type extras struct {
	reasoning text   // reasoning_content
	details   []byte // reasoning_details
	blocks    []byte // thinking_blocks
}

// usage holds the counts by the provider's names; nil is unknown.
type usage struct{ input, output, total, cached, reasoning *int64 }

// tokens returns the counts in our terms. Thinking is output although some providers count it in the total only.
func (u usage) tokens() conversation.Usage {
	out := u.output
	if u.total != nil && u.input != nil && (out == nil || *u.total-*u.input > *out) && *u.total >= *u.input {
		n := *u.total - *u.input
		out = &n
	}
	return conversation.Usage{Input: u.input, Output: out, Cached: u.cached, Reasoning: u.reasoning}
}

// parseAnswer reads a completion: an object, or an array that wraps one.
func parseAnswer(b []byte) (answer, error) {
	s := scanner{b: b}
	var a answer
	if s.peek() == '[' {
		s.i++
	}
	if s.peek() != '{' {
		return a, s.fail()
	}
	err := s.object(func(key string) error { return a.member(&s, key) })
	return a, err
}

// member reads one member of the outermost object.
func (a *answer) member(s *scanner, key string) error {
	switch key {
	case "choices":
		return a.readChoices(s)
	case "usage":
		if s.peek() == '{' {
			return a.usage.read(s)
		}
	case "model":
		if s.peek() == '"' {
			t, err := s.str()
			a.model = t
			return err
		}
	case "message":
		// Some servers answer on this path with their own API's shape: the message without a list around it.
		if s.peek() == '{' && !a.sawChoices {
			var one answer
			start := s.i
			if err := one.message(s); err != nil {
				return err
			}
			if bytes.Contains(s.b[start:s.i], []byte(`"role"`)) {
				a.sawChoices, a.choices = true, 1
				a.content, a.refusal, a.calls, a.keep = one.content, one.refusal, one.calls, one.keep
			}
			return nil
		}
	case "done_reason":
		if s.peek() == '"' {
			t, err := s.str()
			a.finish = t.String()
			return err
		}
	case "prompt_eval_count":
		return count(s, &a.usage.input)
	case "eval_count":
		return count(s, &a.usage.output)
	case "error":
		raw, err := s.skip()
		if present(raw) {
			a.failure = raw
		}
		return err
	case "object":
		raw, err := s.skip()
		if string(raw) == `"error"` {
			a.failure = s.b
		}
		return err
	case "base_resp":
		raw, err := s.skip()
		var r struct {
			Code int `json:"status_code"`
		}
		if json.Unmarshal(raw, &r) == nil && r.Code != 0 {
			a.failure = raw
		}
		return err
	case "prompt_filter_results", "prompt_annotations", "promptFeedback":
		raw, err := s.skip()
		if err == nil {
			var squeezed bytes.Buffer
			if json.Compact(&squeezed, raw) == nil {
				raw = squeezed.Bytes()
			}
			a.filtered = a.filtered || bytes.Contains(raw, []byte(`"filtered":true`)) || bytes.Contains(raw, []byte(`"blockReason"`))
		}
		return err
	}
	_, err := s.skip()
	return err
}

// present says whether an error member says anything: null, false, "", {} and the like do not.
func present(raw []byte) bool {
	switch string(bytes.TrimSpace(raw)) {
	case "", "null", "false", `""`, "{}", "[]", "0":
		return false
	}
	return true
}

func (a *answer) readChoices(s *scanner) error {
	switch s.peek() {
	case '{':
		a.sawChoices = true
		return a.choice(s)
	case '[':
		a.sawChoices = true
		return s.array(func() error {
			if s.peek() == '{' {
				return a.choice(s)
			}
			_, err := s.skip()
			return err
		})
	}
	_, err := s.skip()
	return err
}

// choice reads one choice. We ask for one, so that a second one is the rest of the first: some gateways put the
// text into one choice and the calls into the next.
func (a *answer) choice(s *scanner) error {
	var c answer
	err := s.object(func(key string) error {
		switch key {
		case "message", "delta":
			switch s.peek() {
			case '{':
				return c.message(s)
			case '"':
				return c.readContent(s)
			}
		case "text":
			if s.peek() == '"' && c.content.empty() {
				return c.readContent(s)
			}
		case "finish_reason":
			if s.peek() == '"' {
				t, err := s.str()
				c.finish = t.String()
				return err
			}
		case "index":
			raw, err := s.skip()
			c.index, _ = strconv.Atoi(string(raw))
			return err
		case "error":
			raw, err := s.skip()
			if present(raw) {
				c.failure = raw
			}
			return err
		}
		_, err := s.skip()
		return err
	})
	if err != nil {
		return err
	}
	a.choices++
	if a.choices == 1 {
		a.finish, a.content, a.refusal, a.calls, a.keep, a.index = c.finish, c.content, c.refusal, c.calls, c.keep, c.index
	} else {
		if a.content.empty() {
			a.content = c.content
		}
		if len(a.calls) == 0 && len(c.calls) > 0 {
			a.calls, a.finish, a.keep = c.calls, c.finish, c.keep
		}
	}
	if c.failure != nil {
		a.failure = c.failure
	}
	return nil
}

// message reads an assistant message, whole or a stream's delta.
func (a *answer) message(s *scanner) error {
	return s.object(func(key string) error {
		switch key {
		case "content":
			return a.readContent(s)
		case "tool_calls":
			a.calls = nil
			switch s.peek() {
			case '[':
				return s.array(func() error { return a.call(s) })
			case '{':
				return a.call(s)
			}
		case "function_call":
			if s.peek() == '{' && len(a.calls) == 0 {
				return a.call(s)
			}
		case "refusal":
			if s.peek() == '"' {
				t, err := s.str()
				a.refusal = t
				return err
			}
		case "reasoning_content":
			if s.peek() == '"' {
				t, err := s.str()
				a.keep.reasoning = t
				return err
			}
		case "reasoning_details":
			raw, err := s.skip()
			if len(raw) > 2 && raw[0] == '[' {
				a.keep.details = raw
			}
			return err
		case "thinking_blocks":
			raw, err := s.skip()
			if len(raw) > 2 && raw[0] == '[' {
				a.keep.blocks = raw
			}
			return err
		}
		_, err := s.skip()
		return err
	})
}

// readContent reads a message's content: text, a list of parts, or something that is taken as its own JSON text.
func (a *answer) readContent(s *scanner) error {
	switch s.peek() {
	case '"':
		t, err := s.str()
		a.content = t
		return err
	case '[':
		var all strings.Builder
		err := s.array(func() error { return a.part(s, &all) })
		a.content = textOf(all.String())
		return err
	}
	raw, err := s.skip()
	if err != nil || string(raw) == "null" {
		return err
	}
	var p struct {
		Text *string `json:"text"`
	}
	if json.Unmarshal(raw, &p) == nil && p.Text != nil {
		a.content = textOf(conversation.Clean(*p.Text))
	} else {
		a.content = textOf(conversation.Clean(string(raw)))
	}
	return nil
}

// part reads one content part. Only text is kept: a reference, an image or a thought has none to show.
func (a *answer) part(s *scanner, all *strings.Builder) error {
	switch s.peek() {
	case '"':
		t, err := s.str()
		all.WriteString(t.String())
		return err
	case '{':
		kind, body := "", ""
		err := s.object(func(key string) error {
			if s.peek() == '"' && (key == "type" || key == "text" || key == "refusal") {
				t, err := s.str()
				switch key {
				case "type":
					kind = t.String()
				case "text":
					body = t.String()
				default:
					a.refusal = t
				}
				return err
			}
			_, err := s.skip()
			return err
		})
		if kind == "" || kind == "text" || kind == "output_text" {
			all.WriteString(body)
		}
		return err
	}
	_, err := s.skip()
	return err
}

// call reads one tool call, in the standard's shape or without the function object around name and arguments.
func (a *answer) call(s *scanner) error {
	if s.peek() != '{' {
		_, err := s.skip()
		return err
	}
	c := call{index: -1}
	inside := false
	var member func(key string) error
	member = func(key string) error {
		switch key {
		case "function":
			// Not deeper than the protocol has it: a hostile body must not choose how deep we go.
			if s.peek() == '{' && !inside {
				inside = true
				err := s.object(member)
				inside = false
				return err
			}
		case "id", "name":
			t, err := scalar(s)
			if key == "id" {
				c.id = t
			} else if !t.empty() {
				c.name = t
			}
			return err
		case "arguments", "parameters", "input":
			t, err := arguments(s)
			if !t.empty() {
				c.args = t
			}
			return err
		case "index":
			raw, err := s.skip()
			if n, bad := strconv.Atoi(string(raw)); bad == nil {
				c.index = n
			}
			return err
		case "extra_content":
			raw, err := s.skip()
			if len(raw) > 2 && raw[0] == '{' {
				c.extra = raw
			}
			return err
		}
		_, err := s.skip()
		return err
	}
	if err := s.object(member); err != nil {
		return err
	}
	a.calls = append(a.calls, c)
	return nil
}

// scalar reads a string; a number stands for its digits, anything else for nothing.
func scalar(s *scanner) (text, error) {
	c := s.peek()
	if c == '"' {
		return s.str()
	}
	raw, err := s.skip()
	if err != nil || c == '{' || c == '[' || c == 'n' {
		return text{}, err
	}
	return textOf(conversation.Clean(string(raw))), nil
}

// arguments reads a call's arguments: text, or JSON that should have been text.
func arguments(s *scanner) (text, error) {
	if s.peek() == '"' {
		return s.str()
	}
	raw, err := s.skip()
	if err != nil || string(raw) == "null" {
		return text{}, err
	}
	var squeezed bytes.Buffer
	if json.Compact(&squeezed, raw) == nil {
		raw = squeezed.Bytes()
	}
	return textOf(conversation.CleanJSON(string(raw))), nil
}

func (u *usage) read(s *scanner) error {
	return s.object(func(key string) error {
		switch key {
		case "prompt_tokens", "input_tokens":
			return count(s, &u.input)
		case "completion_tokens", "output_tokens":
			return count(s, &u.output)
		case "total_tokens":
			return count(s, &u.total)
		case "prompt_cache_hit_tokens":
			return count(s, &u.cached)
		case "prompt_tokens_details", "input_tokens_details", "completion_tokens_details", "output_tokens_details":
			if s.peek() == '{' {
				return s.object(func(key string) error {
					switch key {
					case "cached_tokens":
						return count(s, &u.cached)
					case "reasoning_tokens":
						return count(s, &u.reasoning)
					}
					_, err := s.skip()
					return err
				})
			}
		}
		_, err := s.skip()
		return err
	})
}

// count reads a number of tokens, which may come as a float or in a string. What is no count is unknown.
func count(s *scanner, to **int64) error {
	raw, err := s.skip()
	if err != nil {
		return err
	}
	digits := strings.TrimSpace(strings.Trim(string(raw), `"`))
	if n, bad := strconv.ParseInt(digits, 10, 64); bad == nil && n >= 0 {
		*to = &n
		return nil
	}
	if f, bad := strconv.ParseFloat(digits, 64); bad == nil && f >= 0 && f < 1<<53 && f == math.Trunc(f) {
		n := int64(f)
		*to = &n
	}
	return nil
}

// finishWords are the finish reasons of other vendors in the words of this protocol, lower case.
var finishWords = map[string]string{
	"": agent.FinishStop, "stop": agent.FinishStop, "eos": agent.FinishStop, "eos_token": agent.FinishStop, "end": agent.FinishStop,
	"end_turn": agent.FinishStop, "stop_sequence": agent.FinishStop, "complete": agent.FinishStop, "completed": agent.FinishStop,
	"finished": agent.FinishStop, "finish_reason_stop": agent.FinishStop, "null": agent.FinishStop,
	"length": agent.FinishLength, "max_tokens": agent.FinishLength, "max_output_tokens": agent.FinishLength,
	"max_new_tokens": agent.FinishLength, "model_length": agent.FinishLength, "finish_reason_max_tokens": agent.FinishLength,
	"incomplete": agent.FinishLength, "token_limit": agent.FinishLength,
	"tool_calls": agent.FinishToolCalls, "tool_call": agent.FinishToolCalls, "tool_use": agent.FinishToolCalls,
	"function_call": agent.FinishToolCalls, "function_calls": agent.FinishToolCalls,
	"content_filter": agent.FinishContentFilter, "content_filtered": agent.FinishContentFilter, "safety": agent.FinishContentFilter,
	"recitation": agent.FinishContentFilter, "blocklist": agent.FinishContentFilter, "prohibited_content": agent.FinishContentFilter,
	"spii": agent.FinishContentFilter, "sensitive": agent.FinishContentFilter, "refusal": agent.FinishContentFilter,
	"image_safety": agent.FinishContentFilter, "guardrail_intervened": agent.FinishContentFilter, "blocked": agent.FinishContentFilter,
}

// finishOther is every finish reason that says nothing about what to do with the reply.
const finishOther = "other"

// finishOf judges by the calls that are there, not by what the reason says about them; only a cut or filtered
// reply stays one.
func finishOf(word string, calls int) string {
	f, known := finishWords[strings.ToLower(strings.TrimSpace(word))]
	switch {
	case f == agent.FinishLength || f == agent.FinishContentFilter:
		return f
	case calls > 0:
		return agent.FinishToolCalls
	case known:
		return agent.FinishStop
	}
	return finishOther
}
