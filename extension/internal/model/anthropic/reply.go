package anthropic

import (
	"strings"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/wire"
)

// message is a reply, whole or as far as a stream has brought it.
type message struct {
	model   wire.Text
	stop    string
	blocks  []block
	failure []byte
	saw     bool // there was a content, or a stream's beginning
	usage   usage
	cut     bool // by us, because it is more than may be paid for
	size    int  // of what arrived until then
}

// block is one content block.
type block struct {
	index     int // in a stream
	kind      string
	text      wire.Text // of text; of thinking, the thought
	signature wire.Text
	data      wire.Text // of redacted thinking
	call      wire.Call
}

// usage holds the counts by the API's names: what was read from or written to the cache is not in input.
type usage struct{ input, written, cached, output *int64 }

func (u usage) tokens() conversation.Usage {
	out := conversation.Usage{Output: u.output, Cached: u.cached}
	if u.input != nil {
		n := *u.input
		for _, more := range []*int64{u.written, u.cached} {
			if more != nil {
				n = max(n, n+*more)
			}
		}
		out.Input = &n
	}
	return out
}

func (u *usage) read(s *wire.Scanner) error {
	if s.Peek() != '{' {
		_, err := s.Skip()
		return err
	}
	return s.Object(func(key string) error {
		switch key {
		case "input_tokens":
			return wire.Count(s, &u.input)
		case "cache_creation_input_tokens":
			return wire.Count(s, &u.written)
		case "cache_read_input_tokens":
			return wire.Count(s, &u.cached)
		case "output_tokens":
			return wire.Count(s, &u.output)
		}
		_, err := s.Skip()
		return err
	})
}

// read reads one member of a message.
func (m *message) read(s *wire.Scanner, key string) error {
	switch key {
	case "model":
		return s.StrIf(&m.model)
	case "stop_reason":
		var t wire.Text
		err := s.StrIf(&t)
		if w := t.String(); w != "" {
			m.stop = w
		}
		return err
	case "usage":
		return m.usage.read(s)
	case "error":
		raw, err := s.Skip()
		m.failure = raw
		return err
	case "content":
		m.saw = true
		switch s.Peek() {
		case '"':
			b := block{kind: "text"}
			err := s.StrIf(&b.text)
			m.blocks = append(m.blocks, b)
			return err
		case '[':
			return s.Array(func() error {
				b, err := readBlock(s)
				m.blocks = append(m.blocks, b)
				return err
			})
		}
	}
	_, err := s.Skip()
	return err
}

func readBlock(s *wire.Scanner) (block, error) {
	b := block{index: -1}
	if s.Peek() != '{' {
		_, err := s.Skip()
		return b, err
	}
	err := s.Object(func(key string) error {
		switch key {
		case "type":
			var t wire.Text
			err := s.StrIf(&t)
			b.kind = t.String()
			return err
		case "text", "thinking":
			return s.StrIf(&b.text)
		case "signature":
			return s.StrIf(&b.signature)
		case "data":
			return s.StrIf(&b.data)
		case "id":
			return s.StrIf(&b.call.ID)
		case "name":
			return s.StrIf(&b.call.Name)
		case "input":
			if s.Peek() == '"' {
				return s.StrIf(&b.call.Arguments)
			}
			raw, err := s.Skip()
			if string(raw) != "null" && string(raw) != "{}" {
				b.call.Arguments = wire.TextOf(conversation.CleanJSON(string(raw)))
			}
			return err
		}
		_, err := s.Skip()
		return err
	})
	return b, err
}

// parse reads the body of a reply that is not a stream.
func parse(doc []byte) (message, error) {
	var m message
	s := wire.NewScanner(doc)
	if s.Peek() != '{' {
		return m, s.Fail()
	}
	err := s.Object(func(key string) error { return m.read(s, key) })
	return m, err
}

// kept are the thinking blocks of a reply with calls, remembered for the rest of the run.
type kept struct {
	id     string
	blocks [][]byte
}

// finishes are the API's stop reasons in the words of the loop.
var finishes = map[string]string{
	"end_turn": agent.FinishStop, "stop_sequence": agent.FinishStop, "": agent.FinishStop, "pause_turn": agent.FinishStop,
	"tool_use": agent.FinishToolCalls, "max_tokens": agent.FinishLength, "refusal": agent.FinishContentFilter,
}

// reply turns the message into the loop's terms; typed says that the answer is the input of a call.
func (m *message) reply(n *wire.Names, typed bool) (agent.Reply, kept, *wire.Failure) {
	var k kept
	switch {
	case len(m.failure) > 0 && string(m.failure) != "null":
		return agent.Reply{}, k, wire.InsideSuccess(m.failure)
	case m.stop == "model_context_window_exceeded":
		return agent.Reply{}, k, wire.Overflowed(m.stop)
	}
	r := agent.Reply{Model: fault.Cut(m.model.String(), wire.MaxExcerpt), Usage: m.usage.tokens(), Bytes: m.size}
	var text strings.Builder
	var calls []wire.Call
	var said *wire.Text // in the call that is a typed answer
	for i := range m.blocks {
		switch b := &m.blocks[i]; b.kind {
		case "text":
			text.WriteString(b.text.String())
		case "tool_use":
			if typed {
				text.WriteString(b.call.Arguments.String())
				continue
			}
			if n.Answer != "" && b.call.Name.String() == n.Answer {
				said = &b.call.Arguments
				continue
			}
			calls = append(calls, b.call)
		case "thinking", "redacted_thinking":
			k.blocks = append(k.blocks, b.raw())
		}
	}
	if len(calls) > wire.MaxCalls {
		return agent.Reply{}, k, wire.TooManyCalls(len(calls))
	}
	r.Content, r.ToolCalls = text.String(), n.Calls(calls)
	if said != nil && len(calls) == 0 { // beside calls of tools it is not the answer yet
		r.Content = wire.TidyArguments(*said).String()
	}
	finish, known := finishes[m.stop]
	switch {
	case m.cut || finish == agent.FinishLength:
		r.Finish = agent.FinishLength
	case finish == agent.FinishContentFilter:
		r.Finish = finish
	case len(calls) > 0:
		r.Finish = agent.FinishToolCalls
	case known:
		r.Finish = agent.FinishStop
	default:
		r.Finish = "other"
	}
	if len(r.ToolCalls) > 0 && len(k.blocks) > 0 {
		k.id = r.ToolCalls[0].ID
	}
	return r, k, nil
}

// raw is a thinking block as the API wants it back.
func (b *block) raw() []byte {
	if b.kind == "redacted_thinking" {
		return append(wire.AppendText([]byte(`{"type":"redacted_thinking","data":`), b.data), '}')
	}
	raw := wire.AppendText([]byte(`{"type":"thinking","thinking":`), b.text)
	return append(wire.AppendText(append(raw, `,"signature":`...), b.signature), '}')
}
