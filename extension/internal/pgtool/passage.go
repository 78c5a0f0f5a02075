package pgtool

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"aidb/extension/internal/decision"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/policy"
	"aidb/extension/internal/spi"
	"aidb/extension/internal/tool"
)

// guard puts the machines of the call's temporal policies into a request: they are asked in the subtransaction of the
// statement, so that both stay or neither.
func (s Scope) guard(q *spi.ToolRequest) {
	if len(s.Guards) == 0 || policy.Exempt(s.tool) {
		return
	}
	q.Tool, q.ToolParams = s.tool, s.params
	for _, m := range s.Guards {
		q.Guards = append(q.Guards, spi.Guard{Session: m.Conversation, Policy: m.Policy, State: m.State})
	}
}

// passed takes over what the guards said of a call that they let through.
func (r *Runner) passed(toolName string, s Scope, q spi.ToolRequest, result spi.ToolResult) {
	question := q.Probe && (q.CheckOnly || q.Statement == "")
	for i, g := range result.Guarded {
		if !q.Probe && i < len(s.Guards) && s.Guards[i].Conversation == "" {
			s.Guards[i].State = g.To
		}
		if g.WouldDeny != "" && !question {
			r.Decisions.Add(decision.Record{
				At: r.now(), Tool: toolName, Point: decision.Policy, Role: q.Role, Status: decision.Allowed,
				Object: "policy " + q.Guards[i].Policy + ", state " + g.From + ", log_only: " + g.WouldDeny,
			})
		}
	}
}

// ask is a request for the right to call a tool, and nothing else: the privilege of the role first, then the policies.
func (r *Runner) ask(ctx context.Context, t tool.Tool, s Scope, probe bool) (spi.ToolResult, error) {
	q := r.request(ctx, t, s)
	q.ReadOnly, q.Probe = t.ReadOnly, probe
	result, err := r.Host.Tool(ctx, q)
	if err == nil {
		r.passed(t.Name, s, q, result)
		return result, nil
	}
	return result, r.stopped(t, q, err)
}

// permitted asks whether the call would be let through and leaves no trace when it would. It returns the refusal, else
// problem: whoever may not run a tool is told that, and not what is wrong with the arguments. Who may is told what the database says
// of the values of the other arguments, args, at the same time.
func (r *Runner) permitted(ctx context.Context, t tool.Tool, args map[string]json.RawMessage, s Scope, problem error) error {
	if t.Type == tool.SQL {
		for i := range t.Params {
			if _, err := param(t, i, args); err != nil {
				problem = tool.AlsoWrong(t, problem, err)
				delete(args, t.Params[i].Name)
			}
		}
	}
	err := r.may(ctx, t, args, s)
	if err == nil {
		return problem
	}
	if class := fault.SQLState(err)[:2]; class == "22" || class == "23" {
		return tool.AlsoWrong(t, problem, err)
	}
	return err
}

// Passage is a call that the policies let through and whose effect is outside the database.
type Passage struct {
	host   spi.Host
	events []string
	guards policy.Guards
	before []string // states of machines in memory
}

// Pass asks for the right to call a tool whose effect the database cannot take back, before its request leaves. The call
// counts from then on; Undo takes that back.
func (r *Runner) Pass(ctx context.Context, t tool.Tool, s Scope) (*Passage, error) {
	p := &Passage{host: r.Host, guards: s.Guards}
	for _, m := range s.Guards {
		p.before = append(p.before, m.State)
	}
	result, err := r.ask(ctx, t, s, false)
	if err != nil {
		return nil, err
	}
	for _, g := range result.Guarded {
		if g.Event != "" {
			p.events = append(p.events, g.Event)
		}
	}
	return p, nil
}

// Undo takes the call back. It is for one whose request certainly never left: the connection was refused, the name not
// resolved, our own checks stopped it.
func (p *Passage) Undo(ctx context.Context) error {
	for i, m := range p.guards {
		if m.Conversation == "" {
			m.State = p.before[i]
		}
	}
	if len(p.events) == 0 {
		return nil
	}
	_, err := p.host.Batch(ctx, spi.Statement{SQL: "SELECT aidb_internal.undo_events($1::bigint[])", Args: []any{p.list()}})
	p.events = nil
	return err
}

// Unknown records that nobody knows whether the call had its effect: it timed out, or the connection was lost, after the
// request was sent. The call counts.
func (p *Passage) Unknown(ctx context.Context) error {
	if len(p.events) == 0 {
		return nil
	}
	_, err := p.host.Batch(ctx, spi.Statement{
		SQL:  "UPDATE aidb_internal.session_events SET outcome = 'unknown' WHERE id = ANY ($1::bigint[])",
		Args: []any{p.list()},
	})
	return err
}

func (p *Passage) list() string { return "{" + strings.Join(p.events, ",") + "}" }

// params is a call's arguments as an event keeps them: a JSON object that the server's jsonb takes. Arguments that are
// none are refused by whoever checks them; the policies are asked first all the same.
func params(arguments string) string {
	if strings.TrimSpace(arguments) == "" {
		return "{}"
	}
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &object) != nil || object == nil {
		return "{}"
	}
	if !strings.Contains(arguments, `\u`) {
		return arguments
	}
	// Decoding and encoding replaces halves of characters; jsonb has no NUL either.
	var v any
	d := json.NewDecoder(strings.NewReader(arguments))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return "{}"
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(withoutNUL(v)) != nil {
		return "{}"
	}
	return strings.TrimSpace(b.String())
}

func withoutNUL(v any) any {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, "\x00", "")
	case []any:
		for i := range v {
			v[i] = withoutNUL(v[i])
		}
		return v
	case map[string]any:
		clean := make(map[string]any, len(v))
		for k, e := range v {
			clean[strings.ReplaceAll(k, "\x00", "")] = withoutNUL(e)
		}
		return clean
	}
	return v
}

// neverLeft reports whether a model's failure happened before anything was sent.
func neverLeft(err error) bool {
	return fault.Is(err, fault.NotFound, fault.InvalidArgument, fault.Privilege, fault.WrongState, fault.Unsupported)
}
