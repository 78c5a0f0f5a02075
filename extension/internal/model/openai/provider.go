package openai

import (
	"sync"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/wire"
)

// Provider opens models and owns what was learnt about each server. One per process; safe for concurrent use.
type Provider struct {
	transport *wire.Transport
	mu        sync.Mutex
	dialects  map[string]dialect
}

// NewProvider returns a provider.
func NewProvider(t *wire.Transport) *Provider {
	return &Provider{transport: t, dialects: map[string]dialect{}}
}

// Open returns the model. What it returns is for one run: it remembers, between its Complete calls, what a server
// wants back with the next request of a tool round.
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
	return &Model{provider: p, line: line, config: c}, nil
}

// maxDialects bounds what is remembered of servers; beyond it everything is learnt anew.
const maxDialects = 256

func (p *Provider) dialect(key string, start dialect) dialect {
	p.mu.Lock()
	defer p.mu.Unlock()
	d, known := p.dialects[key]
	if !known {
		return start
	}
	if !d.legacyTokens && !d.modernTokens {
		// Learnt by a model that bounds nothing.
		d.legacyTokens, d.modernTokens = start.legacyTokens, start.modernTokens
	}
	return d
}

func (p *Provider) learn(key string, d dialect) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.dialects) >= maxDialects {
		clear(p.dialects)
	}
	p.dialects[key] = d
}
