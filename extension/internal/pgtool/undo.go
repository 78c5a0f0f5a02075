package pgtool

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/uuid"

	"aidb/extension/internal/approval"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/spi"
	"aidb/extension/internal/tool"
)

// Undo takes back what a confirmed action did: all of it, or nothing.
func (p *Approvals) Undo(ctx context.Context, id uuid.UUID) ([]approval.Outcome, error) {
	a, _, err := p.Store.Action(ctx, id, p.Person.Role)
	if err != nil {
		return nil, err
	}
	if err := approval.MayUndo(a, p.Person); err != nil {
		return nil, err
	}
	defer p.enter(a)()
	done := slices.DeleteFunc(slices.Clone(a.Outcomes), func(o approval.Outcome) bool { return o.Status != approval.StepSuccess })
	slices.Reverse(done)
	for _, o := range done {
		t, err := p.Runner.Catalog.Fresh(ctx, o.Tool)
		switch {
		case err != nil:
			return nil, err
		case t == nil || !strings.HasPrefix(a.Proofs[o.Step-1].Digest, approval.Bound(t.Digest(), "")):
			return nil, fault.New(fault.WrongState, "tool %s has changed since the action ran: it cannot be undone", fault.Name(o.Tool))
		case t.Undo == nil && !t.ReadOnly:
			return nil, fault.New(fault.WrongState, "tool %s has no undo statement", fault.Name(o.Tool))
		}
	}
	if err := p.Runner.Host.Scope(ctx, spi.ScopeBegin); err != nil {
		return nil, err
	}
	var undone []approval.Outcome
	failed := false
	for _, o := range done {
		u, err := p.undo(ctx, a, a.Steps[o.Step-1], o)
		if err != nil {
			return nil, err
		}
		undone = append(undone, u)
		if failed = u.Status != approval.StepSuccess; failed {
			break
		}
	}
	if failed {
		for i := range undone[:len(undone)-1] {
			undone[i] = approval.Outcome{Step: undone[i].Step, Tool: undone[i].Tool, Status: approval.StepCanceled, Error: "taken back: the undo of another step failed"}
		}
		return undone, p.Runner.Host.Scope(ctx, spi.ScopeUndo)
	}
	if err := p.Runner.Host.Scope(ctx, spi.ScopeKeep); err != nil {
		return nil, err
	}
	a.Status, a.Outcomes = approval.Undone, undone
	return undone, p.decided(ctx, a, approval.WasUndone, "")
}

func (p *Approvals) undo(ctx context.Context, a *approval.Action, s approval.Step, was approval.Outcome) (approval.Outcome, error) {
	o := approval.Outcome{Step: s.N, Tool: s.Tool}
	t, scope, err := p.admit(ctx, a, s)
	if t.Undo == nil {
		scope.Guards = nil // it only read: there is nothing to take back
	}
	scope.tool = undoCall + scope.tool
	if err == nil {
		err = p.Runner.May(ctx, t, scope)
	}
	if err == nil && t.Undo == nil {
		o.Status = approval.StepSuccess
		return o, nil
	}
	var args map[string]json.RawMessage
	if err == nil {
		args, err = tool.CheckArguments(t, string(s.Args))
	}
	var q spi.ToolRequest
	if err == nil {
		q, err = p.Runner.companion(ctx, t, t.Undo, args, map[string]json.RawMessage{tool.Returned: was.Result}, scope)
	}
	var result spi.ToolResult
	if err == nil {
		scope.guard(&q)
		result, err = p.Runner.exec(ctx, t.Name, scope, q)
	}
	if err != nil {
		o, _, err = p.stopped(ctx, o, err)
		return o, err
	}
	o.Status, o.Result = approval.StepSuccess, json.RawMessage(render(result))
	return o, nil
}

// undoCall and the tool's name is what an undo is called in a temporal policy: a step like any other, which needs a transition.
const undoCall = "undo:"
