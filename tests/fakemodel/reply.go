package fakemodel

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// ToolCall is one call that a reply asks for. Arguments is any value that becomes JSON; a string is sent as the argument
// text as it is, so that a test can send text that is not JSON.
type ToolCall struct {
	ID        string `json:"id,omitempty"`
	Name      string `json:"name"`
	Arguments any    `json:"arguments"`
}

// Reply says what one request gets. The zero value is an assistant message without text. The JSON names are those of a
// script file (see LoadScripts).
type Reply struct {
	Content   string     `json:"say,omitempty"`   // the assistant's text
	ToolCalls []ToolCall `json:"calls,omitempty"` // the calls it asks for
	Finish    string     `json:"finish,omitempty"`
	Input     int        `json:"in,omitempty"`  // usage.prompt_tokens; 0 = a guess from the request's size
	Output    int        `json:"out,omitempty"` // usage.completion_tokens; 0 = a guess from the reply's size

	Status  int               `json:"status,omitempty"` // 0 = 200
	Header  map[string]string `json:"header,omitempty"`
	Body    json.RawMessage   `json:"body,omitempty"` // this JSON instead of a completion
	Raw     string            `json:"raw,omitempty"`  // these bytes instead of a completion
	RawType string            `json:"type,omitempty"` // their content type (text/html)

	Delay      time.Duration   `json:"-"`
	DelaySecs  float64         `json:"delay,omitempty"`       // Delay, as a script file writes it
	Hang       bool            `json:"hang,omitempty"`        // never answer: the request ends when the client goes
	Close      bool            `json:"close,omitempty"`       // close the connection before any header
	CloseAfter int             `json:"close_after,omitempty"` // promise the whole body, close after so many bytes of it
	Trickle    time.Duration   `json:"-"`                     // send the body a few bytes at a time, this far apart
	Size       int             `json:"size,omitempty"`        // blow the text up to so many bytes
	Gate       <-chan struct{} `json:"-"`                     // answer when this is closed
}

// Say is a reply with a text.
func Say(text string) Reply { return Reply{Content: text} }

// Call is a reply that asks for one tool call.
func Call(tool string, arguments any) Reply {
	return Reply{ToolCalls: []ToolCall{{Name: tool, Arguments: arguments}}}
}

// Query is a reply that asks for one run_sql_query.
func Query(sql string) Reply { return Call("run_sql_query", map[string]any{"query": sql}) }

// Calls is one reply that asks for all the calls of the given ones.
func Calls(replies ...Reply) Reply {
	var all Reply
	for _, r := range replies {
		all.ToolCalls = append(all.ToolCalls, r.ToolCalls...)
	}
	return all
}

// Fail is an HTTP error in the shape that OpenAI gives it.
func Fail(status int, message string) Reply {
	return Reply{Status: status, Body: mustJSON(map[string]any{
		"error": map[string]any{"message": message, "type": "invalid_request_error", "param": nil, "code": nil},
	})}
}

// HTML is a page where a completion was expected, as a proxy or a login wall sends it.
func HTML(page string) Reply { return Reply{Raw: page, RawType: "text/html; charset=utf-8"} }

func (r Reply) delay() time.Duration {
	if r.Delay > 0 {
		return r.Delay
	}
	return time.Duration(r.DelaySecs * float64(time.Second))
}

// LoadScripts reads a file with one JSON object: model name → array of replies. The name "*" is every other model.
func LoadScripts(file string) (map[string][]Reply, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var scripts map[string][]Reply
	if err := json.Unmarshal(text, &scripts); err != nil {
		return nil, fmt.Errorf("reading scripts from %s: %w", file, err)
	}
	return scripts, nil
}

// mustJSON is for values made in this package, which always marshal.
func mustJSON(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("fakemodel: %v", err))
	}
	return text
}
