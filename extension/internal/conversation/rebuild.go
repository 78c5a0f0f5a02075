package conversation

// NoResult is what stands in for the result of a call of which none was recorded: a crash between the two, or a
// log that was cut. Every provider refuses a history in which a call has no result.
const NoResult = "Tool error: no result was recorded for this call"

// Rebuild makes a conversation's messages from its log, oldest record first. It reads user_prompt, model_response,
// tool_response and compaction; the rest says what happened but not what the model saw. Payloads that cannot be read and replies
// that the loop rejected are skipped. What comes out can be sent to a model whatever the log holds, see Repair.
func Rebuild(records []Record) []Message {
	n := 0
	for i := range records {
		switch records[i].Type {
		case UserPrompt, ModelResponse, ToolResponse:
			n++
		}
	}
	if n == 0 {
		return nil
	}
	messages := make([]Message, 0, n)
	for i := range records {
		if records[i].Type == Compaction {
			messages = compacted(messages, &records[i])
		} else if m, ok := message(&records[i]); ok {
			m.ID = records[i].ID
			messages = append(messages, m)
		}
	}
	return Repair(messages)
}

// message reads one record.
func message(r *Record) (m Message, ok bool) {
	switch r.Type {
	case UserPrompt:
		m.Role = User
		note := ""
		ok := object(r.Request, func(name, value []byte) bool {
			return member(name, value, `"contents"`, &m.Content) && member(name, value, `"note"`, &note)
		})
		m.Content = WithNote(m.Content, note)
		return m, ok

	case ModelResponse:
		m.Role = Assistant
		rejected := ""
		ok := object(r.Response, func(name, value []byte) bool {
			if string(name) != `"tool_calls"` {
				return member(name, value, `"contents"`, &m.Content) && member(name, value, `"rejected"`, &rejected)
			}
			return elements(value, func(value []byte) bool {
				var c ToolCall
				ok := object(value, func(name, value []byte) bool {
					return member(name, value, `"id"`, &c.ID) && member(name, value, `"name"`, &c.Name) &&
						member(name, value, `"arguments"`, &c.Arguments)
				})
				m.ToolCalls = append(m.ToolCalls, c)
				return ok
			})
		})
		return m, ok && rejected == ""

	case ToolResponse:
		m.Role = Tool
		return m, object(r.Request, func(name, value []byte) bool {
			return member(name, value, `"tool_name"`, &m.ToolName) && member(name, value, `"tool_call_id"`, &m.ToolCallID)
		}) && object(r.Response, func(name, value []byte) bool {
			switch {
			case string(value) == "null":
				return true
			case string(name) == `"contents"` && value[0] != '"':
				// Contents that are no string: the JSON itself is what the model saw.
				m.Content = string(value)
				return true
			}
			return member(name, value, `"contents"`, &m.Content) && member(name, value, `"error"`, &m.Content)
		})
	}
	return m, false
}

// member reads a text into its place if its name is the one wanted.
func member(name, value []byte, wanted string, place *string) (ok bool) {
	if string(name) != wanted {
		return true
	}
	*place, ok = text(value)
	return ok
}

// Repair makes a history that every provider accepts: each call of an assistant message is followed by its one
// result, in the order of the calls; calls without a result get NoResult; results without a call and assistant
// messages that say nothing are dropped. A history that is in order is returned as it is, without a copy.
func Repair(messages []Message) []Message {
	if inOrder(messages) {
		return messages
	}
	out := make([]Message, 0, len(messages)+2)
	for i := 0; i < len(messages); i++ {
		m := messages[i]
		if m.Role == Tool || (m.Role == Assistant && Empty(m.Content, m.ToolCalls)) {
			continue
		}
		out = append(out, m)
		if len(m.ToolCalls) == 0 {
			continue
		}
		// The results of these calls are the tool messages up to the next one who speaks.
		end := i + 1
		for end < len(messages) && messages[end].Role == Tool {
			end++
		}
		out = append(out, pair(m.ToolCalls, messages[i+1:end])...)
		i = end - 1
	}
	return out
}

// pair returns one result for each call. Ids decide; where a provider gave the same id twice, the order does.
func pair(calls []ToolCall, results []Message) []Message {
	out := make([]Message, len(calls))
	used := make([]bool, len(results))
	for i, c := range calls {
		out[i] = Message{Role: Tool, Content: NoResult, ToolCallID: c.ID, ToolName: c.Name}
		for j := range results {
			if !used[j] && results[j].ToolCallID == c.ID {
				out[i], used[j] = results[j], true
				break
			}
		}
	}
	return out
}

func inOrder(messages []Message) bool {
	for i := 0; i < len(messages); i++ {
		m := &messages[i]
		if m.Role == Tool || (m.Role == Assistant && Empty(m.Content, m.ToolCalls)) {
			return false
		}
		for j := range m.ToolCalls {
			i++
			if i == len(messages) || messages[i].Role != Tool || messages[i].ToolCallID != m.ToolCalls[j].ID {
				return false
			}
		}
	}
	return true
}
