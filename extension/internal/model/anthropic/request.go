package anthropic

import (
	"slices"
	"strconv"
	"strings"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/wire"
)

// answerTool is the tool that a typed answer is the call of, for who asks for one without an agent.
const answerTool = "answer"

// spelling is what some models want left out or said otherwise.
type spelling struct {
	plain    bool // the less common keywords of the tools' schemas are left out
	noForce  bool // no tool must be called: the model thinks
	noBudget bool // the reply is not bounded by what the run has left: its thoughts may be as long as that
}

// adapt returns the spelling that a refusal asks for, false when it asks for none that is new.
func (s spelling) adapt(f *wire.Failure, r agent.Request) (spelling, bool) {
	if f.Kind != fault.ModelRejected {
		return s, false
	}
	old := s
	switch {
	case r.MaxOutput > 0 && !s.noBudget && strings.Contains(f.Words, "max_tokens"):
		s.noBudget = true
	case r.Output != nil && !s.noForce && wire.AnyOf(f.Words, "tool_choice", "tool choice", "forces tool use"):
		s.noForce = true
	case (len(r.Tools) > 0 || r.Output != nil) && strings.Contains(f.Words, "schema"):
		s.plain = true
	}
	return s, s != old
}

// writer writes a request's body.
type writer struct {
	b     []byte
	names *wire.Names
	kept  []kept
	s     spelling
	role  string
	open  bool // a message is open
	block int  // blocks in it
}

func (w *writer) body(c *config, r agent.Request) []byte {
	messages := conversation.Repair(r.Messages)
	w.b = append(w.b, `{"model":`...)
	w.b = wire.AppendString(w.b, c.Model)
	most := DefaultMaxTokens
	if c.MaxTokens != nil {
		most = *c.MaxTokens
	}
	if r.MaxOutput > 0 && !w.s.noBudget {
		most = int(min(int64(most), r.MaxOutput))
	}
	w.b = strconv.AppendInt(append(w.b, `,"max_tokens":`...), int64(most), 10)
	if system := wire.SystemText(c.SystemPrompt, messages); strings.TrimSpace(system) != "" {
		w.b = wire.AppendString(append(w.b, `,"system":`...), system)
	}
	w.b = append(w.b, `,"messages":[`...)
	w.messages(messages)
	w.b = append(w.b, ']')
	w.tools(c, r, messages)
	if c.Temperature != nil {
		w.b = append(append(w.b, `,"temperature":`...), c.Temperature.String()...)
	}
	if c.TopP != nil {
		w.b = append(append(w.b, `,"top_p":`...), c.TopP.String()...)
	}
	w.b = wire.AppendMembers(w.b, c.ExtraArgs, "model", "messages", "system", "tools", "tool_choice", "stream", "max_tokens", "temperature", "top_p")
	if c.streams() {
		w.b = append(w.b, `,"stream":true`...)
	}
	return append(w.b, '}')
}

// say begins a block of one side's message. What one side says in several messages in a row is one message: the API wants
// the sides to alternate.
func (w *writer) say(role string) {
	if w.open && w.role != role {
		w.close()
	}
	if !w.open {
		if w.role != "" {
			w.b = append(w.b, ',')
		}
		w.b = append(append(append(w.b, `{"role":"`...), role...), `","content":[`...)
		w.open, w.role, w.block = true, role, 0
	}
	if w.block > 0 {
		w.b = append(w.b, ',')
	}
	w.block++
}

func (w *writer) close() {
	if w.open {
		w.b = append(w.b, `]}`...)
	}
	w.open = false
}

// text writes a block of text. An empty one, or one that ends in white space at the end of a message, is refused.
func (w *writer) text(role, s string) {
	if s = strings.TrimRight(s, " \t\r\n"); strings.TrimSpace(s) == "" {
		return
	}
	w.say(role)
	w.b = wire.AppendString(append(w.b, `{"type":"text","text":`...), s)
	w.b = append(w.b, '}')
}

func (w *writer) messages(all []conversation.Message) {
	ids := map[string]bool{}
	for i := 0; i < len(all); i++ {
		m := &all[i]
		switch m.Role {
		case conversation.User:
			w.text("user", m.Content)
		case conversation.Assistant:
			if w.role == "" {
				w.text("user", "(The beginning of the conversation is not there any more.)")
			}
			if len(m.ToolCalls) == 0 {
				w.text("assistant", m.Content)
				continue
			}
			// Repair has put the results right behind.
			w.round(m, all[i+1:i+1+len(m.ToolCalls)], ids)
			i += len(m.ToolCalls)
		}
	}
	if w.role != "user" {
		w.text("user", "(Go on.)")
	}
	w.close()
}

// round writes an assistant's calls and their results.
func (w *writer) round(m *conversation.Message, results []conversation.Message, ids map[string]bool) {
	for _, k := range w.kept {
		if k.id == m.ToolCalls[0].ID {
			for _, block := range k.blocks {
				w.say("assistant")
				w.b = append(w.b, block...)
			}
		}
	}
	w.text("assistant", m.Content)
	used := make([]string, len(m.ToolCalls))
	for i, c := range m.ToolCalls {
		used[i] = legalID(c.ID, ids)
		w.say("assistant")
		w.b = wire.AppendString(append(w.b, `{"type":"tool_use","id":`...), used[i])
		w.b = wire.AppendString(append(w.b, `,"name":`...), w.names.OnWire(c.Name))
		w.b = append(append(w.b, `,"input":`...), wire.WireArguments(c.Arguments)...)
		w.b = append(w.b, '}')
	}
	for i := range results {
		w.say("user")
		w.b = wire.AppendString(append(w.b, `{"type":"tool_result","tool_use_id":`...), used[i])
		if results[i].Content != "" {
			w.b = wire.AppendString(append(w.b, `,"content":`...), results[i].Content)
		}
		w.b = append(w.b, '}')
	}
}

// legalID is an id that the API takes (letters, digits, _ and -) and that no other call of the request has.
func legalID(id string, used map[string]bool) string {
	legal := len(id) > 0 && len(id) <= 64
	for i := range len(id) {
		legal = legal && wire.LegalByte(id[i])
	}
	if !legal {
		id = "call" + wire.Pad(len(used)+1, 5)
	}
	try := id
	for n := 2; used[try]; n++ {
		try = id[:min(len(id), 56)] + "_" + strconv.Itoa(n)
	}
	used[try] = true
	return try
}

// tools writes the tools on offer, or those of the history when there are none now: the API refuses calls of tools that
// are not declared.
func (w *writer) tools(c *config, r agent.Request, messages []conversation.Message) {
	choice, tools := "", r.Tools
	if c.schema != nil && len(tools) == 0 {
		tools = []agent.ToolSpec{{Name: answerTool, Description: "Gives the answer.", Parameters: c.schema}}
		choice = `,"tool_choice":{"type":"tool","name":"` + answerTool + `"}`
	} else if r.Output != nil {
		// A typed answer is the call of a tool, too; which one the model calls is its choice, but for the last.
		if choice = `,"tool_choice":{"type":"any"}`; r.Forced || len(tools) == 0 {
			choice = `,"tool_choice":{"type":"tool","name":"` + w.names.Answer + `"}`
		}
		if w.s.noForce || c.ExtraArgs["tool_choice"] != nil {
			choice = ""
		}
		tools = append(slices.Clip(tools), w.names.AnswerTool(r.Output))
	} else if len(tools) == 0 {
		if tools = wire.PastTools(messages); len(tools) > 0 {
			choice = `,"tool_choice":{"type":"none"}`
		}
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
		w.b = wire.AppendString(append(w.b, `{"name":`...), w.names.OnWire(t.Name))
		if t.Description != "" {
			w.b = wire.AppendString(append(w.b, `,"description":`...), t.Description)
		}
		w.b = append(append(w.b, `,"input_schema":`...), wire.WithProperties(t, w.s.plain)...)
		w.b = append(w.b, '}')
	}
	w.b = append(append(w.b, ']'), choice...)
}
