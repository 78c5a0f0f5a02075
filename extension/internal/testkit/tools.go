package testkit

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
)

// ToolFunc is a tool.
type ToolFunc func(ctx context.Context, arguments string) (agent.Result, error)

// Returns is a tool that always gives the same contents.
func Returns(contents string) ToolFunc {
	return func(context.Context, string) (agent.Result, error) { return agent.Result{Contents: contents}, nil }
}

// Raises is a tool that always fails.
func Raises(text string) ToolFunc {
	return func(context.Context, string) (agent.Result, error) { return agent.Result{Error: text}, nil }
}

// Echo is a tool that gives its arguments back.
func Echo(_ context.Context, arguments string) (agent.Result, error) {
	return agent.Result{Contents: arguments}, nil
}

// Toolboxes opens toolboxes of Tools: those named by the request. It keeps the requests and the calls.
type Toolboxes struct {
	Tools map[string]ToolFunc
	Err   error

	mu       sync.Mutex
	requests []agent.ToolboxRequest
	calls    []conversation.ToolCall
	passes   []string

	// Denied are the tools that the policies refuse, with the text.
	Denied map[string]string
}

// Open returns a toolbox.
func (t *Toolboxes) Open(_ context.Context, r agent.ToolboxRequest) (agent.Toolbox, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requests = append(t.requests, r)
	if t.Err != nil {
		return nil, t.Err
	}
	b := &toolbox{owner: t}
	for _, name := range r.Names {
		b.specs = append(b.specs, agent.ToolSpec{Name: name, Description: "does " + name, Parameters: json.RawMessage(`{"type":"object"}`)})
	}
	return b, nil
}

// Requests returns what was opened so far.
func (t *Toolboxes) Requests() []agent.ToolboxRequest {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.requests)
}

// Calls returns the calls that ran, as "name arguments".
func (t *Toolboxes) Calls() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []string
	for _, c := range t.calls {
		out = append(out, c.Name+" "+c.Arguments)
	}
	return out
}

type toolbox struct {
	owner *Toolboxes
	specs []agent.ToolSpec
}

func (b *toolbox) Specs() []agent.ToolSpec { return b.specs }

func (b *toolbox) Call(ctx context.Context, c conversation.ToolCall, _ int) (agent.Result, error) {
	b.owner.mu.Lock()
	b.owner.calls = append(b.owner.calls, c)
	f := b.owner.Tools[c.Name]
	b.owner.mu.Unlock()
	if f == nil {
		return agent.Result{Error: "no such tool"}, nil
	}
	return f(ctx, c.Arguments)
}

// Pass refuses what is Denied, and keeps what was asked as "probe name" or "pass name".
func (b *toolbox) Pass(_ context.Context, c conversation.ToolCall, probe bool) (*agent.Result, error) {
	b.owner.mu.Lock()
	defer b.owner.mu.Unlock()
	kind := "pass "
	if probe {
		kind = "probe "
	}
	b.owner.passes = append(b.owner.passes, kind+c.Name)
	if text, denied := b.owner.Denied[c.Name]; denied {
		return &agent.Result{Error: text}, nil
	}
	return nil, nil
}

// Passes returns what the policies were asked.
func (t *Toolboxes) Passes() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.passes)
}
