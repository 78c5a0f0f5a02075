package fakemodel

import (
	"encoding/json"
	"net/http"
)

// Request is what arrived, decoded as far as the tests care; Body is the whole of it.
type Request struct {
	Number   int // 1 is the first request that the server got
	Path     string
	Header   http.Header
	Body     []byte
	Model    string
	Messages []Message
	Tools    []Tool
}

// Message is one message of the conversation as it was sent.
type Message struct {
	Role       string         `json:"role"`
	Content    string         `json:"-"`
	RawContent any            `json:"content"`
	ToolCalls  []SentToolCall `json:"tool_calls"`
	ToolCallID string         `json:"tool_call_id"`
}

// SentToolCall is a call that an earlier reply asked for, as the client sends it back.
type SentToolCall struct {
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// Tool is one tool that the client offers.
type Tool struct {
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// Offers says whether the request offers that tool.
func (r Request) Offers(tool string) bool {
	for _, t := range r.Tools {
		if t.Function.Name == tool {
			return true
		}
	}
	return false
}

// LastUser is the text of the newest user message.
func (r Request) LastUser() string {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if r.Messages[i].Role == "user" {
			return r.Messages[i].Content
		}
	}
	return ""
}

// Exchange is a call of the current turn together with what it came back with.
type Exchange struct {
	Tool      string
	Arguments string
	Result    string
}

// Turn is what happened since the newest user message: every call with its result, in order.
func (r Request) Turn() []Exchange {
	start := 0
	for i, m := range r.Messages {
		if m.Role == "user" {
			start = i
		}
	}
	results := map[string]string{}
	for _, m := range r.Messages[start:] {
		if m.Role == "tool" {
			results[m.ToolCallID] = m.Content
		}
	}
	var turn []Exchange
	for _, m := range r.Messages[start:] {
		for _, c := range m.ToolCalls {
			turn = append(turn, Exchange{c.Function.Name, c.Function.Arguments, results[c.ID]})
		}
	}
	return turn
}

func decode(body []byte) (Request, error) {
	var in struct {
		Model    string    `json:"model"`
		Messages []Message `json:"messages"`
		Tools    []Tool    `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return Request{}, err
	}
	for i := range in.Messages {
		in.Messages[i].Content = contentText(in.Messages[i].RawContent)
	}
	return Request{Body: body, Model: in.Model, Messages: in.Messages, Tools: in.Tools}, nil
}

// contentText reads both forms of a message's content: a string, or an array of parts.
func contentText(v any) string {
	switch c := v.(type) {
	case string:
		return c
	case []any:
		text := ""
		for _, part := range c {
			if m, ok := part.(map[string]any); ok {
				if t, ok := m["text"].(string); ok {
					text += t
				}
			}
		}
		return text
	}
	return ""
}
