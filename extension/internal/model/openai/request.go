package openai

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/wire"
)

// writer writes a request's body. The history that it is given is true, and stays so; what providers demand of a
// history is arranged here, on the copy that goes over the wire, each time anew.
type writer struct {
	b      []byte
	d      dialect
	names  *wire.Names
	kept   []kept
	sent   sent
	ids    map[string]bool
	number int
}

// body writes the request: the model, the messages, the tools and what the config sets, nothing else.
func (w *writer) body(c *config, r agent.Request) []byte {
	messages := conversation.Repair(r.Messages)
	size := 1024 + len(c.fixed) + len(c.SystemPrompt)
	for i := range messages {
		size += 64 + messages[i].Size() + messages[i].Size()/16 + 96*len(messages[i].ToolCalls)
	}
	for i := range r.Tools {
		size += 128 + len(r.Tools[i].Description) + len(r.Tools[i].Parameters)
	}
	w.b = append(make([]byte, 0, size), `{"model":`...)
	w.b = wire.AppendString(w.b, c.Model)
	w.b = append(w.b, `,"messages":[`...)
	w.messages(wire.SystemText(c.SystemPrompt, messages), messages)
	w.b = append(w.b, ']')
	w.sent.force = r.Forced && r.Output != nil && c.forces() && (!c.structures() || w.d.noFormat) && !w.d.noForce
	w.tools(r, messages)
	w.b = append(w.b, c.fixed...)
	if n := w.most(c, r.MaxOutput); n > 0 {
		w.sent.tokens = true
		if w.d.legacyTokens {
			w.b = strconv.AppendInt(append(w.b, `,"max_tokens":`...), n, 10)
		}
		if w.d.modernTokens {
			w.b = strconv.AppendInt(append(w.b, `,"max_completion_tokens":`...), n, 10)
		}
	}
	w.format(c, r.Output)
	w.stream(c)
	return append(w.b, '}')
}

// most is how many tokens the reply may have: what the config says, but no more than the run has left. 0: any number.
func (w *writer) most(c *config, left int64) int64 {
	n := int64(0)
	if c.MaxTokens != nil {
		n = int64(c.MaxTokens.Size)
	}
	if left > 0 && (n == 0 || left < n) && !w.d.noBudget && c.ExtraArgs["max_tokens"] == nil && c.ExtraArgs["max_completion_tokens"] == nil {
		w.sent.budget = true
		return left
	}
	return n
}

// format hands on the schema of a typed answer. Not as a strict one: that is a dialect of its own, which most schemas do not
// speak, and what comes is checked in any case.
func (w *writer) format(c *config, schema json.RawMessage) {
	if schema == nil || !c.structures() || w.d.noFormat || c.ExtraArgs["response_format"] != nil {
		return
	}
	w.sent.format = true
	w.b = append(w.b, `,"response_format":{"type":"json_schema","json_schema":{"name":"answer","strict":false,"schema":`...)
	w.b = append(append(w.b, conversation.CleanJSON(string(schema))...), `}}`...)
}

// stream asks for the answer as it is made: a server that sends into a closed connection stops working, one that answers
// in one piece may not.
func (w *writer) stream(c *config) {
	if !c.streams() || w.d.noStream {
		return
	}
	w.sent.stream = true
	w.b = append(w.b, `,"stream":true`...)
	if c.ExtraArgs["stream_options"] == nil && !w.d.noStreamUsage {
		w.sent.counts = true
		w.b = append(w.b, `,"stream_options":{"include_usage":true}`...)
	}
}

func (w *writer) open(role string) {
	if w.number > 0 {
		w.b = append(w.b, ',')
	}
	w.number++
	w.b = append(w.b, `{"role":"`...)
	w.b = append(w.b, role...)
	w.b = append(w.b, '"')
}

func (w *writer) content(s string) {
	w.b = append(w.b, `,"content":`...)
	w.b = wire.AppendString(w.b, s)
}

// messages writes the history. What one side says in several messages in a row becomes one message: templates of
// open models refuse a conversation that does not alternate.
func (w *writer) messages(system string, all []conversation.Message) {
	if system != "" && !w.d.noSystem {
		w.sent.system = true
		w.open("system")
		w.content(system)
		w.b = append(w.b, '}')
		system = ""
	}
	if w.sent.calls = hasCalls(all); w.sent.calls {
		w.ids = make(map[string]bool)
	}
	lastUser := -1
	for i := range all {
		if all[i].Role == conversation.User {
			lastUser = i
		}
	}
	afterTool := false
	for i := 0; i < len(all); i++ {
		m := &all[i]
		switch m.Role {
		case conversation.User:
			if afterTool {
				w.sent.toolUser = true
				if w.d.bridge {
					w.open("assistant")
					w.content("(The results are noted; the answer follows.)")
					w.b = append(w.b, '}')
				}
			}
			w.open("user")
			w.b = append(w.b, `,"content":"`...)
			if system != "" {
				w.b = append(wire.AppendEscaped(w.b, system), `\n\n`...)
				system = ""
			}
			w.b = wire.AppendEscaped(w.b, m.Content)
			i = w.rest(all, i, conversation.User)
			w.b = append(w.b, `"}`...)
			afterTool = false
		case conversation.Assistant:
			if len(m.ToolCalls) > 0 {
				// Repair has put the results right behind.
				w.round(m, all[i+1:i+1+len(m.ToolCalls)], i > lastUser)
				i += len(m.ToolCalls)
				afterTool = true
				continue
			}
			w.open("assistant")
			w.b = append(w.b, `,"content":"`...)
			w.b = wire.AppendEscaped(w.b, strings.TrimRight(m.Content, " \t\r\n"))
			i = w.rest(all, i, conversation.Assistant)
			w.b = append(w.b, `"}`...)
			afterTool = false
		}
	}
	if system != "" {
		w.open("user")
		w.content(system)
		w.b = append(w.b, '}')
	}
}

// rest adds the texts of the same role that follow the message at i, and returns where they end.
func (w *writer) rest(all []conversation.Message, i int, role conversation.Role) int {
	for j := i + 1; j < len(all); j++ {
		switch m := &all[j]; {
		case m.Role == conversation.System:
		case m.Role == role && len(m.ToolCalls) == 0:
			w.b = append(w.b, `\n\n`...)
			w.b = wire.AppendEscaped(w.b, strings.TrimRight(m.Content, " \t\r\n"))
			i = j
		default:
			return i
		}
	}
	return i
}

func hasCalls(all []conversation.Message) bool {
	return slices.ContainsFunc(all, func(m conversation.Message) bool { return len(m.ToolCalls) > 0 })
}

// round writes an assistant message with calls and their results.
func (w *writer) round(m *conversation.Message, results []conversation.Message, current bool) {
	var back *kept
	if current && !w.d.noExtras {
		back = w.extras(m)
	}
	w.open("assistant")
	switch text := strings.TrimRight(m.Content, " \t\r\n"); {
	case text != "" || !w.d.noEmptyText:
		// Empty rather than null or absent: servers refuse each of the three, the empty string least.
		w.content(text)
		w.sent.empty = w.sent.empty || text == ""
	}
	if back != nil {
		w.sent.extras = true
		w.b = append(w.b, back.members...)
	}
	w.b = append(w.b, `,"tool_calls":[`...)
	ids := make([]string, len(m.ToolCalls))
	for i := range m.ToolCalls {
		c := &m.ToolCalls[i]
		ids[i] = w.id(c.ID)
		if i > 0 {
			w.b = append(w.b, ',')
		}
		w.b = append(w.b, `{"id":`...)
		w.b = wire.AppendString(w.b, ids[i])
		w.b = append(w.b, `,"type":"function","function":{"name":`...)
		w.b = wire.AppendString(w.b, w.names.OnWire(c.Name))
		w.b = append(w.b, `,"arguments":`...)
		w.b = wire.AppendString(w.b, wireArguments(c.Arguments))
		w.b = append(w.b, '}')
		if back != nil && i < len(back.calls) {
			w.b = append(w.b, back.calls[i]...)
		}
		w.b = append(w.b, '}')
	}
	w.b = append(w.b, `]}`...)
	for i := range results {
		w.open("tool")
		w.b = append(w.b, `,"tool_call_id":`...)
		w.b = wire.AppendString(w.b, ids[i])
		text := results[i].Content
		if text == "" {
			w.sent.empty = true
			if w.d.noEmptyText {
				text = "(no output)"
			}
		}
		w.content(text)
		w.b = append(w.b, '}')
	}
}

// id returns the call's id as it goes over the wire: there, and used once only.
func (w *writer) id(id string) string {
	if w.d.shortIDs && !nineAlnum(id) {
		id = "call" + wire.Pad(len(w.ids)+1, 5)
	}
	if id == "" {
		id = "call" + wire.Pad(len(w.ids)+1, 5)
	}
	try := id
	for n := 2; w.ids[try]; n++ {
		if w.d.shortIDs {
			try = "call" + wire.Pad(len(w.ids)+n, 5)
		} else {
			try = id + "_" + strconv.Itoa(n)
		}
	}
	w.ids[try] = true
	return try
}

func nineAlnum(id string) bool {
	if len(id) != 9 {
		return false
	}
	for i := range len(id) {
		if c := id[i]; !wire.LegalByte(c) || c == '_' || c == '-' {
			return false
		}
	}
	return true
}

// wireArguments are a call's arguments as every server takes them: an object. Arguments that never were one are
// an empty object in the history; the result beside them says what was wrong.
func wireArguments(s string) string {
	if s == "{}" || wire.IsObject(s) {
		return s
	}
	return "{}"
}

// extras finds what came with the message in this run.
func (w *writer) extras(m *conversation.Message) *kept {
	for i := range w.kept {
		if w.kept[i].id == m.ToolCalls[0].ID {
			k := &w.kept[i]
			w.kept = w.kept[i+1:]
			return k
		}
	}
	return nil
}

// tools writes the tools on offer; without any, the member is left out.
func (w *writer) tools(r agent.Request, messages []conversation.Message) {
	tools := r.Tools
	w.sent.tools = len(tools) > 0 || w.sent.force
	switch {
	case w.sent.force:
		tools = append(slices.Clip(tools), w.names.AnswerTool(r.Output))
		defer func() {
			w.b = append(append(append(w.b, `,"tool_choice":{"type":"function","function":{"name":"`...), w.names.Answer...), `"}}`...)
		}()
	case len(tools) == 0 && w.d.pastTools:
		tools = pastTools(messages)
	}
	if len(tools) == 0 {
		return
	}
	w.b = append(w.b, `,"tools":[`...)
	for i := range tools {
		t := &tools[i]
		if i > 0 {
			w.b = append(w.b, ',')
		}
		w.b = append(w.b, `{"type":"function","function":{"name":`...)
		w.b = wire.AppendString(w.b, w.names.OnWire(t.Name))
		if t.Description != "" {
			w.b = append(w.b, `,"description":`...)
			w.b = wire.AppendString(w.b, t.Description)
		}
		w.b = append(w.b, `,"parameters":`...)
		w.b = append(w.b, wire.WithProperties(t, w.d.plainSchema)...)
		w.b = append(w.b, `}}`...)
	}
	w.b = append(w.b, ']')
}

// pastTools makes tools of the calls in the history, for servers that want every call's tool declared.
func pastTools(messages []conversation.Message) []agent.ToolSpec {
	var tools []agent.ToolSpec
	for i := range messages {
		for _, c := range messages[i].ToolCalls {
			if !slices.ContainsFunc(tools, func(t agent.ToolSpec) bool { return t.Name == c.Name }) {
				tools = append(tools, agent.ToolSpec{
					Name: c.Name, Description: "Not available any more.", Parameters: json.RawMessage(wire.EmptySchema),
				})
			}
		}
	}
	return tools
}
