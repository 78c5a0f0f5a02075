package pgtool

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/decision"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/policy"
	"aidb/extension/internal/spi"
	"aidb/extension/internal/tool"
)

// Limits are the settings that bound a tool call.
type Limits struct {
	Rows    int           // aidb.max_tool_rows
	Bytes   int64         // aidb.max_tool_bytes
	Timeout time.Duration // aidb.tool_timeout; 0 is none but the run's own deadline
}

// Models finds and opens a registered model, for generate_text.
type Models interface {
	OpenByName(ctx context.Context, name string, options json.RawMessage) (agent.Model, error)
}

// Scope is on whose behalf tools run.
type Scope struct {
	Role           string // "" is the caller
	RoleID         string // see purpose.State
	Elevated       bool
	Purpose        string // "" is none
	ReadOnly       bool   // a read-only run
	Debug          bool   // what happens is shown as it does
	Agent          string // "" outside an agent's run
	AgentID        string
	ConversationID string
	Guards         policy.Guards

	// The call in hand, for the guards; see of.
	tool, params string
	expected     *spi.Expected // see foreseen
	// mark notes that a call is about to leave the database, or that it has not left after all; nil: nobody wants to know.
	mark func(ctx context.Context, left bool) error
}

// of is the scope of one call.
func (s Scope) of(t tool.Tool, arguments string) Scope {
	s.tool, s.params = t.Name, params(arguments)
	return s
}

// Runner runs single tools.
type Runner struct {
	Host      spi.Host
	Catalog   Catalog
	Models    Models
	Remote    Remote
	Limits    Limits
	Decisions *decision.Trail
}

// catalogRows is more than the catalog tools return: they have a limit of their own and say when it cut.
const catalogRows = 1000

// Run runs one tool by its name for a person, without an agent: see Admit for what is looked at. The text is what the
// model of an agent would see.
func (r *Runner) Run(ctx context.Context, t tool.Tool, arguments string, s Scope) (string, error) {
	t, _, err := r.Admit(ctx, t, s)
	if err != nil {
		return "", err
	}
	return r.Execute(ctx, t, arguments, s)
}

// Execute checks the arguments and runs the tool.
func (r *Runner) Execute(ctx context.Context, t tool.Tool, arguments string, s Scope) (string, error) {
	if t.Type == tool.MCP {
		return r.remoteText(ctx, t, arguments, s)
	}
	if s.ReadOnly && !t.ReadOnly {
		return "", r.reject(t.Name, "", fault.New(fault.Privilege, "tool %s writes and cannot be used in a read-only run", fault.Name(t.Name)))
	}
	s = s.of(t, arguments)
	args, err := tool.CheckArguments(t, arguments)
	if err != nil {
		return "", r.permitted(ctx, t, args, s, err)
	}
	switch t.Name {
	case sleepTool:
		return r.sleep(ctx, args["seconds"])
	case "generate_text":
		return r.generate(ctx, t, args, s)
	case describeTool, actTool:
		return "", fault.New(fault.Unsupported, "tool %s is for agents only", fault.Name(t.Name))
	}
	result, err := r.perform(ctx, t, args, s, nil)
	if err != nil {
		return "", err
	}
	return render(result), nil
}

// perform runs a tool whose work is one statement; as may say more about the request.
func (r *Runner) perform(ctx context.Context, t tool.Tool, args map[string]json.RawMessage, s Scope, as func(*spi.ToolRequest)) (spi.ToolResult, error) {
	q, err := r.call(ctx, t, args, s)
	if err != nil {
		return spi.ToolResult{}, err
	}
	if as != nil {
		as(&q)
	}
	return r.exec(ctx, t.Name, s, q)
}

// call is the request of a tool whose work is one statement.
func (r *Runner) call(ctx context.Context, t tool.Tool, args map[string]json.RawMessage, s Scope) (spi.ToolRequest, error) {
	switch {
	case t.Type == tool.SQL:
		return r.sqlTool(ctx, t, args, s)
	case t.Name == "run_sql_query":
		return r.statement(ctx, t, text(args["query"]), true, s)
	case t.Name == "execute_sql":
		if s.Agent != "" && s.Purpose == "" {
			return spi.ToolRequest{}, r.reject(t.Name, text(args["statement"]), needsPurpose())
		}
		return r.statement(ctx, t, text(args["statement"]), false, s)
	}
	return r.function(ctx, t, args, s), nil
}

// statement is SQL that the model wrote.
func (r *Runner) statement(ctx context.Context, t tool.Tool, sql string, readOnly bool, s Scope) (spi.ToolRequest, error) {
	if strings.TrimSpace(sql) == "" {
		return spi.ToolRequest{}, r.permitted(ctx, t, nil, s, fault.New(fault.InvalidArgument, "the statement is empty"))
	}
	q := r.request(ctx, t, s)
	q.Statement = sql
	q.ReadOnly = readOnly || s.ReadOnly
	return q, nil
}

// function calls the SQL function behind a native tool, by name and with the arguments given only: the function's
// own defaults stand for the others.
func (r *Runner) function(ctx context.Context, t tool.Tool, args map[string]json.RawMessage, s Scope) spi.ToolRequest {
	var sql strings.Builder
	q := r.request(ctx, t, s)
	name, _, _ := strings.Cut(t.Function, "(")
	sql.WriteString("SELECT * FROM " + name + "(")
	for _, p := range t.Params {
		v, given := args[p.Name]
		if !given || string(v) == "null" {
			continue
		}
		if len(q.Params) > 0 {
			sql.WriteString(", ")
		}
		value := text(v)
		q.Params = append(q.Params, spi.Param{Type: p.Type, Value: &value})
		sql.WriteString(`"` + p.Name + `" => $` + strconv.Itoa(len(q.Params)))
	}
	sql.WriteString(")")
	q.Statement = sql.String()
	q.Trusted = true
	q.ReadOnly = t.ReadOnly
	q.MaxRows = max(q.MaxRows, catalogRows)
	return q
}

func (r *Runner) request(ctx context.Context, t tool.Tool, s Scope) spi.ToolRequest {
	q := spi.ToolRequest{
		Role: s.Role, RoleID: s.RoleID, Elevated: s.Elevated, Function: t.Function, Agent: s.Agent, ConversationID: s.ConversationID,
		MaxRows: r.Limits.Rows, MaxBytes: r.Limits.Bytes, Timeout: timeout(ctx, r.Limits.Timeout), Expected: s.expected,
	}
	s.guard(&q)
	return q
}

// timeout is what is left of the run, at most the limit of a tool call. Never 0, which would be no limit.
func timeout(ctx context.Context, limit time.Duration) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return limit
	}
	left := max(time.Until(deadline), time.Millisecond)
	if limit > 0 && limit < left {
		return limit
	}
	return left
}

func (r *Runner) generate(ctx context.Context, t tool.Tool, args map[string]json.RawMessage, s Scope) (string, error) {
	passage, err := r.Pass(ctx, t, s)
	if err != nil {
		return "", err
	}
	answer, err := r.Generate(ctx, text(args["model_name"]), text(args["input"]), args["inference_config"])
	if err != nil && neverLeft(err) {
		if e := passage.Undo(ctx); e != nil {
			return "", e
		}
	}
	return answer, err
}

// Generate sends one text to a model and returns its answer.
func (r *Runner) Generate(ctx context.Context, model, input string, options json.RawMessage) (string, error) {
	m, err := r.Models.OpenByName(ctx, model, options)
	if err != nil {
		return "", err
	}
	reply, err := m.Complete(ctx, agent.Request{Messages: []conversation.Message{{Role: conversation.User, Content: input}}})
	if err != nil {
		return "", err
	}
	return conversation.Clean(reply.Content), nil
}

// text is an argument as the text that PostgreSQL reads: the contents of a JSON string, the JSON of all else.
func text(v json.RawMessage) string {
	if len(v) > 0 && v[0] == '"' {
		var s string
		if json.Unmarshal(v, &s) == nil {
			return conversation.Clean(s) // PostgreSQL's text has no NUL
		}
	}
	return string(v)
}
