package responses

import (
	"slices"
	"strconv"
	"strings"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/wire"
)

// spelling is what some servers and models want left out or said otherwise.
type spelling struct {
	noThoughts bool // no encrypted thoughts: the model has none
	noStore    bool // the server does not know the member
	plain      bool // the less common keywords of the tools' schemas are left out
	noFormat   bool // the schema of a typed answer is left to the words of the instructions
	noForce    bool // an answer that was not valid is not asked for again as the call of a tool
	noBudget   bool // the reply is not bounded by what the run has left
}

// leastOutput is the smallest bound on a reply that the API takes.
const leastOutput = 16

// writer writes a request's body.
type writer struct {
	b     []byte
	names *wire.Names
	kept  []kept
	s     spelling
	items int
}

func (w *writer) body(c *config, r agent.Request) []byte {
	messages := conversation.Repair(r.Messages)
	w.b = append(w.b, `{"model":`...)
	w.b = wire.AppendString(w.b, c.Model)
	if system := wire.SystemText(c.SystemPrompt, messages); strings.TrimSpace(system) != "" {
		w.b = wire.AppendString(append(w.b, `,"instructions":`...), system)
	}
	w.b = append(w.b, `,"input":[`...)
	w.input(messages)
	w.b = append(w.b, ']')
	w.tools(r)
	if n := w.most(c, r.MaxOutput); n > 0 {
		w.b = strconv.AppendInt(append(w.b, `,"max_output_tokens":`...), n, 10)
	}
	if c.Temperature != nil {
		w.b = append(append(w.b, `,"temperature":`...), c.Temperature.String()...)
	}
	if c.TopP != nil {
		w.b = append(append(w.b, `,"top_p":`...), c.TopP.String()...)
	}
	if c.schema != nil && len(r.Tools) == 0 {
		w.b = wire.AppendString(append(w.b, `,"text":{"format":{"type":"json_schema","name":`...), c.name)
		w.b = append(append(w.b, `,"schema":`...), conversation.CleanJSON(string(c.schema))...)
		w.b = append(w.b, `}}`...)
	} else if r.Output != nil && !w.s.noFormat && c.ExtraArgs["text"] == nil {
		w.b = append(w.b, `,"text":{"format":{"type":"json_schema","name":"answer","strict":false,"schema":`...)
		w.b = append(append(w.b, conversation.CleanJSON(string(r.Output))...), `}}`...)
	}
	w.b = wire.AppendMembers(w.b, c.ExtraArgs, "model", "input", "instructions", "tools", "stream", "store", "max_output_tokens", "temperature", "top_p")
	if !w.s.noStore {
		w.b = append(w.b, `,"store":false`...)
		if !w.s.noThoughts && len(r.Tools) > 0 && c.ExtraArgs["include"] == nil {
			w.b = append(w.b, `,"include":["reasoning.encrypted_content"]`...)
		}
	}
	if c.streams() {
		w.b = append(w.b, `,"stream":true`...)
	}
	return append(w.b, '}')
}

// most is how many tokens the reply may have: what the config says, but no more than the run has left. 0: any number.
func (w *writer) most(c *config, left int64) int64 {
	n := int64(0)
	if most := c.most(); most != nil {
		n = int64(*most)
	}
	if left > 0 && !w.s.noBudget && (n == 0 || left < n) {
		return max(left, leastOutput)
	}
	return n
}

func (w *writer) item(s string) {
	if w.items > 0 {
		w.b = append(w.b, ',')
	}
	w.items++
	w.b = append(w.b, s...)
}

func (w *writer) say(role, s string) {
	if strings.TrimSpace(s) == "" {
		return
	}
	w.item(`{"role":"` + role + `","content":`)
	w.b = append(wire.AppendString(w.b, s), '}')
}

func (w *writer) input(all []conversation.Message) {
	ids := map[string]bool{}
	for i := 0; i < len(all); i++ {
		m := &all[i]
		switch m.Role {
		case conversation.User:
			w.say("user", m.Content)
		case conversation.Assistant:
			if len(m.ToolCalls) == 0 {
				w.say("assistant", m.Content)
				continue
			}
			// Repair has put the results right behind.
			w.round(m, all[i+1:i+1+len(m.ToolCalls)], ids)
			i += len(m.ToolCalls)
		}
	}
	if w.items == 0 {
		w.say("user", "(Go on.)")
	}
}

// round writes an assistant's calls and their results.
func (w *writer) round(m *conversation.Message, results []conversation.Message, ids map[string]bool) {
	for _, k := range w.kept {
		if k.id == m.ToolCalls[0].ID && !w.s.noThoughts {
			for _, thought := range k.thoughts {
				w.item(string(thought))
			}
		}
	}
	w.say("assistant", m.Content)
	used := make([]string, len(m.ToolCalls))
	for i, c := range m.ToolCalls {
		used[i] = legalID(c.ID, ids)
		w.item(`{"type":"function_call","call_id":`)
		w.b = wire.AppendString(w.b, used[i])
		w.b = wire.AppendString(append(w.b, `,"name":`...), w.names.OnWire(c.Name))
		w.b = wire.AppendString(append(w.b, `,"arguments":`...), wire.WireArguments(c.Arguments))
		w.b = append(w.b, '}')
	}
	for i := range results {
		w.item(`{"type":"function_call_output","call_id":`)
		w.b = wire.AppendString(w.b, used[i])
		w.b = wire.AppendString(append(w.b, `,"output":`...), results[i].Content)
		w.b = append(w.b, '}')
	}
}

// legalID is an id that the API takes (64 characters at most) and that no other call of the request has.
func legalID(id string, used map[string]bool) string {
	if id == "" || len(id) > 64 {
		id = "call" + wire.Pad(len(used)+1, 5)
	}
	try := id
	for n := 2; used[try]; n++ {
		try = id[:min(len(id), 56)] + "_" + strconv.Itoa(n)
	}
	used[try] = true
	return try
}

func (w *writer) tools(r agent.Request) {
	tools := r.Tools
	if r.Forced && r.Output != nil && w.s.noFormat && !w.s.noForce {
		tools = append(slices.Clip(tools), w.names.AnswerTool(r.Output))
		defer func() {
			w.b = append(append(append(w.b, `,"tool_choice":{"type":"function","name":"`...), w.names.Answer...), `"}`...)
		}()
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
		w.b = wire.AppendString(append(w.b, `{"type":"function","name":`...), w.names.OnWire(t.Name))
		if t.Description != "" {
			w.b = wire.AppendString(append(w.b, `,"description":`...), t.Description)
		}
		// The API's default, strict, refuses schemas with optional members.
		w.b = append(append(w.b, `,"strict":false,"parameters":`...), wire.WithProperties(t, w.s.plain)...)
		w.b = append(w.b, '}')
	}
	w.b = append(w.b, ']')
}
