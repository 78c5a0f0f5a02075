package openai

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/egress"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/smallfile"
)

// DefaultMaxBody bounds a request's and a response's body when the options do not.
const DefaultMaxBody = 8 << 20

// Options are the settings that hold for every model.
type Options struct {
	// Egress says which servers may be reached.
	Egress egress.Policy
	// AllowInsecureTLS permits tls_config.insecure_skip_verify (aidb.allow_insecure_tls).
	AllowInsecureTLS bool
	// Proxy is the server environment's HTTP_PROXY, HTTPS_PROXY and NO_PROXY.
	Proxy egress.Proxy
	// CAFile holds certificates that are trusted besides the system's.
	CAFile string
	// MaxBodyBytes bounds request and response bodies, the latter after decompression (0: DefaultMaxBody).
	MaxBodyBytes int64
	// RequestTimeout bounds each try (0: only the context does).
	RequestTimeout time.Duration
	Retry          Retry
	// OnRetry, when set, is told of every retry before its wait. It must not block.
	OnRetry func(ctx context.Context, e RetryEvent)
	// Now and Random are for tests; nil means the real ones. Random is in [0, 1).
	Now    func() time.Time
	Random func() float64
}

// RetryEvent is a request that failed and will be sent again after Wait. Try counts from 1.
type RetryEvent struct {
	Model string
	Try   int
	Wait  time.Duration
	Err   error
}

// Provider opens models and owns what they share: connections, the limits on concurrent requests, and what was
// learnt about each server. One per process; safe for concurrent use.
type Provider struct {
	mu       sync.Mutex
	options  Options
	clients  map[clientKey]*http.Client
	slots    map[slotKey]chan struct{}
	dialects map[string]dialect
}

// clientKey is what makes two models need different connections. modified notices a CA file that was replaced.
type clientKey struct {
	insecure bool
	ca       string
	modified time.Time
}

type slotKey struct {
	model string
	size  int
}

// NewProvider returns a provider. Options that cannot be used are reported by Open.
func NewProvider(o Options) *Provider {
	p := &Provider{clients: map[clientKey]*http.Client{}, slots: map[slotKey]chan struct{}{}, dialects: map[string]dialect{}}
	p.options = o.withDefaults()
	return p
}

func (o Options) withDefaults() Options {
	if o.MaxBodyBytes <= 0 {
		o.MaxBodyBytes = DefaultMaxBody
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	o.Retry = o.Retry.withDefaults()
	return o
}

// Reconfigure replaces the options for models opened from now on. Connections are kept when nothing that they
// depend on has changed; requests that are under way end under the old options.
func (p *Provider) Reconfigure(o Options) {
	o = o.withDefaults()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !sameConnections(p.options, o) {
		p.dropClients()
	}
	p.options = o
}

func sameConnections(a, b Options) bool {
	return a.Egress.Equal(b.Egress) && a.Proxy == b.Proxy && a.CAFile == b.CAFile
}

// Close closes the connections that are idle.
func (p *Provider) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropClients()
}

func (p *Provider) dropClients() {
	for k, c := range p.clients {
		c.CloseIdleConnections()
		delete(p.clients, k)
	}
}

// Open returns the model. What it returns is for one run: it remembers, between its Complete calls, what a server
// wants back with the next request of a tool round.
func (p *Provider) Open(ref agent.ModelRef, cred Credentials) (agent.Model, error) {
	m, err := p.open(ref, cred)
	if err != nil {
		return nil, fault.Wrap(err, fault.KindOf(err), "model %s cannot be used: %s", fault.Name(ref.Name), err).WithHint("%s", hintOf(err))
	}
	return m, nil
}

func hintOf(err error) string {
	if f, ok := err.(*fault.Error); ok {
		return f.Hint
	}
	return ""
}

func (p *Provider) open(ref agent.ModelRef, cred Credentials) (*Model, error) {
	c, err := parseConfig(ref.Config)
	if err != nil {
		return nil, err
	}
	auth, err := cred.header()
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	m := &Model{provider: p, options: p.options, name: ref.Name, config: c, auth: auth, scrub: newScrubber(cred, auth)}
	for _, u := range []struct {
		text string
		to   **url.URL
	}{{c.endpoint, &m.endpoint}, {c.models, &m.models}} {
		if *u.to, err = url.Parse(u.text); err != nil {
			return nil, fault.New(fault.InvalidArgument, "url %s is not an http or https URL", fault.Name(withoutSecrets(u.text)))
		}
	}
	// Told now rather than at the first request, and again before each request and redirect.
	if err := p.options.Egress.CheckURL(m.endpoint); err != nil {
		return nil, err
	}
	if m.client, err = p.clientFor(c.TLS); err != nil {
		return nil, err
	}
	if n := c.MaxConcurrentRequests; n != nil {
		k := slotKey{ref.Name, *n}
		if p.slots[k] == nil {
			p.slots[k] = make(chan struct{}, *n)
		}
		m.slots = p.slots[k]
	}
	return m, nil
}

// clientFor returns the client for a TLS configuration, made on first use. The lock is held.
func (p *Provider) clientFor(t *tlsConfig) (*http.Client, error) {
	var k clientKey
	if t != nil {
		k.insecure, k.ca = t.InsecureSkipVerify, t.CAPath
	}
	if k.insecure && !p.options.AllowInsecureTLS {
		return nil, fault.New(fault.Privilege, "tls_config.insecure_skip_verify is not allowed").
			WithHint("An administrator can set aidb.allow_insecure_tls; naming the server's CA in tls_config.ca_path is safer.")
	}
	if k.ca != "" {
		if info, err := os.Stat(k.ca); err == nil {
			k.modified = info.ModTime()
		}
	}
	if c := p.clients[k]; c != nil {
		return c, nil
	}
	roots, err := trusted(p.options.CAFile, k.ca)
	if err != nil {
		return nil, err
	}
	proxy, err := p.options.Proxy.Func()
	if err != nil {
		return nil, err
	}
	c := egress.NewGuard(p.options.Egress, 0).Client(&http.Transport{
		Proxy: proxy,
		TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, RootCAs: roots, InsecureSkipVerify: k.insecure, //nolint:gosec // allowed by a setting only
			ClientSessionCache: tls.NewLRUClientSessionCache(8),
		},
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
		TLSHandshakeTimeout:    10 * time.Second,
		IdleConnTimeout:        30 * time.Second,
		MaxIdleConns:           128,
		MaxIdleConnsPerHost:    64,
		MaxResponseHeaderBytes: 256 << 10,
	})
	p.clients[k] = c
	return c, nil
}

// maxCertificates bounds a file of certificates; all that a distribution trusts are a quarter of it.
const maxCertificates = 1 << 20

// trusted returns the system's certificates with those of the files, nil for the system's alone. The error does
// not say why a file could not be read: its path is the caller's choice, its existence not the caller's business.
func trusted(files ...string) (*x509.CertPool, error) {
	var pool *x509.CertPool
	for _, file := range files {
		if file == "" {
			continue
		}
		if pool == nil {
			var err error
			if pool, err = x509.SystemCertPool(); err != nil {
				pool = x509.NewCertPool()
			}
		}
		pem, err := smallfile.Read(file, maxCertificates)
		if err != nil || !pool.AppendCertsFromPEM(pem) {
			return nil, fault.New(fault.InvalidArgument, "no certificate could be read from %s", fault.Name(file))
		}
	}
	return pool, nil
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
