package anthropic

import (
	"context"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/wire"
)

// Provider opens models. One per process; safe for concurrent use.
type Provider struct{ transport *wire.Transport }

// NewProvider returns a provider.
func NewProvider(t *wire.Transport) *Provider { return &Provider{transport: t} }

// Open returns the model, for one run.
func (p *Provider) Open(ref agent.ModelRef, cred wire.Credentials, gate wire.Gate) (agent.Model, error) {
	c, err := parseConfig(ref.Config)
	if err != nil {
		return nil, wire.CannotBeUsed(ref.Name, err)
	}
	line, err := p.transport.Line(wire.Opening{
		URL: c.endpoint, Model: c.Model, Credentials: cred, KeyHeader: "X-Api-Key", TLS: c.TLS, Limits: c.limits(), Gate: gate,
	})
	if err != nil {
		return nil, wire.CannotBeUsed(ref.Name, err)
	}
	return &Model{line: line, config: c}, nil
}

// Model is one model for one run; it implements agent.Model.
type Model struct {
	line    *wire.Line
	config  *config
	learned wire.Learned[spelling, kept]
}

// bytesPerToken is the rule of thumb for what has not been counted.
const bytesPerToken = 4

// Complete implements agent.Model.
func (m *Model) Complete(ctx context.Context, r agent.Request) (agent.Reply, error) {
	return m.complete(ctx, m.config, r)
}

func (m *Model) complete(ctx context.Context, c *config, r agent.Request) (agent.Reply, error) {
	n := wire.NewNames(r)
	write := func(s spelling) []byte {
		w := writer{names: n, kept: m.learned.Kept(), s: s}
		return w.body(c, r)
	}
	spelt := m.learned.Spelling()
	body := write(spelt)
	if int64(len(body)) > m.line.MaxBodyBytes() {
		return agent.Reply{}, m.line.TooLarge()
	}
	typed := c.schema != nil && len(r.Tools) == 0
	var reply agent.Reply
	retried, err := m.line.Do(ctx, int64(len(body)/bytesPerToken), func(ctx context.Context) (int64, *wire.Failure) {
		var k kept
		f := m.line.Post(ctx, c.endpoint, body, func(a *wire.Answer) (f *wire.Failure) {
			reply, k, f = read(a, n, typed, wire.ReadAtMost(r.MaxOutput))
			return f
		}, "Anthropic-Version", version)
		if f == nil && k.id != "" {
			m.learned.Keep(k)
		}
		return reply.Usage.Total(), f
	}, func(f *wire.Failure) bool {
		next, ok := spelt.adapt(f, r)
		if !ok {
			return false
		}
		body, spelt = write(next), next
		m.learned.Spell(next)
		return true
	})
	if err != nil {
		return agent.Reply{}, err
	}
	reply.Retries = retried
	return reply, nil
}

// read reads a reply, whole or as a stream.
func read(a *wire.Answer, n *wire.Names, typed bool, most int64) (agent.Reply, kept, *wire.Failure) {
	if a.IsStream() {
		m, f := fold(a.Lines, most)
		if f != nil {
			return agent.Reply{}, kept{}, f
		}
		return m.reply(n, typed)
	}
	body, f := a.All()
	if f != nil {
		return agent.Reply{}, kept{}, f
	}
	return whole(body, a.Header().Get("Content-Type"), n, typed)
}

// whole reads a body that is not a stream.
func whole(body []byte, kind string, n *wire.Names, typed bool) (agent.Reply, kept, *wire.Failure) {
	doc := wire.TrimLead(body)
	if len(doc) == 0 {
		return agent.Reply{}, kept{}, wire.Transient("an empty body")
	}
	m, err := parse(doc)
	switch {
	case err == wire.ErrTruncated:
		return agent.Reply{}, kept{}, wire.Transient("JSON that ends in the middle: " + wire.FirstWords(doc))
	case err != nil:
		return agent.Reply{}, kept{}, wire.NotJSON(body, kind)
	case !m.saw && m.failure == nil:
		return agent.Reply{}, kept{}, wire.Transient("a reply without content: " + wire.FirstWords(doc))
	}
	return m.reply(n, typed)
}

// Validate finds out whether the server can be reached and accepts the credentials.
func (m *Model) Validate(ctx context.Context) error {
	return m.line.Probe(ctx, m.config.models, func(ctx context.Context) error {
		c, one := *m.config, 1
		c.MaxTokens = &one
		_, err := m.complete(ctx, &c, agent.Request{Messages: []conversation.Message{{Role: conversation.User, Content: "ping"}}})
		return err
	}, "Anthropic-Version", version)
}

var _ agent.Model = (*Model)(nil)
