package anthropic

import (
	"strconv"

	"aidb/extension/internal/wire"
)

// event is one event of a stream.
type event struct {
	kind    string
	index   int
	message message // of message_start, and what message_delta changes
	block   block   // that begins, or what is added to one
	partial wire.Text
	failure []byte
}

func readEvent(data []byte) (event, error) {
	e := event{index: -1}
	s := wire.NewScanner(data)
	if s.Peek() != '{' {
		return e, s.Fail()
	}
	err := s.Object(func(key string) error {
		object := s.Peek() == '{'
		switch {
		case key == "type":
			var t wire.Text
			err := s.StrIf(&t)
			e.kind = t.String()
			return err
		case key == "index":
			raw, err := s.Skip()
			e.index, _ = strconv.Atoi(string(raw))
			return err
		case key == "message" && object:
			return s.Object(func(key string) error { return e.message.read(s, key) })
		case key == "content_block":
			var err error
			e.block, err = readBlock(s)
			return err
		case key == "delta" && object:
			return e.delta(s)
		case key == "usage":
			return e.message.usage.read(s)
		case key == "error":
			raw, err := s.Skip()
			e.failure = raw
			return err
		}
		_, err := s.Skip()
		return err
	})
	return e, err
}

func (e *event) delta(s *wire.Scanner) error {
	return s.Object(func(key string) error {
		switch key {
		case "text", "thinking":
			return s.StrIf(&e.block.text)
		case "signature":
			return s.StrIf(&e.block.signature)
		case "partial_json":
			return s.StrIf(&e.partial)
		case "stop_reason":
			return e.message.read(s, key)
		}
		_, err := s.Skip()
		return err
	})
}

// fold reads a stream into the message that it is. Beyond most bytes (0: no limit) it stops.
func fold(lines wire.Lines, most int64) (message, *wire.Failure) {
	var m message
	var size int64
	ended := false
	_, f := wire.Events(lines, func(name string, data []byte) (bool, *wire.Failure) {
		e, err := readEvent(data)
		if err != nil {
			return false, wire.NotJSON(data, "text/event-stream")
		}
		if name == "error" || e.kind == "error" {
			if e.failure == nil {
				e.failure = data
			}
			return false, wire.InsideSuccess(e.failure)
		}
		ended = m.add(&e) || ended
		if size += int64(e.block.text.Size() + e.partial.Size()); most > 0 && size > most && !ended {
			// What the beginning counted is not what came.
			m.cut, ended, m.size, m.usage.output = true, true, int(size), nil
		}
		return ended || len(m.blocks) > 4*wire.MaxCalls, nil
	})
	if f == nil && !ended && m.stop == "" {
		f = wire.Transient("a stream that ends in the middle")
	}
	return m, f
}

// add applies an event and says whether it is the last one.
func (m *message) add(e *event) bool {
	switch e.kind {
	case "message_start":
		m.saw, m.model, m.usage = true, e.message.model, e.message.usage
		m.blocks = append(m.blocks, e.message.blocks...)
	case "content_block_start":
		e.block.index = e.index
		m.blocks = append(m.blocks, e.block)
	case "content_block_delta":
		for i := len(m.blocks) - 1; i >= 0; i-- {
			if b := &m.blocks[i]; b.index == e.index {
				b.text, b.signature = b.text.Join(e.block.text), b.signature.Join(e.block.signature)
				b.call.Arguments = b.call.Arguments.Join(e.partial)
				break
			}
		}
	case "message_delta":
		if e.message.stop != "" {
			m.stop = e.message.stop
		}
		for _, p := range []struct{ to, from **int64 }{
			{&m.usage.input, &e.message.usage.input}, {&m.usage.written, &e.message.usage.written},
			{&m.usage.cached, &e.message.usage.cached}, {&m.usage.output, &e.message.usage.output},
		} {
			if *p.from != nil {
				*p.to = *p.from
			}
		}
	case "message_stop":
		return true
	}
	return false
}
