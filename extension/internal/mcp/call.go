package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// longest bounds an exchange that nothing else bounds.
const longest = 24 * time.Hour

// call is the exchange that has an effect.
const call = "call"

// exchange runs one exchange with a server: within its time, in its session. What the server certainly has not got, or has
// refused because it does not know the session, is tried once more in a new one. Only calls wait for a turn: a list is short,
// and whoever raises the limit of a server that is busy needs one.
func (p *Pool) exchange(ctx context.Context, srv *Server, what string, do func(ctx context.Context, s *session) error) error {
	limit := srv.Timeout
	if limit <= 0 {
		limit = longest
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if what == call {
		release, err := p.acquire(bounded, srv)
		if err != nil {
			return over(ctx, err)
		}
		defer release()
	}
	for try := 1; ; try++ {
		s, kept, err := p.session(bounded, srv)
		if err != nil {
			return over(ctx, err)
		}
		m := &mark{}
		s.calls.Add(1)
		err = do(context.WithValue(bounded, markKey{}, m), s)
		s.calls.Add(-1)
		if err == nil {
			return nil
		}
		f := m.failure(bounded, srv, what, err)
		// A session whose server is only slow is kept: the word that the call is cancelled goes through it.
		if f.Outcome == NeverSent || f.lost || !s.alive() {
			p.forget(s)
		}
		again := kept && try == 1 && (f.Outcome == NeverSent || f.lost) && m.tokenless() == nil
		if !again || bounded.Err() != nil {
			return over(ctx, f)
		}
	}
}

// over returns why the run is over, if it is: then nobody asks how the exchange went.
func over(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	return err
}

// Call calls a tool. A tool that failed is a Result; an error is a *Failure, or the context's cause when that is over.
// Told hears of progress, in a goroutine of its own; it must not block. When the context ends, the server is told that
// the call is cancelled.
func (p *Pool) Call(ctx context.Context, srv *Server, tool string, arguments json.RawMessage, told func(Progress)) (*Result, error) {
	var result *sdk.CallToolResult
	err := p.exchange(ctx, srv, call, func(ctx context.Context, s *session) (err error) {
		srv.Session = line(s.cs.ID(), maxToolName)
		params := &sdk.CallToolParams{Name: tool, Arguments: arguments}
		if told != nil {
			token, done := s.listen(told)
			defer done()
			params.Meta = sdk.Meta{"progressToken": token}
		}
		result, err = s.cs.CallTool(ctx, params)
		return err
	})
	if err != nil {
		return nil, err
	}
	return newResult(result), nil
}

// Changed reports whether a kept session of the server has been told that its list of tools is not what it was.
func (p *Pool) Changed(srv *Server) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.sessions[srv.key()]
	return s != nil && s.changed.Load()
}
