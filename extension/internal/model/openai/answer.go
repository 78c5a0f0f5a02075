package openai

import (
	"bytes"
	"encoding/json"
	"strconv"

	"aidb/extension/internal/conversation"
	"aidb/extension/internal/wire"
)

// answer is what one reply says, whatever shape it came in.
type answer struct {
	model   wire.Text
	finish  string
	content wire.Text
	refusal wire.Text
	calls   []call
	keep    extras
	usage   wire.Usage

	// sawChoices says that there was a list of choices, choices how many were in it.
	sawChoices bool
	choices    int
	// index is the choice that a chunk of a stream belongs to.
	index int
	// whole says that a choice held a message, not a piece of one, although it may have come in a stream.
	whole bool
	// piece says that a choice held a piece of a message.
	piece bool
	// more says that another object follows.
	more bool
	// hidden is the size of thoughts that are shown but not to be sent back.
	hidden int
	// failure is the error object of a reply that is no reply.
	failure []byte
	// filtered says that a content filter reports a hit.
	filtered bool
}

// call is one tool call as received. index is its place in a stream, -1 when not given.
type call struct {
	index int
	id    wire.Text
	name  wire.Text
	args  wire.Text
	// extra is the call's extra_content, which its maker wants back with the call.
	extra []byte
}

// extras are members that mean something to the server only, which refuses or degrades the next request of a
// tool round without them.
type extras struct {
	reasoning wire.Text // reasoning_content
	details   [][]byte  // reasoning_details, the list of each chunk
	blocks    [][]byte  // thinking_blocks, as details
	extra     []byte    // extra_content
}

// parseAnswer reads a completion: an object, or an array that wraps one.
func parseAnswer(b []byte) (answer, error) {
	s := wire.NewScanner(b)
	var a answer
	if s.Peek() == '[' {
		s.Next()
	}
	if s.Peek() != '{' {
		return a, s.Fail()
	}
	err := s.Object(func(key string) error { return a.member(s, key) })
	a.more = err == nil && s.Peek() == '{'
	return a, err
}

// member reads one member of the outermost object.
func (a *answer) member(s *wire.Scanner, key string) error {
	switch key {
	case "choices":
		return a.readChoices(s)
	case "usage":
		if s.Peek() == '{' {
			return a.usage.Read(s)
		}
	case "model":
		if s.Peek() == '"' {
			t, err := s.Str()
			a.model = t
			return err
		}
	case "message":
		// Some servers answer on this path with their own API's shape: the message without a list around it.
		if s.Peek() == '{' && !a.sawChoices {
			var one answer
			start := s.Pos()
			if err := one.message(s); err != nil {
				return err
			}
			if bytes.Contains(s.Since(start), []byte(`"role"`)) {
				a.sawChoices, a.choices = true, 1
				a.content, a.refusal, a.calls, a.keep = one.content, one.refusal, one.calls, one.keep
			}
			return nil
		}
	case "done_reason":
		if s.Peek() == '"' {
			t, err := s.Str()
			a.finish = t.String()
			return err
		}
	case "prompt_eval_count":
		return wire.Count(s, &a.usage.Input)
	case "eval_count":
		return wire.Count(s, &a.usage.Output)
	case "error":
		raw, err := s.Skip()
		if present(raw) {
			a.failure = raw
		}
		return err
	case "object":
		raw, err := s.Skip()
		if string(raw) == `"error"` {
			a.failure = s.Whole()
		}
		return err
	case "base_resp":
		raw, err := s.Skip()
		var r struct {
			Code int `json:"status_code"`
		}
		if json.Unmarshal(raw, &r) == nil && r.Code != 0 {
			a.failure = raw
		}
		return err
	case "prompt_filter_results", "prompt_annotations", "promptFeedback":
		raw, err := s.Skip()
		if err == nil {
			var squeezed bytes.Buffer
			if json.Compact(&squeezed, raw) == nil {
				raw = squeezed.Bytes()
			}
			a.filtered = a.filtered || bytes.Contains(raw, []byte(`"filtered":true`)) || bytes.Contains(raw, []byte(`"blockReason"`))
		}
		return err
	}
	_, err := s.Skip()
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

func (a *answer) readChoices(s *wire.Scanner) error {
	switch s.Peek() {
	case '{':
		a.sawChoices = true
		return a.choice(s)
	case '[':
		a.sawChoices = true
		return s.Array(func() error {
			if s.Peek() == '{' {
				return a.choice(s)
			}
			_, err := s.Skip()
			return err
		})
	}
	_, err := s.Skip()
	return err
}

// choice reads one choice. We ask for one, so that a second one is the rest of the first: some gateways put the
// text into one choice and the calls into the next.
func (a *answer) choice(s *wire.Scanner) error {
	var c answer
	piece := false
	err := s.Object(func(key string) error {
		switch key {
		case "message", "delta":
			switch s.Peek() {
			case '{':
				if key == "message" && piece && !c.empty() {
					break // the piece is what is new
				}
				piece, c.whole = key == "delta", key == "message"
				return c.message(s)
			case '"':
				return c.readContent(s)
			}
		case "text":
			if s.Peek() == '"' && c.content.Empty() {
				return c.readContent(s)
			}
		case "finish_reason":
			if s.Peek() == '"' {
				t, err := s.Str()
				c.finish = t.String()
				return err
			}
		case "index":
			raw, err := s.Skip()
			c.index, _ = strconv.Atoi(string(raw))
			return err
		case "error":
			raw, err := s.Skip()
			if present(raw) {
				c.failure = raw
			}
			return err
		}
		_, err := s.Skip()
		return err
	})
	if err != nil {
		return err
	}
	a.choices++
	if a.choices == 1 {
		a.finish, a.content, a.refusal, a.calls, a.keep, a.index, a.whole = c.finish, c.content, c.refusal, c.calls, c.keep, c.index, c.whole
		a.piece, a.hidden = piece && !c.whole, c.hidden
	} else {
		if a.content.Empty() {
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

// empty says that nothing was said.
func (a *answer) empty() bool { return a.content.Empty() && a.refusal.Empty() && len(a.calls) == 0 }

// message reads an assistant message, whole or a stream's delta.
func (a *answer) message(s *wire.Scanner) error {
	return s.Object(func(key string) error {
		switch key {
		case "content":
			return a.readContent(s)
		case "tool_calls":
			a.calls = nil
			switch s.Peek() {
			case '[':
				return s.Array(func() error { return a.call(s) })
			case '{':
				return a.call(s)
			}
		case "function_call":
			if s.Peek() == '{' && len(a.calls) == 0 {
				return a.call(s)
			}
		case "refusal":
			if s.Peek() == '"' {
				t, err := s.Str()
				a.refusal = t
				return err
			}
		case "reasoning_content":
			if s.Peek() == '"' {
				t, err := s.Str()
				a.keep.reasoning = t
				return err
			}
		case "reasoning":
			raw, err := s.Skip()
			a.hidden = len(raw)
			return err
		case "reasoning_details":
			raw, err := s.Skip()
			if len(raw) > 2 && raw[0] == '[' {
				a.keep.details = [][]byte{raw}
			}
			return err
		case "thinking_blocks":
			raw, err := s.Skip()
			if len(raw) > 2 && raw[0] == '[' {
				a.keep.blocks = [][]byte{raw}
			}
			return err
		case "extra_content":
			raw, err := s.Skip()
			if len(raw) > 2 && raw[0] == '{' {
				a.keep.extra = raw
			}
			return err
		}
		_, err := s.Skip()
		return err
	})
}

// call reads one tool call, in the standard's shape or without the function object around name and arguments.
func (a *answer) call(s *wire.Scanner) error {
	if s.Peek() != '{' {
		_, err := s.Skip()
		return err
	}
	c := call{index: -1}
	inside := false
	var member func(key string) error
	member = func(key string) error {
		switch key {
		case "function":
			// Not deeper than the protocol has it: a hostile body must not choose how deep we go.
			if s.Peek() == '{' && !inside {
				inside = true
				err := s.Object(member)
				inside = false
				return err
			}
		case "id", "name":
			t, err := scalar(s)
			if key == "id" {
				c.id = t
			} else if !t.Empty() {
				c.name = t
			}
			return err
		case "arguments", "parameters", "input":
			t, err := arguments(s)
			if !t.Empty() {
				c.args = t
			}
			return err
		case "index":
			raw, err := s.Skip()
			if n, bad := strconv.Atoi(string(raw)); bad == nil {
				c.index = n
			}
			return err
		case "extra_content":
			raw, err := s.Skip()
			if len(raw) > 2 && raw[0] == '{' {
				c.extra = raw
			}
			return err
		}
		_, err := s.Skip()
		return err
	}
	if err := s.Object(member); err != nil {
		return err
	}
	a.calls = append(a.calls, c)
	return nil
}

// scalar reads a string; a number stands for its digits, anything else for nothing.
func scalar(s *wire.Scanner) (wire.Text, error) {
	c := s.Peek()
	if c == '"' {
		return s.Str()
	}
	raw, err := s.Skip()
	if err != nil || c == '{' || c == '[' || c == 'n' {
		return wire.Text{}, err
	}
	return wire.TextOf(conversation.Clean(string(raw))), nil
}

// arguments reads a call's arguments: text, or JSON that should have been text.
func arguments(s *wire.Scanner) (wire.Text, error) {
	if s.Peek() == '"' {
		return s.Str()
	}
	raw, err := s.Skip()
	if err != nil || string(raw) == "null" {
		return wire.Text{}, err
	}
	var squeezed bytes.Buffer
	if json.Compact(&squeezed, raw) == nil {
		raw = squeezed.Bytes()
	}
	return wire.TextOf(conversation.CleanJSON(string(raw))), nil
}
