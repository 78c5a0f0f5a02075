package mcp

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"aidb/extension/internal/egress"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/safego"
	"aidb/extension/internal/smallfile"
)

// Transports, as aidb.import_mcp_tools names them.
const (
	StreamableHTTP = "streamable_http"
	SSE            = "sse"
)

// Server is a registered server, with the secrets that go to it.
type Server struct {
	Name      string
	URL       string
	Transport string
	Headers   map[string]string
	// OAuth gets tokens for it; nil: it is used without.
	OAuth *OAuth
	// Timeout bounds one exchange, 0: only the context does.
	Timeout time.Duration
	// Concurrency is how many calls may be under way at a time, in all sessions together; 0: DefaultConcurrency.
	Concurrency int
	// AnswersDefaults: when it asks for a person's input, the defaults are the answer; else it is told that there is nobody.
	AnswersDefaults bool
	// Turns makes calls wait for their turn; nil: nothing does.
	Turns Turns
	// Session is the id that the server has given its session, once Call has used it; "" where it gives none.
	Session string
	// User is whom the session is for: a server may keep a state for each session, which nobody else should meet.
	User string

	tokens *tokens // of the session in use
}

// Turns counts the calls under way in all processes that share it.
type Turns interface {
	// Take waits until fewer than limit calls of what key names are under way. leave, called once, ends the call.
	Take(ctx context.Context, key string, limit int) (leave func(), err error)
}

const (
	// DefaultConcurrency is how many calls of one server may be under way at a time.
	DefaultConcurrency = 8
	// DefaultMaxBytes bounds one message of a server when the options do not.
	DefaultMaxBytes = 8 << 20
	// maxCertificates bounds the file of certificates.
	maxCertificates = 4 << 20
	// maxSessions bounds the sessions of a process; the one that was used least recently goes.
	maxSessions = 16
	// idleLimit is how long a session is kept unused.
	idleLimit = 5 * time.Minute
	// sweepEvery is how often it is looked for such.
	sweepEvery = time.Minute
)

// Options are the settings that hold for every server.
type Options struct {
	Egress egress.Policy
	Proxy  egress.Proxy
	// CAFile holds certificates that are trusted besides the system's.
	CAFile string
	// MaxBytes bounds one message (0: DefaultMaxBytes).
	MaxBytes int64
}

// Pool keeps the sessions of a process. It is safe for concurrent use.
type Pool struct {
	group safego.Group

	mu       sync.Mutex
	options  Options
	base     *http.Transport
	sessions map[string]*session
	legacy   map[string]bool // servers that speak an older protocol: they need not be asked again
	tokens   map[string]*tokens
	grants   map[string]*Authorization // the newest of each: see Newest
	sweeper  *time.Timer               // nil: there are no sessions
}

// NewPool returns an empty pool.
func NewPool(o Options) *Pool {
	return &Pool{options: o, sessions: map[string]*session{}, legacy: map[string]bool{}, tokens: map[string]*tokens{}, grants: map[string]*Authorization{}}
}

// Reconfigure replaces the options. Sessions that depend on what has changed are closed.
func (p *Pool) Reconfigure(o Options) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.options.Egress.Equal(o.Egress) && p.options.Proxy == o.Proxy && p.options.CAFile == o.CAFile && p.options.MaxBytes == o.MaxBytes {
		return
	}
	p.options, p.base = o, nil
	clear(p.tokens)
	p.closeAll()
}

// Close closes all sessions.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeAll()
}

func (p *Pool) closeAll() {
	for key, s := range p.sessions {
		delete(p.sessions, key)
		p.discard(s)
	}
}

// discard closes a session without waiting for it: its server is told, if it still listens. The lock is held.
func (p *Pool) discard(s *session) {
	safego.Go(&p.group, "closing an MCP session", s.close)
}

// key is what makes two uses need different sessions.
func (s *Server) key() string {
	h := sha256.New()
	field := func(text string) { h.Write([]byte(strconv.Itoa(len(text)) + ":" + text)) }
	for _, f := range []string{s.Name, s.URL, s.Transport, s.User, s.OAuth.id(), strconv.FormatBool(s.AnswersDefaults)} {
		field(f)
	}
	names := make([]string, 0, len(s.Headers))
	for name := range s.Headers {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		field(name)
		field(s.Headers[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// session returns the server's session, opened now when there is none: kept says that it was there.
func (p *Pool) session(ctx context.Context, srv *Server) (s *session, kept bool, err error) {
	key := srv.key()
	p.mu.Lock()
	s = p.sessions[key]
	if s != nil && s.alive() {
		s.used, srv.tokens = time.Now(), s.tokens
		p.mu.Unlock()
		srv.tokens.use(srv.OAuth)
		return s, true, nil
	}
	delete(p.sessions, key)
	options, legacy := p.options, p.legacy[srv.URL]
	base, err := p.transport()
	if err == nil && srv.OAuth != nil {
		srv.tokens = p.tokensOf(srv, base)
		srv.tokens.use(srv.OAuth)
	}
	p.mu.Unlock()
	if err != nil {
		return nil, false, err
	}
	if s, err = open(ctx, srv, options, base, legacy); err != nil {
		return nil, false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.legacy[srv.URL] = s.legacy()
	if len(p.legacy) > 4*maxSessions {
		clear(p.legacy)
	}
	p.makeRoom()
	s.used = time.Now()
	p.sessions[key] = s
	if p.sweeper == nil {
		p.sweeper = time.AfterFunc(sweepEvery, p.sweep)
	}
	return s, false, nil
}

// tokensOf returns what gets tokens for the server: whoever it is for, the client is the same. The lock is held.
func (p *Pool) tokensOf(srv *Server, base *http.Transport) *tokens {
	key := srv.URL + "\x00" + srv.OAuth.id()
	t := p.tokens[key]
	if t == nil {
		if len(p.tokens) >= 4*maxSessions {
			clear(p.tokens) // sessions keep theirs
		}
		t = newTokens(srv, p.options, base)
		p.tokens[key] = t
	}
	return t
}

// makeRoom closes the session that was used least recently when there are too many. The lock is held.
func (p *Pool) makeRoom() {
	for len(p.sessions) >= maxSessions {
		var oldest string
		for key, s := range p.sessions {
			if oldest == "" || s.used.Before(p.sessions[oldest].used) {
				oldest = key
			}
		}
		s := p.sessions[oldest]
		delete(p.sessions, oldest)
		p.discard(s)
	}
}

// sweep closes sessions that nobody uses, and comes again as long as there are any.
func (p *Pool) sweep() {
	_ = safego.Call("sweeping MCP sessions", func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for key, s := range p.sessions {
			if time.Since(s.used) > idleLimit && !s.busy() || !s.alive() {
				delete(p.sessions, key)
				p.discard(s)
			}
		}
		if len(p.sessions) > 0 {
			p.sweeper.Reset(sweepEvery)
		} else {
			p.sweeper = nil
		}
	})
}

// forget drops a session that turned out to be of no use.
func (p *Pool) forget(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, kept := range p.sessions {
		if kept == s {
			delete(p.sessions, key)
		}
	}
	p.discard(s)
}

// acquire waits for a turn at the server's address, which is what a limit protects: two registrations of it share the count.
func (p *Pool) acquire(ctx context.Context, srv *Server) (release func(), err error) {
	if srv.Turns == nil {
		return func() {}, nil
	}
	size := srv.Concurrency
	if size <= 0 {
		size = DefaultConcurrency
	}
	sum := sha256.Sum256([]byte("mcp\x00" + srv.URL))
	release, err = srv.Turns.Take(ctx, hex.EncodeToString(sum[:16]), size)
	if ctx.Err() != nil && err != nil {
		return nil, &Failure{Outcome: NeverSent, Err: fault.New(fault.ServerUnavailable,
			"MCP server %s has as many calls under way as it may have", fault.Name(srv.Name)).
			WithHint("At most %d at a time, in all sessions together: aidb.update_mcp_server(max_concurrency => …) changes that.", size)}
	}
	return release, err
}

// transport returns what all sessions send through, made on first use. The lock is held.
func (p *Pool) transport() (*http.Transport, error) {
	if p.base != nil {
		return p.base, nil
	}
	roots, err := trusted(p.options.CAFile)
	if err != nil {
		return nil, err
	}
	proxy, err := p.options.Proxy.Func()
	if err != nil {
		return nil, err
	}
	p.base = &http.Transport{
		Proxy: proxy,
		TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, RootCAs: roots, ClientSessionCache: tls.NewLRUClientSessionCache(8),
		},
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
		TLSHandshakeTimeout:    10 * time.Second,
		IdleConnTimeout:        90 * time.Second,
		MaxIdleConns:           64,
		MaxIdleConnsPerHost:    16,
		MaxResponseHeaderBytes: 64 << 10,
	}
	guard := egress.NewGuard(p.options.Egress, 0)
	guard.Through(p.options.Proxy)
	p.base.DialContext = guard.Dial
	return p.base, nil
}

// trusted returns the system's certificates with those of the file, nil for the system's alone.
func trusted(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	pem, err := smallfile.Read(file, maxCertificates)
	if err != nil || !pool.AppendCertsFromPEM(pem) {
		return nil, fault.New(fault.InvalidArgument, "no certificate could be read from %s", fault.Name(file))
	}
	return pool, nil
}

// origin is what a secret header is bound to.
func origin(scheme, host string) string { return strings.ToLower(scheme + "://" + host) }
