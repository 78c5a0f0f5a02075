package mcp

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"aidb/extension/internal/fault"
)

// Outcome is what is known of a call that failed.
type Outcome int

const (
	// NeverSent: the server certainly has not got it. Our own checks refused it, the name was not resolved, there was
	// no connection.
	NeverSent Outcome = iota
	// Answered: the server has said what became of it.
	Answered
	// Unknown: it was sent, and no answer came that says whether the tool ran.
	Unknown
)

// Failure is an exchange that failed: a *fault.Error and what is known of the call.
type Failure struct {
	Outcome Outcome
	Err     error

	lost    bool // the server does not know the session: another one may do
	refused bool // the token is of no use (any more): nothing has run
}

func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the *fault.Error.
func (f *Failure) Unwrap() error { return f.Err }

// NeverSent reports whether the server certainly has not got the call.
func (f *Failure) NeverSent() bool { return f.Outcome == NeverSent }

// OutcomeUnknown reports whether the tool may have run.
func (f *Failure) OutcomeUnknown() bool { return f.Outcome == Unknown }

// notSent is the code of the library's own word for a request that its transport did not get an answer to.
const notSent = -32005

// maxServerText bounds what an error text repeats of a server's own words.
const maxServerText = 300

// failure says what went wrong in an exchange. The library's errors are texts for the most part, so the mark, which saw
// the bytes pass, comes first.
func (m *mark) failure(ctx context.Context, srv *Server, what string, err error) *Failure {
	name := fault.Name(srv.Name)
	f := &Failure{Outcome: NeverSent}
	if m.sent.Load() {
		f.Outcome = Unknown
	}
	var refused *fault.Error
	var answer *jsonrpc.Error
	status := int(m.status.Load())
	network := m.networkError()
	switch {
	case errors.As(err, &refused):
		if status >= 300 && status < 400 {
			f.Outcome = Answered // a redirect that we do not follow
		}
		f.Err = fault.Wrap(refused, refused.Kind, "MCP server %s cannot be used: %s", name, refused.Message).WithHint("%s", refused.Hint)
	case errors.As(network, &refused):
		f.Err = fault.Wrap(refused, refused.Kind, "MCP server %s cannot be used: %s", name, refused.Message).WithHint("%s", refused.Hint)
	case m.tooLarge.Load():
		f.Outcome = Answered
		f.Err = fault.Wrap(err, fault.LimitExceeded, "answer of MCP server %s is larger than aidb.max_mcp_bytes", name)
	case m.tooDeep.Load():
		f.Outcome = Answered
		f.Err = fault.Wrap(err, fault.ServerProtocol, "answer of MCP server %s is nested too deeply", name)
	case errors.As(err, &answer) && answer.Code != notSent:
		f.Outcome = Answered
		f.Err = fault.Wrap(err, fault.ToolFailed, "MCP server %s answered with an error: %s (code %d)", name, srv.scrub(answer.Message), answer.Code)
		f.lost = status == 404
	case errors.Is(err, sdk.ErrSessionMissing):
		f.Outcome, f.lost = Answered, true
		f.Err = fault.Wrap(err, fault.ServerUnavailable, "MCP server %s has lost the session", name)
	case status == 401 || status == 403:
		f.Outcome = Answered
		f.Err = fault.Wrap(err, fault.ServerAuth, "MCP server %s does not accept the headers (HTTP %d)", name, status)
		if srv.OAuth.ByPerson() {
			f.Err, f.refused = srv.notAuthorized(status), status == 401
		} else if srv.OAuth != nil {
			f.Err = fault.Wrap(err, fault.ServerAuth, "MCP server %s does not accept the token (HTTP %d)", name, status)
		}
	case status == 404 || status == 405 || status == 400 || status == 406 || status == 415:
		f.Outcome, f.lost = Answered, true
		f.Err = fault.Wrap(err, fault.ServerProtocol, "MCP server %s does not accept the request (HTTP %d)", name, status).
			WithHint("Is the URL that of its MCP endpoint, and the transport the one that it speaks?")
	case status == 429:
		f.Outcome = Answered
		f.Err = fault.Wrap(err, fault.ServerUnavailable, "MCP server %s has too much to do (HTTP %d)", name, status)
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded), errors.Is(network, context.DeadlineExceeded):
		f.Err = fault.Wrap(err, fault.ServerUnavailable, "MCP server %s did not answer in time", name)
	case status >= 300:
		f.Err = fault.Wrap(err, fault.ServerUnavailable, "MCP server %s failed (HTTP %d)", name, status)
	case network != nil:
		f.Err = fault.Wrap(err, fault.ServerUnavailable, "MCP server %s cannot be reached: %s", name, reason(network))
	case errors.Is(err, sdk.ErrConnectionClosed):
		f.Err = fault.Wrap(err, fault.ServerUnavailable, "MCP server %s has closed the connection", name)
	default:
		f.Err = fault.Wrap(err, fault.ServerProtocol, "MCP server %s gave an answer that cannot be used: %s", name, srv.scrub(err.Error()))
	}
	if e, ok := f.Err.(*fault.Error); ok && f.Outcome == Unknown && what == call {
		if e.Kind == fault.ServerUnavailable || e.Kind == fault.ServerProtocol {
			e.Kind = fault.OutcomeUnknown
		}
		f.Err = e.WithDetail("The call had been sent: whether the tool has run is not known.")
	}
	return f
}

// reason is an error of the network in the words that help.
func reason(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.As(err, &dns):
		return "host name cannot be resolved"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	}
	return line(err.Error(), maxServerText)
}

// scrub is a text that the server may have written: one line, bounded, without the secrets that we sent it.
func (s *Server) scrub(text string) string {
	values := slices.Collect(maps.Values(s.Headers))
	if s.OAuth != nil {
		values = append(values, s.OAuth.clientSecret, s.OAuth.privateKey, s.OAuth.idToken, s.OAuth.idpSecret)
		values = append(values, s.OAuth.granted.secrets()...)
	}
	if s.tokens != nil {
		if t := s.tokens.token.Load(); t != nil {
			values = append(values, t.AccessToken)
		}
	}
	for _, value := range slices.Clone(values) {
		if _, token, two := strings.Cut(value, " "); two {
			values = append(values, token) // of "Bearer token"
		}
	}
	// The longer ones first, of which a shorter one may be a part.
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	for _, value := range values {
		if len(value) >= 4 {
			text = strings.ReplaceAll(text, value, "***")
		}
	}
	return line(text, maxServerText)
}
