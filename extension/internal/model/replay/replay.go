// Package replay is the provider replay: a model that answers from a conversation that was had before. Its config is
//
//	{"conversation_id": uuid}
//
// A run is deterministic but for its model, so a conversation that is had again with the recorded replies asks for the
// same, unless something changed: the prompt, a tool, the data, the loop itself. Each request is compared with the one
// that the recording had at that place, and one that differs fails with the difference. What cannot be the same is not
// compared: the instructions (they are not in the log, and are what one changes), ids that are made anew, and secrets,
// which the log does not hold.
package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
)

// Options are what the model is given by its surroundings.
type Options struct {
	// ID is the recorded conversation's, for error texts.
	ID string
	// Redact takes secrets out of texts as was done with the recording.
	Redact func(string) string
}

// Model answers from a recording. A model belongs to one run.
type Model struct {
	options   Options
	records   []conversation.Record
	steps     []step
	summaries []string
}

// step is one request of the recording and what came of it.
type step struct {
	before int // records before it
	tools  []string
	reply  agent.Reply
	failed string
	used   bool
}

// Config reads a model's config.
func Config(config json.RawMessage) (conversationID string, err error) {
	var c struct {
		ConversationID string `json:"conversation_id"`
	}
	if err := json.Unmarshal(config, &c); err != nil || c.ConversationID == "" {
		return "", fault.New(fault.WrongState, "the config of a replay model must name a conversation_id")
	}
	return c.ConversationID, nil
}

// Open returns a model that answers from the log of a conversation, oldest record first.
func Open(records []conversation.Record, options Options) *Model {
	m := &Model{options: options, records: records}
	open := false // the last step has no outcome yet
	for i := range records {
		r := &records[i]
		switch r.Type {
		case conversation.ModelRequest:
			var p struct{ Tools []string }
			_ = json.Unmarshal(r.Request, &p) // without it there are no tools to compare
			m.steps = append(m.steps, step{before: i, tools: p.Tools})
			open = true
		case conversation.ModelResponse:
			if open {
				m.steps[len(m.steps)-1].outcome(r)
				open = false
			}
		case conversation.Failure:
			if open {
				m.steps[len(m.steps)-1].failed = text(r.Error, "the recorded call failed")
				open = false
			}
		case conversation.Compaction:
			var p struct{ Summary string }
			_ = json.Unmarshal(r.Response, &p) // an empty summary is as good as none
			m.summaries = append(m.summaries, p.Summary)
		}
	}
	if open {
		m.steps = m.steps[:len(m.steps)-1] // cut off in the middle: nobody knows what came of it
	}
	return m
}

func text(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func (s *step) outcome(r *conversation.Record) {
	var p struct {
		Contents  string `json:"contents"`
		ToolCalls []struct {
			ID        string `json:"id"`
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"tool_calls"`
		Finish string `json:"finish_reason"`
		Model  string `json:"model"`
		Usage  struct {
			Input, Output, Cached, Reasoning *int64
		} `json:"usage"`
	}
	if r.Response == nil || json.Unmarshal(r.Response, &p) != nil {
		s.failed = text(r.Error, "the recorded call failed")
		return
	}
	s.reply = agent.Reply{Content: p.Contents, Finish: p.Finish, Model: p.Model, Usage: conversation.Usage{
		Input: p.Usage.Input, Output: p.Usage.Output, Cached: p.Usage.Cached, Reasoning: p.Usage.Reasoning}}
	for _, c := range p.ToolCalls {
		s.reply.ToolCalls = append(s.reply.ToolCalls, conversation.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
	}
}

// Complete implements agent.Model.
func (m *Model) Complete(_ context.Context, r agent.Request) (agent.Reply, error) {
	if r.Summary {
		if len(m.summaries) == 0 {
			return agent.Reply{}, m.differs("it asks for a summary, and the recording has none left")
		}
		reply := agent.Reply{Content: m.summaries[0], Finish: agent.FinishStop, Model: "replay"}
		m.summaries = m.summaries[1:]
		return reply, nil
	}
	now := m.seen(r.Messages)
	best, difference := -1, ""
	for i := range m.steps {
		s := &m.steps[i]
		if s.used {
			continue
		}
		then := m.seen(conversation.Rebuild(m.records[:s.before]))
		n, d := compare(then, now)
		if d == "" {
			if d = compareTools(s.tools, r.Tools); d == "" {
				s.used = true
				if s.failed != "" {
					return agent.Reply{}, fault.New(fault.ModelRejected, "%s", s.failed)
				}
				return s.reply, nil
			}
		}
		if n > best {
			best, difference = n, d
		}
	}
	if best < 0 {
		return agent.Reply{}, fault.New(fault.ModelRejected, "the recording of conversation '%s' has no further reply: it ends after %d",
			m.options.ID, len(m.steps))
	}
	return agent.Reply{}, m.differs(difference)
}

func (m *Model) differs(how string) error {
	return fault.New(fault.ModelRejected, "the request differs from the recording of conversation '%s': %s", m.options.ID, how)
}

// part is a message, or a call in one, as it is compared.
type part struct{ what, text string }

// seen is what a request holds, without what cannot be the same.
func (m *Model) seen(messages []conversation.Message) (parts []part) {
	for i := range messages {
		msg := &messages[i]
		if msg.Role == conversation.System {
			continue
		}
		what := string(msg.Role) + " message"
		if msg.Role == conversation.Tool {
			what = "result of " + fault.Name(msg.ToolName)
		}
		if msg.Content != "" || len(msg.ToolCalls) == 0 {
			parts = append(parts, part{what, m.plain(msg.Content)})
		}
		for _, c := range msg.ToolCalls {
			parts = append(parts, part{"call of " + fault.Name(c.Name), m.plain(c.Arguments)})
		}
	}
	return parts
}

var anyID = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`)
})

func (m *Model) plain(s string) string {
	if m.options.Redact != nil {
		s = m.options.Redact(s)
	}
	return anyID().ReplaceAllLiteralString(s, "<id>")
}

// compare returns how many parts are the same and, when not all are, the first difference.
func compare(then, now []part) (same int, difference string) {
	for same < len(then) && same < len(now) && then[same] == now[same] {
		same++
	}
	switch {
	case same == len(then) && same == len(now):
		return same, ""
	case same == len(now):
		return same, fmt.Sprintf("part %d is missing, recorded was a %s %s", same+1, then[same].what, excerpt(then[same].text, 0))
	case same == len(then):
		return same, fmt.Sprintf("part %d was not there, now it is a %s %s", same+1, now[same].what, excerpt(now[same].text, 0))
	}
	a, b := then[same], now[same]
	if a.what != b.what {
		return same, fmt.Sprintf("part %d was a %s %s, now it is a %s %s", same+1, a.what, excerpt(a.text, 0), b.what, excerpt(b.text, 0))
	}
	at := 0
	for at < len(a.text) && at < len(b.text) && a.text[at] == b.text[at] {
		at++
	}
	return same, fmt.Sprintf("part %d, a %s, was %s and now is %s", same+1, a.what, excerpt(a.text, at), excerpt(b.text, at))
}

func compareTools(then []string, now []agent.ToolSpec) string {
	names := make([]string, len(now))
	for i := range now {
		names[i] = now[i].Name
	}
	if slices.Equal(then, names) {
		return ""
	}
	return fmt.Sprintf("the tools were %s, now they are %s", fault.Cut(list(then), 300), fault.Cut(list(names), 300))
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// excerpt quotes the surroundings of a place in a text.
func excerpt(s string, at int) string {
	const before, length = 40, 160
	from := max(0, at-before)
	for from > 0 && !utf8.RuneStart(s[from]) {
		from--
	}
	mark := ""
	if from > 0 {
		mark = "…"
	}
	return `"` + mark + fault.Cut(s[from:], length) + `"`
}
