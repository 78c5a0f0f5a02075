package openai

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"

	goopenai "github.com/sashabaranov/go-openai"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/wire"
)

// Model is one model for one run; it implements agent.Model.
type Model struct {
	provider *Provider
	line     *wire.Line
	config   *config

	mu   sync.Mutex
	kept []kept
}

// maxAdaptations bounds how often one request is spelled anew; see dialect.
const maxAdaptations = 3

// Complete implements agent.Model.
func (m *Model) Complete(ctx context.Context, r agent.Request) (agent.Reply, error) {
	return m.complete(ctx, m.config, r)
}

func (m *Model) complete(ctx context.Context, c *config, r agent.Request) (agent.Reply, error) {
	n := wire.NewNames(r)
	key := c.endpoint + " " + c.Model
	d := m.provider.dialect(key, c.start())
	first, adapted := d, 0
	w := writer{d: d, names: n, kept: m.keptSoFar()}
	body := w.body(c, r)
	if int64(len(body)) > m.line.MaxBodyBytes() {
		return agent.Reply{}, m.line.TooLarge()
	}
	var reply agent.Reply
	retried, err := m.line.Do(ctx, int64(len(body)/bytesPerToken), func(ctx context.Context) (int64, *wire.Failure) {
		var f *wire.Failure
		reply, f = m.try(ctx, body, n, r.MaxOutput)
		return reply.Usage.Total(), f
	}, func(f *wire.Failure) bool {
		next, ok := d.adapt(f, w.sent)
		if !ok || adapted == maxAdaptations {
			return false
		}
		adapted++
		d = next
		w = writer{d: d, names: n, kept: m.keptSoFar()}
		body = w.body(c, r)
		return true
	})
	if err != nil {
		return agent.Reply{}, err
	}
	if d != first {
		m.provider.learn(key, d)
	}
	reply.Retries = retried
	return reply, nil
}

// bytesPerToken is the rule of thumb for what has not been counted.
const bytesPerToken = 4

// try sends the request once. The library gets a request of its own with nothing in it: its checks of what a model
// of some name may be asked are out of date by nature, and it cannot leave members out, or in, as servers want it.
func (m *Model) try(ctx context.Context, body []byte, n *wire.Names, most int64) (agent.Reply, *wire.Failure) {
	x := &exchange{line: m.line, url: m.config.endpoint, body: body, names: n, most: wire.ReadAtMost(most)}
	client := goopenai.NewClientWithConfig(goopenai.ClientConfig{BaseURL: m.config.base, APIType: goopenai.APITypeOpenAI, HTTPClient: x})
	resp, err := client.CreateChatCompletion(ctx, goopenai.ChatCompletionRequest{})
	if err != nil {
		var f *wire.Failure
		if errors.As(err, &f) {
			return agent.Reply{}, f
		}
		return agent.Reply{}, wire.Transient("a reply that cannot be decoded: " + wire.OneLine(err.Error()))
	}
	if len(resp.Choices) == 0 {
		return agent.Reply{}, wire.Transient("a reply without choices")
	}
	choice := &resp.Choices[0]
	reply := agent.Reply{Content: choice.Message.Content, Finish: string(choice.FinishReason), Model: fault.Cut(resp.Model, wire.MaxExcerpt), Usage: x.reply.usage, Bytes: x.reply.bytes}
	if calls := choice.Message.ToolCalls; len(calls) > 0 {
		reply.ToolCalls = make([]conversation.ToolCall, len(calls))
		for i := range calls {
			reply.ToolCalls[i] = conversation.ToolCall{ID: calls[i].ID, Name: calls[i].Function.Name, Arguments: calls[i].Function.Arguments}
		}
		m.keep(x.reply.keep)
	}
	if no := choice.Message.Refusal; no != "" && conversation.Empty(reply.Content, reply.ToolCalls) {
		return agent.Reply{}, &wire.Failure{Kind: fault.ModelRefused, Cause: fault.New(fault.ModelRefused, "the model refused to answer: %s", fault.Cut(wire.OneLine(no), wire.MaxText))}
	}
	return reply, nil
}

func (m *Model) keptSoFar() []kept {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kept
}

func (m *Model) keep(k kept) {
	if len(k.members) == 0 && k.calls == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	// A request that is being written reads the old slice.
	m.kept = append(slices.Clip(m.kept), k)
}

// noList are the answers of servers that have no list of models, or do not show it to every key.
var noList = []int{http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented}

// Validate finds out whether the server can be reached and accepts the credentials. It asks for the list of
// models, which costs nothing, and only where there is none for a reply of one token.
func (m *Model) Validate(ctx context.Context) error {
	none := false
	_, err := m.line.Do(ctx, 0, func(ctx context.Context) (int64, *wire.Failure) {
		f := m.list(ctx)
		if none = f != nil && f.Cause == nil && slices.Contains(noList, f.Status); none {
			f = nil
		}
		return 0, f
	}, nil)
	if err == nil && none {
		return m.ping(ctx)
	}
	return err
}

// list asks for the list of models, once.
func (m *Model) list(ctx context.Context) *wire.Failure {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, m.config.models, nil)
	if err != nil {
		return &wire.Failure{Cause: fault.Wrap(err, fault.InvalidArgument, "url %s cannot be used", fault.Name(wire.WithoutSecrets(m.config.models)))}
	}
	return m.line.Exchange(r, func(a *wire.Answer) *wire.Failure {
		body, f := a.All()
		if f != nil {
			return f
		}
		doc := wire.TrimLead(body)
		if len(doc) == 0 || (doc[0] != '{' && doc[0] != '[') {
			return wire.NotJSON(body, a.Header().Get("Content-Type"))
		}
		read, err := parseAnswer(doc)
		if err == nil && read.failure != nil {
			return wire.InsideSuccess(read.failure)
		}
		return nil
	})
}

// ping asks for one token. What the model says, and even that it says nothing, is good enough.
func (m *Model) ping(ctx context.Context) error {
	c := *m.config
	if c.MaxTokens == nil {
		c.MaxTokens = &maxTokens{Size: 1, Format: "legacy"}
	} else {
		c.MaxTokens = &maxTokens{Size: 1, Format: c.MaxTokens.Format}
	}
	_, err := m.complete(ctx, &c, agent.Request{Messages: []conversation.Message{{Role: conversation.User, Content: "ping"}}})
	if fault.Is(err, fault.ModelRefused) {
		return nil
	}
	return err
}

var _ agent.Model = (*Model)(nil)
