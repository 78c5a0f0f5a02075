package responses

import (
	"encoding/json"
	"strings"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/wire"
)

// response is a reply.
type response struct {
	model   wire.Text
	status  string
	why     string // incomplete_details.reason
	items   []item
	saw     bool // there was an output
	failure []byte
	usage   wire.Usage
	cut     bool // by us, because it is more than may be paid for
	size    int  // of what arrived until then
}

// item is one of the output.
type item struct {
	kind    string
	text    wire.Text
	refusal wire.Text
	call    wire.Call
	thought []byte // a reasoning item that may be sent back
}

func word(s *wire.Scanner, to *string) error {
	var t wire.Text
	err := s.StrIf(&t)
	*to = t.String()
	return err
}

// read reads one member of a response.
func (r *response) read(s *wire.Scanner, key string) error {
	switch key {
	case "model":
		return s.StrIf(&r.model)
	case "status":
		return word(s, &r.status)
	case "incomplete_details":
		if s.Peek() == '{' {
			return s.Object(func(key string) error {
				if key == "reason" {
					return word(s, &r.why)
				}
				_, err := s.Skip()
				return err
			})
		}
	case "error":
		raw, err := s.Skip()
		if string(raw) != "null" {
			r.failure = raw
		}
		return err
	case "usage":
		if s.Peek() == '{' {
			return r.usage.Read(s)
		}
	case "output":
		if s.Peek() == '[' {
			r.saw = true
			return s.Array(func() error {
				i, err := readItem(s)
				r.items = append(r.items, i)
				return err
			})
		}
	}
	_, err := s.Skip()
	return err
}

func readItem(s *wire.Scanner) (item, error) {
	var i item
	if s.Peek() != '{' {
		_, err := s.Skip()
		return i, err
	}
	start, encrypted := s.Pos(), false
	err := s.Object(func(key string) error {
		switch key {
		case "type":
			return word(s, &i.kind)
		case "call_id":
			return s.StrIf(&i.call.ID)
		case "name":
			return s.StrIf(&i.call.Name)
		case "arguments":
			if s.Peek() == '"' {
				return s.StrIf(&i.call.Arguments)
			}
			raw, err := s.Skip()
			if string(raw) != "null" {
				i.call.Arguments = wire.TextOf(conversation.CleanJSON(string(raw)))
			}
			return err
		case "encrypted_content":
			encrypted = s.Peek() == '"'
		case "content":
			if s.Peek() == '[' {
				return s.Array(func() error { return i.part(s) })
			}
			return s.StrIf(&i.text)
		}
		_, err := s.Skip()
		return err
	})
	if raw := s.Since(start); err == nil && i.kind == "reasoning" && encrypted && json.Valid(raw) {
		i.thought = []byte(conversation.CleanJSON(string(raw)))
	}
	return i, err
}

// part reads a content part of a message.
func (i *item) part(s *wire.Scanner) error {
	if s.Peek() != '{' {
		_, err := s.Skip()
		return err
	}
	kind := ""
	var text wire.Text
	err := s.Object(func(key string) error {
		switch key {
		case "type":
			return word(s, &kind)
		case "text", "refusal":
			return s.StrIf(&text)
		}
		_, err := s.Skip()
		return err
	})
	switch kind {
	case "output_text", "text", "":
		i.text = i.text.Join(text)
	case "refusal":
		i.refusal = text
	}
	return err
}

// parse reads the body of a reply that is not a stream.
func parse(doc []byte) (response, error) {
	var r response
	s := wire.NewScanner(doc)
	if s.Peek() != '{' {
		return r, s.Fail()
	}
	err := s.Object(func(key string) error { return r.read(s, key) })
	return r, err
}

// kept are the thoughts of a reply with calls, remembered for the rest of the run.
type kept struct {
	id       string
	thoughts [][]byte
}

// reply turns the response into the loop's terms.
func (r *response) reply(n *wire.Names) (agent.Reply, kept, *wire.Failure) {
	var k kept
	if r.failure != nil {
		return agent.Reply{}, k, wire.InsideSuccess(r.failure)
	}
	out := agent.Reply{Model: fault.Cut(r.model.String(), wire.MaxExcerpt), Usage: r.usage.Tokens(), Bytes: r.size}
	var text strings.Builder
	var calls []wire.Call
	var said *wire.Text // in the call that is a typed answer
	refusal := ""
	for i := range r.items {
		switch it := &r.items[i]; it.kind {
		case "message":
			text.WriteString(it.text.String())
			if no := it.refusal.String(); no != "" {
				refusal = no
			}
		case "function_call":
			if n.Answer != "" && it.call.Name.String() == n.Answer {
				said = &it.call.Arguments
				continue
			}
			calls = append(calls, it.call)
		case "reasoning":
			if it.thought != nil {
				k.thoughts = append(k.thoughts, it.thought)
			}
		}
	}
	if len(calls) > wire.MaxCalls {
		return agent.Reply{}, k, wire.TooManyCalls(len(calls))
	}
	out.Content, out.ToolCalls = text.String(), n.Calls(calls)
	if said != nil && len(calls) == 0 { // beside calls of tools it is not the answer yet
		out.Content = wire.TidyArguments(*said).String()
	}
	if refusal != "" && conversation.Empty(out.Content, out.ToolCalls) {
		return agent.Reply{}, k, &wire.Failure{Kind: fault.ModelRefused, Cause: fault.New(fault.ModelRefused,
			"the model refused to answer: %s", fault.Cut(wire.OneLine(refusal), wire.MaxText))}
	}
	switch {
	case r.status == "incomplete" && r.why == "content_filter":
		out.Finish = agent.FinishContentFilter
	case r.cut || r.status == "incomplete":
		out.Finish = agent.FinishLength
	case len(calls) > 0:
		out.Finish = agent.FinishToolCalls
	default:
		out.Finish = agent.FinishStop
	}
	if len(out.ToolCalls) > 0 && len(k.thoughts) > 0 {
		k.id = out.ToolCalls[0].ID
	}
	return out, k, nil
}
