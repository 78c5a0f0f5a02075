package mcp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/oauth2"

	"aidb/extension/internal/fault"
)

const (
	// headerWait bounds the wait for an answer to begin where no call's own limit does: notifications, the stream on which
	// a server speaks unasked, the end of a session.
	headerWait = 10 * time.Second
	// maxStandalone is how often the stream on which a server speaks unasked is opened in one session. The library gives
	// a session up when it ends too often, which is no reason to.
	maxStandalone = 4
	// maxNesting bounds the nesting of what a server sends: it is read by functions that call themselves, and a stack that
	// overflows ends the process.
	maxNesting = 200
	// maxErrorBody bounds what is read of the body of an error.
	maxErrorBody = 64 << 10
)

// carrier is the transport of one session: it adds the secret headers where they belong, bounds what comes back, and notes
// how far each request got.
type carrier struct {
	base       http.RoundTripper // checks the address
	origin     string
	headers    map[string]string
	tokens     *tokens // nil: none are used
	limit      int64
	streamable bool

	standalone atomic.Int64
}

// mark notes what became of the requests of one exchange.
type mark struct {
	sent     atomic.Bool // the request's headers were written: the server may have it
	tooLarge atomic.Bool
	tooDeep  atomic.Bool
	status   atomic.Int64 // of the last answer

	mu      sync.Mutex
	err     error // below HTTP
	noToken error // why the exchange has none; it does not ask again
}

type markKey struct{}

func markOf(ctx context.Context) *mark {
	if m, ok := ctx.Value(markKey{}).(*mark); ok {
		return m
	}
	return &mark{}
}

func (m *mark) network(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

func (m *mark) networkError() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

func (m *mark) tokenless() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.noToken
}

func (m *mark) withoutToken(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.noToken = err
}

var (
	errNoOther  = errors.New("a new token was refused")
	errTooLarge = errors.New("message is too large")
	errTooDeep  = errors.New("message is nested too deeply")
)

// RoundTrip implements http.RoundTripper.
func (c *carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	m := markOf(r.Context())
	home := origin(r.URL.Scheme, r.URL.Host) == c.origin
	if !home && r.Response == nil {
		// Not a redirect: the server of an SSE session has named another one's address for what it is sent.
		if r.Body != nil {
			_ = r.Body.Close()
		}
		err := fault.New(fault.ServerProtocol, "it names host %s, which is not the registered origin", fault.Name(r.URL.Host))
		m.network(err)
		return nil, err
	}
	speaksUnasked := c.streamable && r.Method == http.MethodGet && r.Header.Get("Last-Event-Id") == ""
	if speaksUnasked {
		if c.standalone.Add(1) > maxStandalone {
			return c.silence(r), nil
		}
		m = &mark{} // no exchange depends on it
	}
	outer := r.Context()
	ctx := httptrace.WithClientTrace(outer, &httptrace.ClientTrace{WroteHeaders: func() { m.sent.Store(true) }})
	cancel := func() {}
	var timer *time.Timer
	if _, bounded := ctx.Deadline(); !bounded {
		var stop context.CancelFunc
		ctx, stop = context.WithCancel(ctx)
		cancel = stop
		timer = time.AfterFunc(headerWait, stop)
	}
	r = r.Clone(ctx)
	r.Header.Set("User-Agent", "aidb")
	if home {
		for name, value := range c.headers {
			r.Header.Set(name, value)
		}
	}
	resp, err := c.send(r, m, home)
	late := timer != nil && !timer.Stop()
	if err != nil || late {
		if err == nil {
			_ = resp.Body.Close()
			err = context.DeadlineExceeded
		}
		cancel()
		m.network(err)
		if speaksUnasked && outer.Err() == nil {
			return c.silence(r.WithContext(outer)), nil // the session can do without
		}
		return nil, err
	}
	m.status.Store(int64(resp.StatusCode))
	resp.Body = c.bounded(resp, m, cancel, speaksUnasked)
	return resp, nil
}

// send sends a request; to the server's own origin with a token where it wants one. It refuses who has none, or an old one,
// before it does anything: so the same request is sent again with another.
func (c *carrier) send(r *http.Request, m *mark, home bool) (*http.Response, error) {
	if c.tokens == nil || !home {
		return c.base.RoundTrip(r)
	}
	token, err := c.token(r.Context(), m)
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	if token != nil {
		token.SetAuthHeader(r)
	}
	resp, err := c.base.RoundTrip(r)
	if err != nil || r.Body != nil && r.GetBody == nil {
		return resp, err
	}
	ch := challenged(resp)
	if ch == nil || m.tokenless() != nil {
		return resp, nil
	}
	m.sent.Store(false)
	fresh, err := c.tokens.renew(r.Context(), token, ch)
	if err == nil && fresh == nil {
		return resp, nil
	}
	_ = resp.Body.Close()
	if err != nil {
		m.withoutToken(err)
		return nil, err
	}
	again := r.Clone(r.Context())
	if r.GetBody != nil {
		if again.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	fresh.SetAuthHeader(again)
	resp, err = c.base.RoundTrip(again)
	if err == nil && resp.StatusCode == http.StatusUnauthorized {
		m.withoutToken(errNoOther)
	}
	return resp, err
}

// token is the token to send; nil: none yet. An exchange that could not get one does not try again.
func (c *carrier) token(ctx context.Context, m *mark) (*oauth2.Token, error) {
	if err := m.tokenless(); err != nil && !errors.Is(err, errNoOther) {
		return nil, err
	}
	token, err := c.tokens.current(ctx)
	if err != nil {
		m.withoutToken(err)
	}
	return token, err
}

// silence is the answer of a server that does not speak unasked.
func (c *carrier) silence(r *http.Request) *http.Response {
	if c.standalone.Load() <= 1 {
		return &http.Response{
			Status: "405 Method Not Allowed", StatusCode: http.StatusMethodNotAllowed, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{}, Body: http.NoBody, Request: r,
		}
	}
	// It did before: what stands for it is a stream on which nothing comes, until the session ends.
	ctx, cancel := context.WithCancel(r.Context())
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: &still{ctx, cancel}, Request: r,
	}
}

// still is a stream on which nothing comes.
type still struct {
	ctx    context.Context
	cancel context.CancelFunc
}

func (s *still) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

func (s *still) Close() error {
	s.cancel()
	return nil
}

func (c *carrier) bounded(resp *http.Response, m *mark, cancel func(), speaksUnasked bool) io.ReadCloser {
	b := &body{ReadCloser: resp.Body, mark: m, cancel: cancel, left: -1, longest: c.limit}
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	b.events = strings.EqualFold(strings.TrimSpace(kind), "text/event-stream")
	switch {
	case resp.StatusCode < 200 || resp.StatusCode >= 300:
		b.left, b.cut = min(maxErrorBody, c.limit), true
	case !b.events || speaksUnasked:
		b.left = c.limit // of a call's stream each event is bounded, and its time
	}
	return b
}

// body bounds what is read of an answer: its size, and how deep its JSON is nested.
type body struct {
	io.ReadCloser
	mark   *mark
	cancel func()
	left   int64 // bytes that may still come; -1: any number
	cut    bool  // what is beyond is left out silently
	events bool  // the JSON is in the lines of an event stream

	longest int64 // event
	event   int64 // bytes of the event so far
	large   bool  // one that has ended was longer than that

	depth    int
	inString bool
	escaped  bool
	line     int  // bytes of the line so far
	data     bool // the line is one of data
	returned bool // the character before was a carriage return
}

func (b *body) Read(p []byte) (int, error) {
	if b.left == 0 {
		if b.cut {
			return 0, io.EOF
		}
		// Exactly as much as may come is no fault.
		var one [1]byte
		if n, err := b.ReadCloser.Read(one[:]); n == 0 {
			return 0, err
		}
		b.mark.tooLarge.Store(true)
		return 0, errTooLarge
	}
	if b.left > 0 && int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left > 0 {
		b.left -= int64(n)
	}
	if !b.shallow(p[:n]) {
		b.mark.tooDeep.Store(true)
		return 0, errTooDeep
	}
	if b.events && (b.large || b.event > b.longest) {
		b.mark.tooLarge.Store(true)
		return 0, errTooLarge
	}
	return n, err
}

func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.cancel()
	return err
}

// shallow follows the nesting of the JSON that passes. It need not be right about text that is not JSON: the reader of that
// stops at the first fault, and up to there the count is exact.
func (b *body) shallow(p []byte) bool {
	for _, ch := range p {
		b.event++
		if b.events {
			if ch == '\n' || ch == '\r' {
				if b.line == 0 && !(ch == '\n' && b.returned) {
					b.large = b.large || b.event > b.longest
					b.depth, b.event = 0, 0 // the end of an event
				}
				b.line, b.data, b.inString, b.escaped, b.returned = 0, false, false, false, ch == '\r'
				continue
			}
			b.returned = false
			if b.line++; b.line == 1 {
				b.data = ch == 'd'
			}
			if !b.data {
				continue
			}
		}
		switch {
		case b.escaped:
			b.escaped = false
		case b.inString:
			b.escaped = ch == '\\'
			b.inString = ch != '"'
		case ch == '"':
			b.inString = true
		case ch == '{' || ch == '[':
			if b.depth++; b.depth > maxNesting {
				return false
			}
		case (ch == '}' || ch == ']') && b.depth > 0:
			b.depth--
		}
	}
	return true
}
