package pgtool

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"

	"aidb/extension/internal/decision"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/spi"
	"aidb/extension/internal/tool"
)

// Refused is the error of a tool call that was denied: what stopped it, and the decision that says so.
type Refused struct {
	Err    error
	ID     uuid.UUID
	Reason string
}

func (e *Refused) Error() string { return e.Err.Error() }

// Unwrap returns the error that stopped the call.
func (e *Refused) Unwrap() error { return e.Err }

// exec runs a tool's SQL and records the decision: allowed, with what came of it, or denied, with the reason. Whether
// a call was allowed is told by what stopped it: an allowed statement that then fails stays allowed.
func (r *Runner) exec(ctx context.Context, toolName string, s Scope, q spi.ToolRequest) (spi.ToolResult, error) {
	started := r.now()
	result, err := r.Host.Tool(ctx, q)
	if errors.Is(err, spi.ErrOtherwise) {
		return result, err // it was not made, and will be
	}
	if err == nil {
		r.passed(toolName, s, q, result)
	}
	d := decision.Record{
		At: started, Tool: toolName, Point: decision.SQLExec, Role: q.Role, Status: decision.Allowed, Query: q.Statement,
		Attempted: !q.Trusted && decision.Attempts(q.Statement), Duration: r.now().Sub(started),
	}
	if err == nil {
		n := result.Affected
		if result.ReturnsRows {
			n = int64(len(result.Rows))
		}
		d.Rows = &n
		r.Decisions.Add(d)
		return result, nil
	}
	if errors.Is(err, spi.ErrGone) {
		return result, err
	}
	d.SQLState = fault.SQLState(err)
	if refused := r.refused(d, err); refused != nil {
		return result, refused
	}
	r.Decisions.Add(d)
	return result, err
}

// refused records a refusal, of which d has what is known besides; nil when the error is none.
func (r *Runner) refused(d decision.Record, err error) error {
	var refusal *spi.Refusal
	if !errors.As(err, &refusal) || refusal.Reason == "" {
		return nil
	}
	d.Status, d.Reason = decision.Denied, refusal.Reason
	if refusal.Reason == decision.PolicyDenied {
		d.Point = decision.Policy
	}
	if what := object(refusal); what != "" {
		d.Object = what
	}
	d.Attempted = d.Attempted || refusal.Reason == decision.EscalationBlocked
	return &Refused{Err: err, ID: r.Decisions.Add(d), Reason: refusal.Reason}
}

// stopped records a call that was refused before it had a statement to run. Any other error is nobody's decision.
func (r *Runner) stopped(t tool.Tool, q spi.ToolRequest, err error) error {
	d := decision.Record{At: r.now(), Tool: t.Name, Point: decision.SQLExec, Role: q.Role, SQLState: fault.SQLState(err)}
	if t.Type == tool.MCP {
		d.Point, d.Object = decision.MCPCall, t.Server
	}
	if refused := r.refused(d, err); refused != nil {
		return refused
	}
	return err
}

// reject records a call that did not get as far as the database.
func (r *Runner) reject(toolName, statement string, err *fault.Error) error {
	reason := decision.PreExecutionRejected
	if decision.Switches(statement) {
		reason = decision.EscalationBlocked
	}
	return r.deny(toolName, statement, reason, err)
}

// deny is reject with a reason of its own.
func (r *Runner) deny(toolName, statement, reason string, err *fault.Error) error {
	id := r.Decisions.Add(decision.Record{
		At: r.now(), Tool: toolName, Point: decision.SQLExec, Status: decision.Denied, Reason: reason,
		Query: statement, Attempted: decision.Attempts(statement), SQLState: fault.SQLState(err),
	})
	return &Refused{Err: err, ID: id, Reason: reason}
}

func (r *Runner) now() time.Time { return time.Now() }

// object is what was refused, as far as the server's message says so: the last word of "permission denied for table
// orders" is the name whatever the language.
func object(e *spi.Refusal) string {
	if e.Table != "" {
		return strings.TrimPrefix(e.Schema+"."+e.Table, ".")
	}
	if e.Reason != decision.EnginePrivilegeDenied {
		return ""
	}
	words := strings.Fields(e.Fault.Message)
	if len(words) < 2 {
		return ""
	}
	return strings.Trim(words[len(words)-1], `"'.`)
}
