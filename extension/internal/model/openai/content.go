package openai

import (
	"encoding/json"
	"strings"

	"aidb/extension/internal/conversation"
	"aidb/extension/internal/wire"
)

// readContent reads a message's content: text, a list of parts, or something that is taken as its own JSON text.
func (a *answer) readContent(s *wire.Scanner) error {
	switch s.Peek() {
	case '"':
		t, err := s.Str()
		a.content = t
		return err
	case '[':
		var all strings.Builder
		err := s.Array(func() error { return a.part(s, &all) })
		a.content = wire.TextOf(all.String())
		return err
	}
	raw, err := s.Skip()
	if err != nil || string(raw) == "null" {
		return err
	}
	var p struct {
		Text *string `json:"text"`
	}
	if json.Unmarshal(raw, &p) == nil && p.Text != nil {
		a.content = wire.TextOf(conversation.Clean(*p.Text))
	} else {
		a.content = wire.TextOf(conversation.Clean(string(raw)))
	}
	return nil
}

// part reads one content part. Only text is kept: a reference, an image or a thought has none to show.
func (a *answer) part(s *wire.Scanner, all *strings.Builder) error {
	switch s.Peek() {
	case '"':
		t, err := s.Str()
		all.WriteString(t.String())
		return err
	case '{':
		kind, body := "", ""
		err := s.Object(func(key string) error {
			if s.Peek() == '"' && (key == "type" || key == "text" || key == "refusal") {
				t, err := s.Str()
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
			_, err := s.Skip()
			return err
		})
		if kind == "" || kind == "text" || kind == "output_text" {
			all.WriteString(body)
		}
		return err
	}
	_, err := s.Skip()
	return err
}
