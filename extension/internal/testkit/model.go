package testkit

import (
	"context"
	"slices"
	"sync"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
)

// Turn is one scripted answer of a Model: what Do does (if anything) and then Reply or Err.
type Turn struct {
	Reply agent.Reply
	Err   error
	Do    func(ctx context.Context) error
}

// Say is a turn that answers with a text.
func Say(text string) Turn {
	return Turn{Reply: agent.Reply{Content: text, Finish: agent.FinishStop, Model: "scripted"}}
}

// Use is a turn that asks for tool calls.
func Use(calls ...conversation.ToolCall) Turn {
	return Turn{Reply: agent.Reply{ToolCalls: calls, Finish: agent.FinishToolCalls, Model: "scripted"}}
}

// Fail is a turn that fails.
func Fail(err error) Turn { return Turn{Err: err} }

// Tokens returns the turn with a usage.
func (t Turn) Tokens(in, out int64) Turn {
	t.Reply.Usage = conversation.Usage{Input: &in, Output: &out}
	return t
}

// Finish returns the turn with another finish reason.
func (t Turn) Finish(reason string) Turn {
	t.Reply.Finish = reason
	return t
}

// Call is a tool call without an id; the loop gives it one.
func Call(name, arguments string) conversation.ToolCall {
	return conversation.ToolCall{Name: name, Arguments: arguments}
}

// Model answers with its turns in order; the last one repeats. It keeps a copy of every request.
type Model struct {
	mu       sync.Mutex
	turns    []Turn
	next     int
	requests []agent.Request
}

// NewModel returns a model with a script.
func NewModel(turns ...Turn) *Model { return &Model{turns: turns} }

// Complete plays the next turn.
func (m *Model) Complete(ctx context.Context, r agent.Request) (agent.Reply, error) {
	m.mu.Lock()
	m.requests = append(m.requests, agent.Request{
		Messages: slices.Clone(r.Messages), Tools: slices.Clone(r.Tools), Output: r.Output, Forced: r.Forced, MaxOutput: r.MaxOutput,
	})
	if len(m.turns) == 0 {
		m.mu.Unlock()
		return agent.Reply{}, fault.New(fault.ModelRejected, "the script is empty")
	}
	t := m.turns[min(m.next, len(m.turns)-1)]
	m.next++
	m.mu.Unlock()
	if t.Do != nil {
		if err := t.Do(ctx); err != nil {
			return agent.Reply{}, err
		}
	}
	return t.Reply, t.Err
}

// Script gives the model another script, which begins anew.
func (m *Model) Script(turns ...Turn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turns, m.next = turns, 0
}

// Requests returns what was asked so far.
func (m *Model) Requests() []agent.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// Models opens Named models, and Model for every other name, or fails.
type Models struct {
	Model agent.Model
	Named map[string]agent.Model
	Err   error
}

// Open returns the model.
func (m Models) Open(_ context.Context, ref agent.ModelRef) (agent.Model, error) {
	if named := m.Named[ref.Name]; named != nil {
		return named, m.Err
	}
	return m.Model, m.Err
}
