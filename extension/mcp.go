package main

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"aidb/extension/internal/decision"
	"aidb/extension/internal/egress"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/mcp"
	"aidb/extension/internal/pgstore"
	"aidb/extension/internal/pgtool"
	"aidb/extension/internal/secretfile"
	"aidb/extension/internal/spi"
	"aidb/extension/internal/tool"
	"aidb/extension/internal/wire"
)

// remote joins the MCP client with the registry: it implements pgtool.Remote.
type remote struct {
	wiring *wiring
	host   spi.Host
	store  *pgstore.Store
	start  spi.Start
	limits pgtool.Limits
	// settled: see gate.
	settled func(context.Context) error
}

// Admit implements pgtool.Remote. Everything is read from the catalog as it is now.
func (r *remote) Admit(ctx context.Context, t tool.Tool, s pgtool.Scope) (pgtool.RemoteCall, error) {
	if r.start.ReadOnly || r.start.InRecovery {
		return nil, &pgtool.Denial{Reason: decision.PreExecutionRejected, Err: fault.New(fault.WrongState,
			"tool %s of an MCP server cannot be used in a read-only transaction", fault.Name(t.Name)).WithState("25006")}
	}
	row, ok, err := r.store.MCPTool(ctx, t.Name, s.Purpose)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, withdrawn(t)
	}
	if err := admitted(t, row, s); err != nil {
		return nil, err
	}
	srv, err := r.server(ctx, &row.Server)
	if err != nil {
		return nil, err
	}
	return &remoteCall{remote: r, server: srv, tool: t, row: row, scope: s}, nil
}

func admitted(t tool.Tool, row pgstore.MCPTool, s pgtool.Scope) error {
	switch {
	case !row.Allowed:
		return &pgtool.Denial{Reason: decision.ServerNotAllowed, Err: fault.New(fault.Privilege,
			"MCP server %s is not allowed for purpose %s", fault.Name(t.Server), fault.Name(s.Purpose))}
	case row.Waits:
		return quarantined(t)
	}
	return nil
}

func quarantined(t tool.Tool) error {
	return &pgtool.Denial{Reason: decision.Quarantined, Err: fault.New(fault.Privilege,
		"tool %s is in quarantine: MCP server %s has changed its definition", fault.Name(t.Name), fault.Name(t.Server)).
		WithHint("Whoever owns the server can accept it with aidb.approve_mcp_tool.")}
}

func withdrawn(t tool.Tool) error {
	return &mcp.Failure{Outcome: mcp.NeverSent, Err: fault.New(fault.NotFound, "tool %s is not offered by MCP server %s any more", fault.Name(t.Name), fault.Name(t.Server))}
}

// server is a registered server with its secrets, ready to be used.
func (r *remote) server(ctx context.Context, row *pgstore.MCPServer) (*mcp.Server, error) {
	srv, err := r.registered(ctx, row)
	if err != nil || !srv.OAuth.ByPerson() {
		return srv, err
	}
	granted, err := mcp.ParseAuthorization(row.Granted)
	if err != nil {
		return nil, err
	}
	if granted == nil {
		return nil, srv.NotAuthorized()
	}
	srv.OAuth.Use(r.wiring.mcp.Newest(granted))
	return srv, nil
}

// registered is a server with its secrets, which are read now and not kept.
func (r *remote) registered(ctx context.Context, row *pgstore.MCPServer) (*mcp.Server, error) {
	text := string(row.Headers)
	switch {
	case row.HeadersEnv != "":
		value, err := r.host.Secret(ctx, "env", row.HeadersEnv)
		if err != nil {
			return nil, err
		}
		text = value
	case row.HeadersFile != "":
		path, err := r.host.Secret(ctx, "file", row.HeadersFile)
		if err != nil {
			return nil, err
		}
		if text, err = secretfile.Read(path); err != nil {
			return nil, err
		}
	}
	oauth, headers, err := mcp.ParseOAuth(row.OAuth, text)
	if err != nil {
		return nil, err
	}
	srv := &mcp.Server{
		Name: row.Name, URL: row.URL, Transport: row.Transport, Headers: headers, OAuth: oauth, Timeout: row.Timeout, Concurrency: row.Concurrency,
		AnswersDefaults: row.Elicitation,
		User:            strconv.Itoa(len(r.start.Caller)) + ":" + r.start.Caller + r.start.Principal, Turns: gate{r.host, "mcp_server", row.Name, r.settled},
	}
	if srv.Timeout == 0 {
		srv.Timeout = r.limits.Timeout
	}
	return srv, nil
}

// remoteCall is one admitted call.
type remoteCall struct {
	remote *remote
	server *mcp.Server
	tool   tool.Tool
	row    pgstore.MCPTool
	scope  pgtool.Scope
}

// About implements pgtool.RemoteCall.
func (c *remoteCall) About() decision.Remote {
	return decision.Remote{URL: wire.WithoutSecrets(c.server.URL), Transport: c.server.Transport, Session: c.server.Session}
}

// Send implements pgtool.RemoteCall. A list that is too old, or that the server has said to be, is fetched first: a tool is
// called only as long as it is what was approved.
func (c *remoteCall) Send(ctx context.Context, arguments json.RawMessage) (pgtool.RemoteResult, error) {
	r := c.remote
	if c.row.Server.Age < 0 || c.row.Server.Age > r.wiring.stale() || r.wiring.mcp.Changed(c.server) {
		if err := c.recheck(ctx); err != nil {
			return pgtool.RemoteResult{}, err
		}
	}
	var result *mcp.Result
	err := r.exchange(ctx, c.server, func() (err error) {
		result, err = r.wiring.mcp.Call(ctx, c.server, c.row.Tool, arguments, c.told())
		return err
	})
	if err != nil {
		return pgtool.RemoteResult{}, egressDenial(err)
	}
	return pgtool.RemoteResult{Text: result.Text(r.limits.Bytes), JSON: result.JSON(r.limits.Bytes), Failed: result.Failed}, nil
}

// recheck fetches the server's list. When it cannot be had, what is known of it stands, however old.
func (c *remoteCall) recheck(ctx context.Context) error {
	listing, err := c.remote.list(ctx, c.server)
	if err != nil {
		if ctx.Err() != nil || errors.Is(err, spi.ErrGone) {
			return err
		}
		return nil
	}
	if _, _, err := c.remote.keep(ctx, c.server.Name, listing, false); errors.Is(err, spi.ErrGone) {
		return err
	}
	for _, d := range listing.Tools {
		if d.Name == c.row.Tool {
			if d.Hash != c.row.Hash {
				return quarantined(c.tool)
			}
			return nil
		}
	}
	return withdrawn(c.tool)
}

// told shows the progress of a call in a run that shows its steps.
func (c *remoteCall) told() func(mcp.Progress) {
	if !c.scope.Debug {
		return nil
	}
	return func(p mcp.Progress) {
		text := "[tool_progress] " + c.tool.Name + " " + strconv.FormatFloat(p.Done, 'f', -1, 64)
		if p.Total > 0 {
			text += " of " + strconv.FormatFloat(p.Total, 'f', -1, 64)
		}
		if p.Message != "" {
			text += ": " + p.Message
		}
		c.remote.host.Notice("notice", text, "")
	}
}

// egressDenial gives a call that our own address checks refused its reason.
func egressDenial(err error) error {
	if errors.Is(err, egress.ErrDenied) {
		return &pgtool.Denial{Reason: decision.EgressDenied, Err: err}
	}
	return err
}

// keep stores a list.
func (r *remote) keep(ctx context.Context, server string, l *mcp.Listing, wait bool) (int, bool, error) {
	type definition struct {
		Tool        string          `json:"tool"`
		Description string          `json:"description"`
		Schema      json.RawMessage `json:"schema"`
		Output      json.RawMessage `json:"output,omitempty"`
		Hash        string          `json:"hash"`
	}
	definitions := make([]definition, 0, len(l.Tools))
	for _, d := range l.Tools {
		definitions = append(definitions, definition{d.Name, d.Description, d.Schema, d.Output, d.Hash})
	}
	list, err := json.Marshal(definitions)
	if err != nil {
		return 0, false, fault.Wrap(err, fault.Internal, "a list of tools cannot be written as JSON")
	}
	info, err := json.Marshal(l.Info)
	if err != nil {
		return 0, false, fault.Wrap(err, fault.Internal, "a list of tools cannot be written as JSON")
	}
	return r.store.StoreMCPTools(ctx, server, list, info, wait)
}

// fetch fetches the list of a server's tools and stores it.
func (r *remote) fetch(ctx context.Context, name string) (int, error) {
	row, err := r.store.MCPServer(ctx, name)
	if err != nil {
		return 0, err
	}
	srv, err := r.server(ctx, &row)
	if err != nil {
		return 0, err
	}
	return r.take(ctx, srv)
}

// take fetches the list of a server that is ready to be used.
func (r *remote) take(ctx context.Context, srv *mcp.Server) (int, error) {
	l, err := r.list(ctx, srv)
	if err != nil {
		return 0, err
	}
	if len(l.LeftOut) > 0 {
		const shown = 5
		text := strings.Join(l.LeftOut[:min(shown, len(l.LeftOut))], "; ")
		if len(l.LeftOut) > shown {
			text += "; and " + strconv.Itoa(len(l.LeftOut)-shown) + " more"
		}
		r.host.Notice("warning", "tools of MCP server "+fault.Name(srv.Name)+" are left out: "+text, "")
	}
	n, ok, err := r.keep(ctx, srv.Name, l, true)
	if err == nil && !ok {
		err = fault.New(fault.NotFound, "MCP server %s not found", fault.Name(srv.Name))
	}
	return n, err
}

// find returns the tool of that name. When there is none, it may be that a server offers it since its list was fetched:
// lists that are too old are fetched, and it is looked up again.
func (r *remote) find(ctx context.Context, name string) ([]tool.Tool, error) {
	tools, err := r.store.Tools(ctx, []string{name})
	if err != nil || len(tools) > 0 || r.start.ReadOnly || r.start.InRecovery {
		return tools, err
	}
	stale, err := r.store.Stale(ctx, r.wiring.stale())
	if err != nil || len(stale) == 0 {
		return nil, err
	}
	for _, server := range stale {
		if _, err := r.fetch(ctx, server); errors.Is(err, spi.ErrGone) {
			return nil, err
		}
	}
	r.store.Forget()
	return r.store.Tools(ctx, []string{name})
}

func (w *wiring) stale() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.staleAfter
}

// fetchMCPTools fetches a server's list. One that is being registered, and that a person has to authorize, may not have been.
func (w *wiring) fetchMCPTools(ctx context.Context, host spi.Host, s spi.Start) (int, [][]*string, error) {
	p, err := w.parts(host, s)
	if err != nil {
		return 0, nil, err
	}
	name, registering := stringArg(s, 0), boolArg(s, 1)
	n := 0
	if registering != nil && *registering {
		n, err = p.remote.register(ctx, name)
	} else {
		n, err = p.remote.fetch(ctx, name)
	}
	if err != nil {
		return 0, nil, err
	}
	count := strconv.Itoa(n)
	return 1, [][]*string{{&count}}, nil
}

// getMCPTools lists every tool as an MCP server would.
func (w *wiring) getMCPTools(ctx context.Context, host spi.Host, s spi.Start) (int, [][]*string, error) {
	p, err := w.parts(host, s)
	if err != nil {
		return 0, nil, err
	}
	names, err := p.store.ToolNames(ctx)
	if err != nil {
		return 0, nil, err
	}
	tools, err := p.store.Tools(ctx, names)
	if err != nil {
		return 0, nil, err
	}
	outputs, err := p.store.MCPOutputSchemas(ctx)
	if err != nil {
		return 0, nil, err
	}
	rows := make([][]*string, 0, len(tools))
	for _, t := range tools {
		if !t.Quarantined {
			schema := string(t.InputSchema())
			var output *string
			if o := t.OutputSchema(); o != nil {
				outputs[t.Name] = string(o)
			}
			if text, ok := outputs[t.Name]; ok {
				output = &text
			}
			rows = append(rows, []*string{&t.Name, &t.Description, &schema, output})
		}
	}
	return 4, rows, nil
}
