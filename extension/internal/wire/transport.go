package wire

import (
	"crypto/tls"
	"crypto/x509"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

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
	// Limits hold for a model whose config is silent about them.
	Limits Limits
	// Now and Random are for tests; nil means the real ones. Random is in [0, 1).
	Now    func() time.Time
	Random func() float64
}

// Transport is what all models of the process share: the connections, and the settings for those to come. Safe for
// concurrent use.
type Transport struct {
	mu      sync.Mutex
	options Options
	clients map[clientKey]*http.Client
}

// clientKey is what makes two models need different connections. modified notices a CA file that was replaced.
type clientKey struct {
	insecure bool
	ca       string
	modified time.Time
}

// NewTransport returns a transport. Options that cannot be used are reported by Line.
func NewTransport(o Options) *Transport {
	return &Transport{options: o.withDefaults(), clients: map[clientKey]*http.Client{}}
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

// Reconfigure replaces the options for lines opened from now on. Connections are kept when nothing that they depend
// on has changed; requests that are under way end under the old options.
func (t *Transport) Reconfigure(o Options) {
	o = o.withDefaults()
	t.mu.Lock()
	defer t.mu.Unlock()
	if !sameConnections(t.options, o) {
		t.dropClients()
	}
	t.options = o
}

func sameConnections(a, b Options) bool {
	return a.Egress.Equal(b.Egress) && a.Proxy == b.Proxy && a.CAFile == b.CAFile
}

// Close closes the connections that are idle.
func (t *Transport) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropClients()
}

func (t *Transport) dropClients() {
	for k, c := range t.clients {
		c.CloseIdleConnections()
		delete(t.clients, k)
	}
}

// Opening says to whom a line goes.
type Opening struct {
	// URL is where requests go. It is checked now, and again before each request and redirect.
	URL         string
	Model       string // what the server calls the model
	Credentials Credentials
	// KeyHeader is the header that carries an API key; "" is Authorization, as a bearer token.
	KeyHeader string
	TLS       *TLSConfig
	Limits    Limits
	Gate      Gate
}

// Line opens the way to a model's server.
func (t *Transport) Line(o Opening) (*Line, error) {
	where, err := url.Parse(o.URL)
	if err != nil {
		return nil, fault.New(fault.InvalidArgument, "url %s is not an http or https URL", fault.Name(WithoutSecrets(o.URL)))
	}
	name, value, err := o.Credentials.Header(o.KeyHeader)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	// Told now rather than at the first request.
	if err := t.options.Egress.CheckURL(where); err != nil {
		return nil, err
	}
	client, err := t.clientFor(o.TLS)
	if err != nil {
		return nil, err
	}
	l := &Line{options: t.options, Client: client, scrub: newscrubber(o.Credentials, value), where: WithoutSecrets(o.URL), authName: name, auth: value}
	if limits := o.Limits.or(t.options.Limits); o.Gate != nil && o.Gate.Needed(limits) {
		l.gate, l.limits, l.key = o.Gate, limits, gateKey(o.URL, o.Model, value)
	}
	return l, nil
}

// clientFor returns the client for a TLS configuration, made on first use. The lock is held.
func (t *Transport) clientFor(c *TLSConfig) (*http.Client, error) {
	var k clientKey
	if c != nil {
		k.insecure, k.ca = c.InsecureSkipVerify, c.CAPath
	}
	if k.insecure && !t.options.AllowInsecureTLS {
		return nil, fault.New(fault.Privilege, "tls_config.insecure_skip_verify is not allowed").
			WithHint("An administrator can set aidb.allow_insecure_tls; naming the server's CA in tls_config.ca_path is safer.")
	}
	if k.ca != "" {
		if info, err := os.Stat(k.ca); err == nil {
			k.modified = info.ModTime()
		}
	}
	if known := t.clients[k]; known != nil {
		return known, nil
	}
	roots, err := trusted(t.options.CAFile, k.ca)
	if err != nil {
		return nil, err
	}
	proxy, err := t.options.Proxy.Func()
	if err != nil {
		return nil, err
	}
	made := egress.NewGuard(t.options.Egress, 0).Client(&http.Transport{
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
	t.clients[k] = made
	return made, nil
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
