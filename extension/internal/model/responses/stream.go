package responses

import (
	"strings"

	"aidb/extension/internal/wire"
)

// event is one event of a stream, as far as it is looked at: the last one has the whole response.
type event struct {
	kind     string
	response response
	has      bool
	item     item
	delta    wire.Text
}

func readEvent(data []byte) (event, error) {
	var e event
	s := wire.NewScanner(data)
	if s.Peek() != '{' {
		return e, s.Fail()
	}
	err := s.Object(func(key string) error {
		switch {
		case key == "type":
			return word(s, &e.kind)
		case key == "delta":
			return s.StrIf(&e.delta)
		case key == "item":
			var err error
			e.item, err = readItem(s)
			return err
		case key == "response" && s.Peek() == '{':
			e.has = true
			return s.Object(func(key string) error { return e.response.read(s, key) })
		}
		_, err := s.Skip()
		return err
	})
	return e, err
}

// fold reads a stream into the response that it is. Beyond most bytes (0: no limit) it stops.
func fold(lines wire.Lines, most int64) (response, *wire.Failure) {
	var r response
	var items []item
	var text wire.Text
	var size int64
	ended := false
	_, f := wire.Events(lines, func(name string, data []byte) (bool, *wire.Failure) {
		e, err := readEvent(data)
		if err != nil {
			return false, wire.NotJSON(data, "text/event-stream")
		}
		switch {
		case e.kind == "error" || name == "error" || e.kind == "" && !e.has:
			return false, wire.InsideSuccess(data)
		case e.kind == "response.completed" || e.kind == "response.incomplete" || e.kind == "response.failed":
			r, ended = e.response, true
			if e.kind == "response.failed" && r.failure == nil {
				r.failure = data
			}
			return true, nil
		case e.kind == "response.output_item.done":
			items = append(items, e.item)
		case strings.HasSuffix(e.kind, ".delta"):
			if e.kind == "response.output_text.delta" {
				text = text.Join(e.delta)
			}
			if size += int64(e.delta.Size()); most > 0 && size > most {
				r.cut, ended, r.size = true, true, int(size)
				return true, nil
			}
		}
		return len(items) > 4*wire.MaxCalls, nil
	})
	switch {
	case f != nil:
	case r.cut:
		r.saw, r.items = true, []item{{kind: "message", text: text}}
	case !ended:
		f = wire.Transient("a stream that ends in the middle")
	case len(r.items) == 0:
		// Some servers leave out of the last event what they have sent before.
		r.items = items
	}
	return r, f
}
