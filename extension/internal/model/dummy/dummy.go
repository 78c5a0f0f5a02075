// Package dummy is the scripted model: it answers from a list and reaches nothing. It is for trying out and testing
// agents, so it is strict about its script: what it does not understand it refuses, instead of answering something.
//
// A script is {"responses": [{"response": text, "tool_calls": [{"name": text, "arguments": {…}}], "tokens_in": n,
// "tokens_out": n, "error": text}, …], "scope": "backend" | "call"}. Replies are given in order, for each model once
// per server process; the last one repeats. With "scope": "call" every call of an agent begins the script anew.
// ${prompt} in a text, or in a string of an argument, is the prompt of the call.
package dummy

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
)

// promptMark is replaced by the call's prompt.
const promptMark = "${prompt}"

type script struct {
	Responses []response `json:"responses"`
	Scope     string     `json:"scope"`
}

type response struct {
	Response  *string    `json:"response"`
	ToolCalls []toolCall `json:"tool_calls"`
	TokensIn  *int64     `json:"tokens_in"`
	TokensOut *int64     `json:"tokens_out"`
	Error     *string    `json:"error"`
}

type toolCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// parse reads a script; its errors name what is wrong.
func parse(config json.RawMessage) (*script, error) {
	bad := func(format string, args ...any) error {
		return fault.New(fault.InvalidArgument, "config of a dummy model: "+format, args...)
	}
	var s script
	dec := json.NewDecoder(bytes.NewReader(config))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return nil, bad("%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, bad("there is something after the object")
	}
	if len(s.Responses) == 0 {
		return nil, bad("responses must be an array with at least one reply")
	}
	switch s.Scope {
	case "", "backend", "call":
	default:
		return nil, bad("scope must be backend or call")
	}
	for i, r := range s.Responses {
		if r.Response == nil && r.Error == nil && len(r.ToolCalls) == 0 {
			return nil, bad("reply %d has neither response, tool_calls nor error", i+1)
		}
		for _, c := range r.ToolCalls {
			if c.Name == "" {
				return nil, bad("a tool call of reply %d has no name", i+1)
			}
			if a := bytes.TrimSpace(c.Arguments); len(a) > 0 && a[0] != '{' {
				return nil, bad("the arguments of tool %s in reply %d are not an object", fault.Name(c.Name), i+1)
			}
		}
		if (r.TokensIn != nil && *r.TokensIn < 0) || (r.TokensOut != nil && *r.TokensOut < 0) {
			return nil, bad("the tokens of reply %d are negative", i+1)
		}
	}
	return &s, nil
}

// CheckConfig reports what is wrong with a script.
func CheckConfig(config json.RawMessage) error {
	_, err := parse(config)
	return err
}

// Provider remembers how far each script has got in this process.
type Provider struct {
	mu    sync.Mutex
	given map[string]int
}

// NewProvider returns a provider that has given no reply yet.
func NewProvider() *Provider { return &Provider{given: map[string]int{}} }

// Open returns the model for one call of an agent.
func (p *Provider) Open(ref agent.ModelRef) (agent.Model, error) {
	s, err := parse(ref.Config)
	if err != nil {
		return nil, err
	}
	// A model that is deleted and registered anew with another script begins anew.
	return &model{provider: p, key: fmt.Sprintf("%s %x", ref.Name, sha256.Sum256(ref.Config)), name: ref.Name, script: s}, nil
}

type model struct {
	provider *Provider
	key      string
	name     string
	script   *script
	given    int    // with "scope": "call"
	prompt   string // of the call: the newest user message of its first request
	asked    bool
}

// position is the number of replies given before this one.
func (m *model) position() int {
	if m.script.Scope == "call" {
		m.given++
		return m.given - 1
	}
	m.provider.mu.Lock()
	defer m.provider.mu.Unlock()
	n := m.provider.given[m.key]
	m.provider.given[m.key] = n + 1
	return n
}

// Complete implements agent.Model.
func (m *model) Complete(_ context.Context, r agent.Request) (agent.Reply, error) {
	n := m.position()
	answer := m.script.Responses[min(n, len(m.script.Responses)-1)]
	if !m.asked {
		m.prompt, m.asked = lastPrompt(r.Messages), true
	}
	prompt := m.prompt
	if answer.Error != nil {
		return agent.Reply{}, fault.New(fault.ModelRejected, "%s", strings.ReplaceAll(*answer.Error, promptMark, prompt))
	}
	reply := agent.Reply{
		Finish: agent.FinishStop, Model: m.name,
		Usage: conversation.Usage{Input: answer.TokensIn, Output: answer.TokensOut},
	}
	if answer.Response != nil {
		reply.Content = strings.ReplaceAll(*answer.Response, promptMark, prompt)
	}
	for i, c := range answer.ToolCalls {
		arguments, err := fill(c.Arguments, prompt)
		if err != nil {
			return agent.Reply{}, err
		}
		reply.Finish = agent.FinishToolCalls
		reply.ToolCalls = append(reply.ToolCalls, conversation.ToolCall{
			ID: fmt.Sprintf("call_%d_%d", n+1, i+1), Name: c.Name, Arguments: arguments,
		})
	}
	return reply, nil
}

// fill replaces the mark in the strings of the arguments, where it may stand at any depth.
func fill(arguments json.RawMessage, prompt string) (string, error) {
	if len(arguments) == 0 {
		return "{}", nil
	}
	if !bytes.Contains(arguments, []byte("prompt")) {
		return string(arguments), nil
	}
	dec := json.NewDecoder(bytes.NewReader(arguments))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return "", fault.Wrap(err, fault.Internal, "script cannot be read")
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(replace(v, prompt)); err != nil {
		return "", fault.Wrap(err, fault.Internal, "script cannot be written")
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

func replace(v any, prompt string) any {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, promptMark, prompt)
	case []any:
		for i := range v {
			v[i] = replace(v[i], prompt)
		}
	case map[string]any:
		for k := range v {
			v[k] = replace(v[k], prompt)
		}
	}
	return v
}

func lastPrompt(messages []conversation.Message) string {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role == conversation.User {
			return messages[i].Content
		}
	}
	return ""
}
