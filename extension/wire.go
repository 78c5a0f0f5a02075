package main

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/decision"
	"aidb/extension/internal/egress"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/mcp"
	"aidb/extension/internal/model/anthropic"
	"aidb/extension/internal/model/dummy"
	"aidb/extension/internal/model/openai"
	"aidb/extension/internal/model/responses"
	"aidb/extension/internal/pgstore"
	"aidb/extension/internal/pgtool"
	"aidb/extension/internal/purpose"
	"aidb/extension/internal/safego"
	"aidb/extension/internal/spi"
	"aidb/extension/internal/telemetry"
	"aidb/extension/internal/wire"
)

// wiring joins the core with the adapters. A new provider or function of the SQL API is a line here.
type wiring struct {
	group     safego.Group
	transport *wire.Transport
	openai    *openai.Provider
	responses *responses.Provider
	anthropic *anthropic.Provider
	dummy     *dummy.Provider
	mcp       *mcp.Pool

	natives pgstore.Natives

	mu        sync.Mutex
	limits    pgtool.Limits
	spans     telemetry.Client
	about     telemetry.Resource
	broken    error // a setting that cannot be used; said by every call that needs it
	redaction redaction
	// staleAfter is aidb.mcp_stale_after.
	staleAfter time.Duration
	// narrowest is aidb.delegation_role = 'narrowest'.
	narrowest bool
	purpose   string // aidb.default_purpose
	// patience is aidb.confirmation_ttl.
	patience time.Duration
	// durable is aidb.audit = 'durable'.
	durable bool
}

func newWiring() *wiring {
	t := wire.NewTransport(wire.Options{})
	return &wiring{
		transport: t, openai: openai.NewProvider(t), responses: responses.NewProvider(t), anthropic: anthropic.NewProvider(t), dummy: dummy.NewProvider(),
		mcp: mcp.NewPool(mcp.Options{}),
	}
}

// functions are the SQL functions that are implemented in Go (LANGUAGE c, symbol aidb_go_call), by name.
var functions = map[string]func(*wiring, context.Context, spi.Host, spi.Start) (int, [][]*string, error){
	"agent_converse":      (*wiring).agentConverse,
	"run_tool":            (*wiring).runTool,
	"run_sql_query":       (*wiring).nativeTool,
	"execute_sql":         (*wiring).nativeTool,
	"sleep":               (*wiring).nativeTool,
	"generate_text":       (*wiring).generateText,
	"generate_text_batch": (*wiring).generateTextBatch,
	"confirm_action":      (*wiring).confirmAction,
	"reject_action":       (*wiring).rejectAction,
	"undo_action":         (*wiring).undoAction,
	"expire_actions":      (*wiring).expireActions,
	"probe_model":         (*wiring).probeModel,
	"run_task":            (*wiring).runTask,
	"check_pattern":       (*wiring).checkPattern,
	"fetch_mcp_tools":     (*wiring).fetchMCPTools,
	"get_mcp_tools":       (*wiring).getMCPTools,
	"begin_authorization": (*wiring).beginAuthorization,
	"end_authorization":   (*wiring).endAuthorization,
	"test_go":             (*wiring).testHook,
}

// prefetch is what the main thread looks up before a function starts, so that its first question needs no round trip.
var prefetch = map[string]string{"agent_converse": pgstore.AgentLookup}

func (w *wiring) handle(ctx context.Context, host spi.Host, s spi.Start) (int, [][]*string, error) {
	f, ok := functions[s.Function]
	if !ok {
		return 0, nil, fault.New(fault.Internal, "function %s is not known to the Go library", fault.Name(s.Function)).
			WithHint("aidb.so and aidb_go.so are of different versions: install both again.")
	}
	columns, rows, err := f(w, ctx, host, s)
	return columns, rows, w.redactError(err)
}

// configure takes over the settings that the server sent.
func (w *wiring) configure(values map[string]string) {
	number := func(name string) int64 {
		n, err := strconv.ParseInt(values[name], 10, 64)
		if err != nil {
			return 0
		}
		return n
	}
	list, err := egress.Parse(values["egress_allowlist"])
	policy := egress.Policy{List: list, Parameter: values["egress_parameter"], AllowInsecure: values["allow_insecure_egress"] == "t"}
	proxy := egress.Proxy{HTTP: values["https_proxy"], HTTPS: values["https_proxy"], Except: values["no_proxy"]}
	w.transport.Reconfigure(wire.Options{
		Egress:           policy,
		AllowInsecureTLS: values["allow_insecure_tls"] == "t",
		Proxy:            proxy,
		CAFile:           values["ca_file"],
		MaxBodyBytes:     number("max_model_bytes"),
		Retry: wire.Retry{
			Tries: retries(number("model_retries")), Base: time.Duration(number("model_retry_delay_ms")) * time.Millisecond,
		},
		RequestTimeout: time.Duration(number("model_timeout_ms")) * time.Millisecond,
		Limits: wire.Limits{
			Concurrent: int(number("model_max_concurrent_requests")), Requests: int(number("model_requests_per_minute")), Tokens: number("model_tokens_per_minute"),
		},
	})
	policy.PublicOnly = true
	w.mcp.Reconfigure(mcp.Options{Egress: policy, Proxy: proxy, CAFile: values["ca_file"], MaxBytes: number("max_mcp_bytes")})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = err
	w.patience = time.Duration(number("confirmation_ttl")) * time.Second
	w.staleAfter = time.Duration(number("mcp_stale_after_s")) * time.Second
	w.narrowest = values["delegation_role"] == "narrowest"
	w.redaction.off = values["redaction"] == "f"
	w.purpose = values["default_purpose"]
	w.durable = values["audit"] == "durable"
	w.spans = telemetry.Client(values["otel_client"])
	w.about.DatabaseName, w.about.DatabaseOID, w.about.SessionID = values["database_name"], values["database_oid"], values["session_id"]
	w.limits = pgtool.Limits{
		Rows: int(number("max_tool_rows")), Bytes: number("max_tool_bytes"),
		Timeout: time.Duration(number("tool_timeout_ms")) * time.Millisecond,
	}
}

// retries turns the setting into the adapter's option, where 0 means the default and -1 none.
func retries(n int64) int {
	if n == 0 {
		return -1
	}
	return int(n)
}

func (w *wiring) confirmationTTL() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.patience
}

func (w *wiring) delegatesNarrow() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.narrowest
}

func (w *wiring) defaultPurpose() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.purpose
}

func (w *wiring) current() (pgtool.Limits, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.limits, w.broken
}

// closeIdle closes the connections that no run uses.
func (w *wiring) closeIdle() { w.transport.Close() }

func (w *wiring) agentConverse(ctx context.Context, host spi.Host, s spi.Start) (int, [][]*string, error) {
	p, err := w.parts(host, s)
	if err != nil {
		return 0, nil, err
	}
	service := &agent.Service{
		Store: p.store, Models: p.models, Toolboxes: w.toolboxes(p),
		Actions:    p.approvals(),
		NewJournal: func() agent.Journal { return p.store.Journal(p.trail) }, Clock: agent.SystemClock{}, IDs: agent.UUIDv7{}, Tracer: tracer{host, w.redact},
		Decisions: p.trail, Narrowest: w.delegatesNarrow(), OpenModel: p.models.OpenNamed, Redact: w.redact,
	}
	call := agent.Call{
		Agent: stringArg(s, 0), Prompt: stringArg(s, 1), ConversationID: arg(s, 2), ReadOnly: boolArg(s, 3),
		OutputType: rawArg(s, 4), InRecovery: s.InRecovery, CannotWrite: s.ReadOnly,
		Caller: agent.Caller{Role: s.Caller, SessionUser: s.SessionUser, Principal: s.Principal, Superuser: s.Superuser},
	}
	if debug := boolArg(s, 5); debug != nil {
		call.Debug = *debug
	}
	p.trail.Base.Agent = call.Agent
	out, err := service.Converse(ctx, call)
	if counted := p.account(ctx, err == nil); err == nil {
		err = counted
	}
	if err != nil {
		return 0, nil, err
	}
	if err := p.record(ctx); err != nil {
		return 0, nil, err
	}
	w.export(ctx, p, call, out)
	return 3, [][]*string{{out.Message, out.ConversationID, out.Error}}, nil
}

// toolboxes opens the toolboxes of a call.
func (w *wiring) toolboxes(p *parts) *pgtool.Opener {
	return &pgtool.Opener{
		Catalog: p.store, Runner: p.runner, Actions: p.store, Describer: p.store, IDs: agent.UUIDv7{}, Random: random, TTL: w.confirmationTTL(),
	}
}

func (w *wiring) runTool(ctx context.Context, host spi.Host, s spi.Start) (int, [][]*string, error) {
	arguments := "{}"
	if a := arg(s, 1); a != nil {
		arguments = *a
	}
	return w.oneTool(ctx, host, s, stringArg(s, 0), arguments)
}

// nativeTool stands behind the functions that are native tools themselves: their one argument by its name.
func (w *wiring) nativeTool(ctx context.Context, host spi.Host, s spi.Start) (int, [][]*string, error) {
	name := map[string]string{"run_sql_query": "query", "execute_sql": "statement", "sleep": "seconds"}[s.Function]
	arguments := map[string]any{}
	if a := arg(s, 0); a != nil {
		arguments[name] = *a
	}
	text, err := json.Marshal(arguments)
	if err != nil {
		return 0, nil, fault.Wrap(err, fault.Internal, "arguments cannot be written as JSON")
	}
	return w.oneTool(ctx, host, s, s.Function, string(text))
}

// oneTool runs a tool as the caller, or under aidb.default_purpose. Its failure is raised.
func (w *wiring) oneTool(ctx context.Context, host spi.Host, s spi.Start, name, arguments string) (int, [][]*string, error) {
	p, err := w.parts(host, s)
	if err != nil {
		return 0, nil, err
	}
	tools, err := p.remote.find(ctx, name)
	if err != nil {
		return 0, nil, err
	}
	if len(tools) == 0 {
		return 0, nil, fault.New(fault.NotFound, "tool %s not found in aidb.tools", fault.Name(name)).
			WithHint("A tool of an MCP server can be brought back with aidb.refresh_mcp_tools().")
	}
	scope, err := p.defaultScope(ctx, w.defaultPurpose())
	if err != nil {
		return 0, nil, err
	}
	if err := p.store.LoadRedactions(ctx); err != nil {
		return 0, nil, err
	}
	result, err := p.runner.RunJSON(ctx, tools[0], arguments, scope)
	if counted := p.account(ctx, err == nil); err == nil {
		err = counted
	}
	if err != nil {
		p.log()
		return 0, nil, err
	}
	if err := p.record(ctx); err != nil {
		return 0, nil, err
	}
	return 1, [][]*string{{&result}}, nil
}

// defaultScope is that of a tool outside an agent's run.
func (p *parts) defaultScope(ctx context.Context, name string) (pgtool.Scope, error) {
	if name == "" {
		return pgtool.Scope{}, nil
	}
	state, err := p.store.Purpose(ctx, name)
	if err != nil {
		return pgtool.Scope{}, err
	}
	p.trail.Base.Purpose = name
	as, err := purpose.Resolve(&state)
	if err != nil {
		p.trail.Add(decision.Record{
			At: time.Now(), Tool: stringArg(p.start, 0), Point: decision.SQLExec, Status: decision.Denied,
			Reason: decision.PurposeRefused, SQLState: fault.SQLState(err),
		})
		p.log()
		return pgtool.Scope{}, err
	}
	return pgtool.Scope{Role: as.Role, RoleID: as.RoleID, Elevated: as.Elevated, Purpose: name}, nil
}

func (w *wiring) generateText(ctx context.Context, host spi.Host, s spi.Start) (int, [][]*string, error) {
	answers, err := w.generate(ctx, host, s, []*string{arg(s, 1)})
	return 1, answers, err
}

func (w *wiring) generateTextBatch(ctx context.Context, host spi.Host, s spi.Start) (int, [][]*string, error) {
	var inputs []*string
	if a := arg(s, 1); a != nil {
		rows, err := host.Batch(ctx, spi.Statement{SQL: "SELECT u FROM unnest($1::text[]) WITH ORDINALITY t(u, n) ORDER BY n", Args: []any{*a}})
		if err != nil {
			return 0, nil, err
		}
		for _, row := range rows[0].Values {
			inputs = append(inputs, row[0])
		}
	}
	answers, err := w.generate(ctx, host, s, inputs)
	return 1, answers, err
}

func (w *wiring) generate(ctx context.Context, host spi.Host, s spi.Start, inputs []*string) ([][]*string, error) {
	p, err := w.parts(host, s)
	if err != nil {
		return nil, err
	}
	answers := make([][]*string, 0, len(inputs))
	for _, input := range inputs {
		if input == nil {
			answers = append(answers, []*string{nil})
			continue
		}
		answer, err := p.runner.Generate(ctx, stringArg(s, 0), *input, rawArg(s, 2))
		if err != nil {
			p.log()
			_ = p.account(ctx, false) // which writes nothing
			return nil, err
		}
		answers = append(answers, []*string{&answer})
	}
	if err := p.account(ctx, true); err != nil {
		return nil, err
	}
	return answers, p.record(ctx)
}

// probeModel finds out what a registered model is good for, as cheaply as its provider allows.
func (w *wiring) probeModel(ctx context.Context, host spi.Host, s spi.Start) (int, [][]*string, error) {
	p, err := w.parts(host, s)
	if err != nil {
		return 0, nil, err
	}
	p.models.probing = true
	m, err := p.models.OpenByName(ctx, stringArg(s, 0), nil)
	if err != nil {
		return 0, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if v, ok := agent.Unmetered(m).(interface{ Validate(context.Context) error }); ok {
		if err := v.Validate(ctx); err != nil {
			return 0, nil, err
		}
	}
	capability := "language"
	return 1, [][]*string{{&capability}}, nil
}

func arg(s spi.Start, i int) *string {
	if i < len(s.Args) {
		return s.Args[i]
	}
	return nil
}

func stringArg(s spi.Start, i int) string {
	if a := arg(s, i); a != nil {
		return *a
	}
	return ""
}

func boolArg(s spi.Start, i int) *bool {
	a := arg(s, i)
	if a == nil {
		return nil
	}
	b := *a == "t"
	return &b
}

func rawArg(s spi.Start, i int) json.RawMessage {
	if a := arg(s, i); a != nil {
		return json.RawMessage(*a)
	}
	return nil
}
