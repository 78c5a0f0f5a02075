package responses

import (
	"context"
	"strings"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
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
		URL: c.endpoint, Model: c.Model, Credentials: cred, TLS: c.TLS, Limits: c.limits(), Gate: gate,
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
	var reply agent.Reply
	retried, err := m.line.Do(ctx, int64(len(body)/bytesPerToken), func(ctx context.Context) (int64, *wire.Failure) {
		var k kept
		f := m.line.Post(ctx, c.endpoint, body, func(a *wire.Answer) (f *wire.Failure) {
			reply, k, f = read(a, n, wire.ReadAtMost(r.MaxOutput))
			return f
		})
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
func read(a *wire.Answer, n *wire.Names, most int64) (agent.Reply, kept, *wire.Failure) {
	if a.IsStream() {
		r, f := fold(a.Lines, most)
		if f != nil {
			return agent.Reply{}, kept{}, f
		}
		return r.reply(n)
	}
	body, f := a.All()
	if f != nil {
		return agent.Reply{}, kept{}, f
	}
	return whole(body, a.Header().Get("Content-Type"), n)
}

// whole reads a body that is not a stream.
func whole(body []byte, kind string, n *wire.Names) (agent.Reply, kept, *wire.Failure) {
	doc := wire.TrimLead(body)
	if len(doc) == 0 {
		return agent.Reply{}, kept{}, wire.Transient("an empty body")
	}
	r, err := parse(doc)
	switch {
	case err == wire.ErrTruncated:
		return agent.Reply{}, kept{}, wire.Transient("JSON that ends in the middle: " + wire.FirstWords(doc))
	case err != nil:
		return agent.Reply{}, kept{}, wire.NotJSON(body, kind)
	case !r.saw && r.failure == nil:
		return agent.Reply{}, kept{}, wire.Transient("a reply without output: " + wire.FirstWords(doc))
	}
	return r.reply(n)
}

// adapt returns the spelling that a refusal asks for, false when it asks for none that is new.
func (s spelling) adapt(f *wire.Failure, r agent.Request) (spelling, bool) {
	if f.Kind != fault.ModelRejected {
		return s, false
	}
	old := s
	switch {
	case r.MaxOutput > 0 && !s.noBudget && strings.Contains(f.Words, "max_output_tokens"):
		s.noBudget = true
	case r.Output != nil && s.noFormat && !s.noForce && wire.AnyOf(f.Words, "tool_choice", "tool choice"):
		s.noForce = true
	case r.Output != nil && !s.noFormat && wire.AnyOf(f.Words, "text.format", "json_schema", "json schema", "structured output"):
		s.noFormat = true
	case wire.AnyOf(f.Words, "encrypted", "include"):
		s.noThoughts = true
	case wire.AnyOf(f.Words, "store"):
		s.noStore = true
	case len(r.Tools) > 0 && wire.AnyOf(f.Words, "schema"):
		s.plain = true
	}
	return s, s != old
}

// Validate finds out whether the server can be reached and accepts the credentials.
func (m *Model) Validate(ctx context.Context) error {
	return m.line.Probe(ctx, m.config.models, func(ctx context.Context) error {
		c, least := *m.config, 16 // the API takes no less
		c.MaxTokens = &least
		_, err := m.complete(ctx, &c, agent.Request{Messages: []conversation.Message{{Role: conversation.User, Content: "ping"}}})
		return err
	})
}

var _ agent.Model = (*Model)(nil)
