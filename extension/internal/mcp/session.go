package mcp

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"aidb/extension/internal/egress"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/safego"
)

// The newest protocol that begins with the handshake of old; servers that answered with it, or an older one, are not
// asked for a newer one again.
const lastWithHandshake = "2025-11-25"

// session is one session with one server.
type session struct {
	group  safego.Group
	cs     *sdk.ClientSession
	cancel context.CancelFunc
	dead   atomic.Bool
	// changed: the server has said that its list of tools is not what it was.
	changed atomic.Bool
	calls   atomic.Int64
	tokens  *tokens   // nil: none are used
	used    time.Time // under the pool's lock

	mu       sync.Mutex
	next     int
	progress map[any]func(Progress)
}

// Progress is what a server says of a call that is under way. Total is 0 when it does not know.
type Progress struct {
	Done, Total float64
	Message     string
}

// maxProgress bounds what one call may say of itself.
const maxProgress = 100

// open connects and goes through the handshake. The context bounds that; the session outlives it.
func open(ctx context.Context, srv *Server, o Options, base *http.Transport, legacy bool) (*session, error) {
	u, err := url.Parse(srv.URL)
	if err != nil {
		return nil, &Failure{Outcome: NeverSent, Err: fault.New(fault.InvalidArgument, "URL of MCP server %s cannot be read", fault.Name(srv.Name))}
	}
	if err := o.Egress.CheckURL(u); err != nil {
		return nil, &Failure{Outcome: NeverSent, Err: err}
	}
	limit := o.MaxBytes
	if limit <= 0 {
		limit = DefaultMaxBytes
	}
	guard := egress.NewGuard(o.Egress, 0)
	client := &http.Client{
		Transport: &carrier{
			base: guard.Wrap(base), origin: origin(u.Scheme, u.Host), headers: srv.Headers,
			tokens: srv.tokens, limit: limit, streamable: srv.Transport != SSE,
		},
		CheckRedirect: guard.Redirect,
	}
	s := &session{tokens: srv.tokens, progress: map[any]func(Progress){}}
	m := &mark{}
	life, cancel := context.WithCancel(context.WithValue(context.WithoutCancel(ctx), markKey{}, m))
	s.cancel = cancel
	stop := context.AfterFunc(ctx, cancel)

	options := &sdk.ClientOptions{
		Capabilities:                &sdk.ClientCapabilities{},
		ToolListChangedHandler:      func(context.Context, *sdk.ToolListChangedRequest) { s.changed.Store(true) },
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { s.progressed(r.Params) },
		MultiRoundTrip:              &sdk.MultiRoundTripOptions{Disabled: true},
	}
	if srv.AnswersDefaults {
		options.ElicitationHandler = s.answerDefaults
	}
	c := sdk.NewClient(&sdk.Implementation{Name: "aidb", Version: "0.1"}, options)
	c.AddReceivingMiddleware(onlyOffered(srv.AnswersDefaults))
	var t sdk.Transport = &sdk.StreamableClientTransport{Endpoint: srv.URL, HTTPClient: client, MaxEventSize: int(limit), MaxRetries: 5}
	if srv.Transport == SSE {
		t = &sdk.SSEClientTransport{Endpoint: srv.URL, HTTPClient: client, MaxEventSize: int(limit)}
	}
	opening := &sdk.ClientSessionOptions{}
	if legacy {
		opening.ProtocolVersion = lastWithHandshake
	}
	s.cs, err = c.Connect(life, t, opening)
	if !stop() && err == nil {
		err = context.Cause(ctx)
		_ = s.cs.Close()
	}
	if err != nil {
		cancel()
		f := m.failure(ctx, srv, "connect to", err)
		if f.Outcome == Unknown {
			f.Outcome = Answered // whatever became of the handshake, no tool was called
		}
		return nil, f
	}
	safego.Go(&s.group, "watching an MCP session", func() {
		_ = s.cs.Wait()
		s.dead.Store(true)
	})
	return s, nil
}

// onlyOffered refuses what a server asks for although nothing of the kind was offered to it: input of a person, a model's
// answer, folders. The library would give an answer of its own to some of it.
func onlyOffered(elicitation bool) sdk.Middleware {
	return func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
			switch {
			case method == "ping", strings.HasPrefix(method, "notifications/"):
				return next(ctx, method, r)
			case elicitation && method == "elicitation/create":
				return guarded(ctx, next, method, r)
			}
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "aidb has no " + line(method, 100)}
		}
	}
}

func (s *session) alive() bool { return !s.dead.Load() }

func (s *session) busy() bool { return s.calls.Load() > 0 }

// legacy reports whether the server speaks an older protocol than the library's newest.
func (s *session) legacy() bool {
	r := s.cs.InitializeResult()
	return r != nil && r.ProtocolVersion <= lastWithHandshake
}

// close tells the server, if it still listens, and frees what the session holds.
func (s *session) close() {
	_ = s.cs.Close()
	s.dead.Store(true)
	s.cancel()
}

// listen has what the server says of a call given to f; the token goes out with the call.
func (s *session) listen(f func(Progress)) (token any, done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	token = float64(s.next) // as the answer's JSON has it
	told := 0
	s.progress[token] = func(p Progress) {
		if told++; told <= maxProgress {
			f(p)
		}
	}
	return s.next, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.progress, token)
	}
}

// progressed runs in a goroutine of the library.
func (s *session) progressed(p *sdk.ProgressNotificationParams) {
	if p == nil {
		return
	}
	token := p.ProgressToken
	switch n := token.(type) {
	case float64:
	case int64:
		token = float64(n)
	case int:
		token = float64(n)
	default:
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.progress[token]; f != nil {
		_ = safego.Call("progress of an MCP call", func() {
			f(Progress{Done: p.Progress, Total: p.Total, Message: line(p.Message, maxProgressText)})
		})
	}
}
