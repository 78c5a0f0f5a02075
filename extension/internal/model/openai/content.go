package openai

import (
	"encoding/json"
	"strings"

	"aidb/extension/internal/conversation"
)

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
