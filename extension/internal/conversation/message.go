package conversation

import (
	"strings"

	"github.com/google/uuid"
)

// Role is who a message comes from.
type Role string

// The roles, as the models' protocols name them.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// ToolCall is one call that a model asks for. Arguments is the JSON text as it was received (cleaned, see
// CleanJSON); it need not be a JSON object, and need not even be JSON: checking it is the toolbox's business.
type ToolCall struct {
	ID        string
	Name      string
	Arguments string
}

// Message is one message of a conversation. ToolCalls belongs to the assistant, ToolCallID and ToolName to a
// tool's result. ID is that of the record that the message stands in; zero when there is none.
type Message struct {
	ID         uuid.UUID
	Role       Role
	Content    string
	ToolCalls  []ToolCall
	ToolCallID string
	ToolName   string
}

// Size is the number of bytes of text in the message, the basis of token estimates.
func (m Message) Size() int {
	n := len(m.Content)
	for i := range m.ToolCalls {
		n += len(m.ToolCalls[i].Name) + len(m.ToolCalls[i].Arguments)
	}
	return n
}

// Usage is what the provider says a model call cost, in tokens. A nil count means that it did not say.
type Usage struct {
	Input     *int64
	Output    *int64
	Cached    *int64
	Reasoning *int64
}

// Total is the sum of what is known, 0 when nothing is.
func (u Usage) Total() int64 {
	var n int64
	for _, part := range []*int64{u.Input, u.Output} {
		if part != nil && *part > 0 {
			n = max(n, n+*part)
		}
	}
	return n
}

// Empty reports whether a reply says nothing: no calls and no text but white space.
func Empty(content string, calls []ToolCall) bool {
	return len(calls) == 0 && strings.TrimSpace(content) == ""
}
