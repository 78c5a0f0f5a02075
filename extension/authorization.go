package main

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"aidb/extension/internal/fault"
	"aidb/extension/internal/mcp"
	"aidb/extension/internal/spi"
)

// exchange does something with a server, with a token that has not run out. One that the server refuses all the same is replaced,
// once: nothing has run then.
func (r *remote) exchange(ctx context.Context, srv *mcp.Server, do func() error) error {
	if a := srv.OAuth.Granted(); a != nil && a.RefreshToken != "" && a.RanOut(time.Now()) {
		if err := r.renew(ctx, srv); err != nil {
			return err
		}
		return do()
	}
	err := do()
	if a := srv.OAuth.Granted(); a == nil || a.RefreshToken == "" || !mcp.TokenRefused(err) {
		return err
	}
	if err := r.renew(ctx, srv); err != nil {
		return err
	}
	return do()
}

// list fetches the list of a server's tools.
func (r *remote) list(ctx context.Context, srv *mcp.Server) (l *mcp.Listing, err error) {
	err = r.exchange(ctx, srv, func() (err error) {
		l, err = r.wiring.mcp.List(ctx, srv)
		return err
	})
	return l, err
}

// renew gets a new token in place of the one in use. A refresh token may be good for one time only, and a second use of it may
// end the authorization: so one transaction at a time does this, and whoever has waited takes what that one got.
func (r *remote) renew(ctx context.Context, srv *mcp.Server) error {
	old := srv.OAuth.Granted()
	_, text, err := r.store.MCPAuthorization(ctx, srv.Name)
	if err != nil {
		return err
	}
	kept, err := mcp.ParseAuthorization(text)
	if err != nil {
		return err
	}
	if kept == nil {
		return srv.NotAuthorized()
	}
	if kept = r.wiring.mcp.Newest(kept); kept.ID != old.ID || kept.Serial > old.Serial {
		srv.OAuth.Use(kept)
		return nil
	}
	bounded, cancel := within(ctx, srv)
	defer cancel()
	fresh, err := r.wiring.mcp.Refresh(bounded, srv)
	if err != nil {
		return unsent(err)
	}
	return r.grant(ctx, srv, fresh)
}

// within bounds what comes before a server is spoken to.
func within(ctx context.Context, srv *mcp.Server) (context.Context, context.CancelFunc) {
	if srv.Timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, srv.Timeout)
}

// unsent is the failure of a call that had no token to go out with.
func unsent(err error) error {
	var f *mcp.Failure
	if errors.As(err, &f) || errors.Is(err, spi.ErrGone) {
		return err
	}
	return &mcp.Failure{Outcome: mcp.NeverSent, Err: err}
}

func (r *remote) grant(ctx context.Context, srv *mcp.Server, a *mcp.Authorization) error {
	text, err := json.Marshal(a)
	if err != nil {
		return fault.Wrap(err, fault.Internal, "authorization of an MCP server cannot be written as JSON")
	}
	return r.store.GrantMCPAuthorization(ctx, srv.Name, text)
}

// register fetches the list of a server that is being registered, unless a person has to authorize its use first.
func (r *remote) register(ctx context.Context, name string) (int, error) {
	row, err := r.store.MCPServer(ctx, name)
	if err != nil {
		return 0, err
	}
	srv, err := r.registered(ctx, &row)
	if err != nil {
		return 0, err
	}
	if srv.OAuth.ByPerson() && row.Granted == nil {
		if err := r.wiring.mcp.Reachable(srv); err != nil {
			return 0, err
		}
		r.host.Notice("notice", "MCP server "+fault.Name(name)+" is to be authorized", srv.Again(""))
		return 0, nil
	}
	return r.fetch(ctx, name)
}

// authorizing is what both halves of an authorization begin with: the parts of the call, and the server that its first argument names.
func (w *wiring) authorizing(ctx context.Context, host spi.Host, s spi.Start) (*parts, *mcp.Server, error) {
	p, err := w.parts(host, s)
	if err != nil {
		return nil, nil, err
	}
	row, err := p.store.MCPServer(ctx, stringArg(s, 0))
	if err != nil {
		return nil, nil, err
	}
	srv, err := p.remote.registered(ctx, &row)
	return p, srv, err
}

// beginAuthorization implements aidb_internal.begin_authorization: the address that a person opens in a browser.
func (w *wiring) beginAuthorization(ctx context.Context, host spi.Host, s spi.Start) (int, [][]*string, error) {
	p, srv, err := w.authorizing(ctx, host, s)
	if err != nil {
		return 0, nil, err
	}
	if !srv.OAuth.ByPerson() {
		return 0, nil, fault.New(fault.WrongState, "MCP server %s is not authorized by a person", fault.Name(srv.Name)).
			WithHint(`Its registration says so: aidb.update_mcp_server(oauth => '{"grant": "authorization_code", …}').`)
	}
	bounded, cancel := within(ctx, srv)
	defer cancel()
	a, address, err := w.mcp.Authorize(bounded, srv, stringArg(s, 1))
	if err != nil {
		return 0, nil, err
	}
	text, err := json.Marshal(a)
	if err != nil {
		return 0, nil, fault.Wrap(err, fault.Internal, "authorization of an MCP server cannot be written as JSON")
	}
	if err := p.store.BeginMCPAuthorization(ctx, srv.Name, text); err != nil {
		return 0, nil, err
	}
	return 1, [][]*string{{&address}}, nil
}

// endAuthorization implements aidb_internal.end_authorization: with the address that the browser was sent to, the first token is
// got, and the list of tools fetched with it.
func (w *wiring) endAuthorization(ctx context.Context, host spi.Host, s spi.Start) (int, [][]*string, error) {
	p, srv, err := w.authorizing(ctx, host, s)
	if err != nil {
		return 0, nil, err
	}
	text, _, err := p.store.MCPAuthorization(ctx, srv.Name)
	if err != nil {
		return 0, nil, err
	}
	pending, err := mcp.ParseAuthorization(text)
	if err != nil {
		return 0, nil, err
	}
	if pending == nil || !srv.OAuth.ByPerson() {
		return 0, nil, fault.New(fault.WrongState, "no authorization of MCP server %s is under way", fault.Name(srv.Name)).WithHint("%s", srv.Again(""))
	}
	bounded, cancel := within(ctx, srv)
	defer cancel()
	granted, err := w.mcp.Finish(bounded, srv, pending, stringArg(s, 1))
	if err != nil {
		return 0, nil, err
	}
	if err := p.remote.grant(ctx, srv, granted); err != nil {
		return 0, nil, err
	}
	n, err := p.remote.take(ctx, srv)
	if err != nil {
		return 0, nil, err
	}
	count := strconv.Itoa(n)
	return 1, [][]*string{{&count}}, nil
}
