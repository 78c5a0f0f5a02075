package pgtool

import (
	"context"
	"encoding/json"
	"errors"

	"aidb/extension/internal/approval"
	"aidb/extension/internal/decision"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/spi"
	"aidb/extension/internal/tool"
)

// Every call passes the same checks in the same order, whoever makes it (the model directly, a step of act, a person's
// confirmation):
//
//	Admit   the switch and the class; the agent is enabled and has the tool     read from the catalog now
//	May     the role: the caller is a member, and it may use the tool           read from the catalog now
//	        the temporal policies                                               as their sessions stand now
//	        only then the arguments
//	Execute the sandbox, where role and privileges are checked once more
//
// May is a question of its own only where arguments are wrong or where nothing is run yet; otherwise Execute asks it.

// Admit reads how the tool stands now and refuses, or says whether a person must be asked. The tool it returns is the one
// that is to be used: its definition may have changed since the run began.
func (r *Runner) Admit(ctx context.Context, t tool.Tool, s Scope) (tool.Tool, approval.Verdict, error) {
	if t.Name == sleepTool { // touches nothing, and is everybody's
		return t, approval.Run, nil
	}
	standing, err := r.Catalog.Standing(ctx, s.AgentID, t)
	if err != nil {
		return t, approval.Run, err
	}
	standing.Agent = s.Agent
	verdict, reason, refusal := standing.Judge(t.Name)
	if refusal != nil {
		return t, verdict, r.deny(t.Name, "", reason, refusal)
	}
	if standing.Known && standing.Version != t.Version {
		fresh, err := r.Catalog.Fresh(ctx, t.Name)
		if err != nil || fresh == nil {
			return t, verdict, err
		}
		t = *fresh
	}
	return t, verdict, nil
}

// foreseen runs a tool that the run knows to be permitted, as things stood when it began or at an earlier call, without
// asking first how they stand: what must be so still is sent along, and looked at before anything runs. So a call is one
// exchange with the main thread, and the look is part of the transaction's step that has the effect. done is false when
// things are not known or have changed, and nothing has happened.
func (r *Runner) foreseen(ctx context.Context, t tool.Tool, arguments string, s Scope) (contents string, done bool, err error) {
	if !statementOnly(t) || (s.ReadOnly && !t.ReadOnly) {
		return "", false, nil
	}
	standing, expected, err := r.Catalog.Foresee(s.AgentID, t)
	if err != nil || expected == nil {
		return "", false, err
	}
	standing.Agent = s.Agent
	verdict, _, refusal := standing.Judge(t.Name)
	if refusal != nil || verdict != approval.Run || standing.Version != t.Version {
		return "", false, nil
	}
	s.expected = expected
	contents, err = r.Execute(ctx, t, arguments, s)
	if errors.Is(err, spi.ErrOtherwise) {
		return "", false, nil
	}
	return contents, true, err
}

// statementOnly says whether whatever is done with the tool is asked of the database: its work is a statement, and nothing
// refuses it before.
func statementOnly(t tool.Tool) bool {
	switch t.Name {
	case sleepTool, describeTool, actTool, "generate_text", "execute_sql":
		return false
	}
	return t.Type != tool.MCP
}

// May asks whether the role may use the tool, and its policies permit it, without running it and without a look at
// arguments. It leaves no trace when they do.
func (r *Runner) May(ctx context.Context, t tool.Tool, s Scope) error { return r.may(ctx, t, nil, s) }

// may is May which reads the values of those arguments of a SQL tool that are given.
func (r *Runner) may(ctx context.Context, t tool.Tool, args map[string]json.RawMessage, s Scope) error {
	q := r.request(ctx, t, s)
	q.CheckOnly, q.Probe = true, true
	switch {
	case t.Type == tool.MCP:
		if _, err := r.Remote.Admit(ctx, t, s); err != nil {
			d := decision.Record{At: r.now(), Tool: t.Name, Point: decision.MCPCall, Role: s.Role, Object: t.Server}
			return r.denied(&d, err)
		}
		q.ReadOnly = s.Role == "" && len(s.Guards) == 0 // nothing runs as the caller
	case t.Type == tool.SQL:
		q.Statement, q.ReadOnly, q.OwnStatement = t.Statement, t.ReadOnly, true
		for i := range t.Types {
			p := spi.Param{Type: t.Types[i]}
			if _, given := args[t.Params[i].Name]; given {
				if bound, err := param(t, i, args); err == nil {
					p = bound
				}
			}
			q.Params = append(q.Params, p)
		}
	case t.Name == sleepTool || t.Name == describeTool || t.Name == actTool:
		return nil
	case t.Name == "execute_sql" && s.Agent != "" && s.Purpose == "":
		return r.reject(t.Name, "", needsPurpose())
	default:
		q.ReadOnly = t.ReadOnly
	}
	result, err := r.Host.Tool(ctx, q)
	if err != nil {
		return r.stopped(t, q, err)
	}
	r.passed(t.Name, s, q, result)
	return nil
}

func needsPurpose() *fault.Error {
	return fault.New(fault.Privilege, "tool 'execute_sql' needs an agent with a purpose").
		WithHint("Give the agent a purpose whose role may do what it is for.")
}
