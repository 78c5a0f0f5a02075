package dummy

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
)

// Provider opens dummy models and remembers where their scripts stand. One per process; safe for concurrent use.
type Provider struct {
	mu        sync.Mutex
	positions map[position]int
}

// position is a model with one script: a model whose config is replaced begins anew.
type position struct {
	name   string
	config [sha256.Size]byte
}

// NewProvider returns a provider whose scripts all stand at their beginning.
func NewProvider() *Provider { return &Provider{positions: map[position]int{}} }

// Open returns the model, for one run.
func (p *Provider) Open(ref agent.ModelRef) (agent.Model, error) {
	s, err := parse(ref.Config)
	if err != nil {
		return nil, err
	}
	m := &model{name: ref.Name, script: s}
	if s.Scope == scopeCall {
		m.next = m.nextOfCall
	} else {
		at := position{ref.Name, sha256.Sum256(ref.Config)}
		m.next = func() int { return p.advance(at) }
	}
	return m, nil
}

func (p *Provider) advance(at position) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.positions[at]
	p.positions[at]++
	return n
}

// model is one model for one run.
type model struct {
	name   string
	script *script
	// next is the place of the next reply, however far beyond the last.
	next func() int

	mu     sync.Mutex
	called int
	prompt *string
}

func (m *model) nextOfCall() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.called
	m.called++
	return n
}

// Resume implements agent.Resumer: the run goes on after so many replies.
func (m *model) Resume(replies int) {
	for range replies {
		_ = m.next()
	}
}

// promptOf is the run's prompt: what the user said last when the model was first asked. Later in the run the loop
// may speak as the user, too.
func (m *model) promptOf(messages []conversation.Message) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.prompt == nil {
		said := ""
		for i := range messages {
			if messages[i].Role == conversation.User {
				said = messages[i].Content
			}
		}
		m.prompt = &said
	}
	return *m.prompt
}

// Complete implements agent.Model.
func (m *model) Complete(ctx context.Context, r agent.Request) (agent.Reply, error) {
	if err := ctx.Err(); err != nil {
		kind := fault.Canceled
		if errors.Is(err, context.DeadlineExceeded) {
			kind = fault.Timeout
		}
		return agent.Reply{}, fault.Wrap(err, kind, "the run is over")
	}
	prompt := m.promptOf(r.Messages)
	next := &m.script.Responses[min(m.next(), len(m.script.Responses)-1)]
	if next.Error != nil {
		return agent.Reply{}, fault.New(fault.ModelRejected, "%s", conversation.Clean(fill(*next.Error, prompt)))
	}
	reply := agent.Reply{
		Finish: agent.FinishStop, Model: m.name, Usage: conversation.Usage{Input: next.TokensIn, Output: next.TokensOut},
	}
	if next.Response != nil {
		reply.Content = conversation.Clean(fill(*next.Response, prompt))
	}
	for i := range next.ToolCalls {
		c := &next.ToolCalls[i]
		args, err := c.arguments(prompt)
		if err != nil {
			return agent.Reply{}, fault.Wrap(err, fault.Internal, "arguments of dummy model %s cannot be written", fault.Name(m.name))
		}
		reply.ToolCalls = append(reply.ToolCalls, conversation.ToolCall{
			// Unique in the conversation, which grows with every reply.
			ID: fmt.Sprintf("call_%d_%d", len(r.Messages), i+1), Name: conversation.Clean(*c.Name), Arguments: conversation.CleanJSON(args),
		})
		reply.Finish = agent.FinishToolCalls
	}
	return reply, nil
}
