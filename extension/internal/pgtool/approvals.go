package pgtool

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/google/uuid"

	"aidb/extension/internal/approval"
	"aidb/extension/internal/decision"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/policy"
	"aidb/extension/internal/purpose"
	"aidb/extension/internal/spi"
	"aidb/extension/internal/tool"
)

// ActionStore keeps actions. What it reads of one is locked until the transaction ends, so that of two who decide at once
// the second sees what the first did.
type ActionStore interface {
	SaveAction(ctx context.Context, a *approval.Action, decisionID uuid.UUID) error
	// Action returns nil when there is none; approves says that the role is a member of each of its approvers.
	Action(ctx context.Context, id uuid.UUID, role string) (a *approval.Action, approves bool, err error)
	// OpenActions are those of a conversation that wait or that the model has not been told the end of, oldest first.
	OpenActions(ctx context.Context, root uuid.UUID) ([]*approval.Action, error)
	// AwaitedAction is the one that a background task waits for; nil and busy: somebody is deciding it at this moment.
	AwaitedAction(ctx context.Context, id uuid.UUID) (a *approval.Action, busy bool, err error)
	// OverdueActions are some of those that wait although their time is over.
	OverdueActions(ctx context.Context, limit int) ([]*approval.Action, error)
	// Decide writes the status and outcomes of an action that was decided, its event, and takes its token away, unless it expired:
	// whoever has that one is told so.
	Decide(ctx context.Context, a *approval.Action, e approval.Event, by approval.Person, decisionID uuid.UUID) error
	// MarkSent notes that the call of a step is about to leave the database, or (left false) that it certainly did not after all.
	// The note stays when the transaction is rolled back, as far as the server has a background worker.
	MarkSent(ctx context.Context, action uuid.UUID, step int, left bool) error
	// SentSteps are those that have left, in a confirmation that was rolled back.
	SentSteps(ctx context.Context, action uuid.UUID) ([]int, error)
	// Told marks actions of which the model is told.
	Told(ctx context.Context, ids []uuid.UUID) error
	// Acting is the purpose that an action's tools ran under, as it is now; held says that its agent still has it.
	Acting(ctx context.Context, a *approval.Action) (state *purpose.State, held bool, err error)
	// PolicyDigest changes with every policy that counts for an action, and with which those are.
	PolicyDigest(ctx context.Context, a *approval.Action) (string, error)
	Words(ctx context.Context) ([]approval.Word, error)
}

// Approvals is what a person does with the actions that wait for them.
type Approvals struct {
	Store  ActionStore
	Runner *Runner
	Person approval.Person
}

// Confirm says yes to an action and runs it.
func (p *Approvals) Confirm(ctx context.Context, id uuid.UUID, token string) ([]approval.Outcome, error) {
	a, approves, err := p.Store.Action(ctx, id, p.Person.Role)
	if err != nil {
		return nil, err
	}
	if err := approval.MayConfirm(a, p.Person, approves, token, p.Runner.now()); err != nil {
		return nil, err
	}
	defer p.enter(a)()
	if err := p.confirm(ctx, a); err != nil {
		return nil, err
	}
	return a.Outcomes, nil
}

// enter makes the decisions that follow those of an action, until what it returns is called. They are of no task: that one
// has ended.
func (p *Approvals) enter(a *approval.Action) (leave func()) {
	trail := p.Runner.Decisions
	leave = trail.Enter(a.Agent)
	trail.Base.Purpose, trail.Base.ConversationID = a.Purpose, a.Conversation.String()
	return leave
}

func (p *Approvals) confirm(ctx context.Context, a *approval.Action) error {
	changed := false
	var done []approval.Outcome
	sent, err := p.sent(ctx, a)
	if err != nil {
		return err
	}
	if len(sent) > 0 {
		a.Status, a.Outcomes = approval.Stopped, approval.SentBefore(a.Steps, sent)
		return p.decided(ctx, a, approval.WasConfirmed, "")
	}
	for i, s := range a.Steps {
		o, void, err := p.step(ctx, a, s, a.Proofs[i], a.Previews[i])
		if err != nil {
			return err
		}
		done, changed = append(done, o), changed || void
		if o.Status != approval.StepSuccess {
			break
		}
	}
	a.Status = approval.Ended(len(a.Steps), done, changed && len(done) == 1)
	a.Outcomes = approval.Rest(a.Steps, done)
	reason := ""
	if a.Status == approval.Void {
		reason = decision.ActionVoid
	}
	return p.decided(ctx, a, approval.WasConfirmed, reason)
}

// decided records a decision about an action, and writes it.
func (p *Approvals) decided(ctx context.Context, a *approval.Action, e approval.Event, reason string) error {
	d := decision.Record{At: p.Runner.now(), Tool: toolNames(a), Point: decision.Approval, Status: decision.Allowed, Object: about(a, e)}
	if reason != "" {
		d.Status, d.Reason = decision.Denied, reason
	}
	return p.Store.Decide(ctx, a, e, p.Person, p.Runner.Decisions.Add(d))
}

// step checks a step from the start, from the catalog as it is now and for whoever confirms, and runs it. void: its tool is
// not what the preview was made with.
func (p *Approvals) step(ctx context.Context, a *approval.Action, s approval.Step, proof approval.Proof, shown approval.Preview) (approval.Outcome, bool, error) {
	o := approval.Outcome{Step: s.N, Tool: s.Tool, Status: approval.StepDenied}
	t, scope, err := p.admit(ctx, a, s)
	if err == nil {
		err = p.Runner.May(ctx, t, scope)
	}
	if err != nil {
		return p.stopped(ctx, o, err)
	}
	policies, err := p.Store.PolicyDigest(ctx, a)
	if err != nil {
		return o, false, err
	}
	if approval.Bound(t.Digest(), policies) != proof.Digest {
		o.Error = "the tool or a policy has changed since the preview: nothing was run; ask the agent again"
		return o, true, nil
	}
	args, err := tool.CheckArguments(t, string(s.Args))
	if err != nil {
		return p.stopped(ctx, o, err)
	}
	host := p.Runner.Host
	if err := host.Scope(ctx, spi.ScopeBegin); err != nil {
		return o, false, err
	}
	result, differs, err := p.perform(ctx, t, args, string(s.Args), scope, proof, shown)
	end := spi.ScopeKeep
	// what may have left the database keeps what the policies have noted of it
	if differs || (err != nil && proof.Kind != approval.PreviewArguments) {
		end = spi.ScopeUndo
	}
	if e := host.Scope(ctx, end); e != nil {
		return o, false, e
	}
	if err != nil {
		return p.stopped(ctx, o, err)
	}
	o.Status, o.Result = approval.StepSuccess, result
	if differs {
		o.Status, o.Error = approval.StepError, "what it would do now is not what the preview showed: it was not done; ask the agent again"
	}
	return o, false, nil
}

// admit finds the tool of a step and the scope that it runs in, and asks what is asked of the tool and the agent.
func (p *Approvals) admit(ctx context.Context, a *approval.Action, s approval.Step) (tool.Tool, Scope, error) {
	scope := Scope{Agent: a.Agent, AgentID: a.AgentID.String(), ConversationID: a.Conversation.String()}
	fresh, err := p.Runner.Catalog.Fresh(ctx, s.Tool)
	if err != nil {
		return tool.Tool{}, scope, err
	}
	if fresh == nil {
		return tool.Tool{}, scope, p.Runner.deny(s.Tool, "", approval.ToolNotAssigned, fault.New(fault.NotFound, "tool %s does not exist any more", fault.Name(s.Tool)))
	}
	t, _, err := p.Runner.Admit(ctx, *fresh, scope)
	if err != nil {
		return t, scope, err
	}
	state, held, err := p.Store.Acting(ctx, a)
	if err != nil {
		return t, scope, err
	}
	if !held {
		return t, scope, p.Runner.deny(s.Tool, "", decision.PurposeRefused,
			fault.New(fault.Privilege, "agent %s does not have the purpose any more that the action was proposed under", fault.Name(a.Agent)))
	}
	acting, refusal := purpose.Resolve(state)
	if refusal != nil {
		var e *fault.Error
		if !errors.As(refusal, &e) {
			return t, scope, refusal
		}
		return t, scope, p.Runner.deny(s.Tool, "", decision.PurposeRefused, e)
	}
	scope.Role, scope.RoleID, scope.Elevated, scope.Purpose = acting.Role, acting.RoleID, acting.Elevated, acting.Purpose
	for _, m := range a.Machines {
		scope.Guards = append(scope.Guards, &policy.Machine{Conversation: m.Conversation, Policy: m.Policy})
	}
	scope.mark = p.mark(a, s.N)
	return t, scope.of(t, string(s.Args)), nil
}

// stopped is the outcome of a step that an error stopped, unless the error is the engine's.
func (p *Approvals) stopped(ctx context.Context, o approval.Outcome, err error) (approval.Outcome, bool, error) {
	var not *unmarked
	if errors.Is(err, spi.ErrGone) || ctx.Err() != nil {
		return o, false, err
	}
	if errors.As(err, &not) {
		return o, false, not.error
	}
	var refused *Refused
	if errors.As(err, &refused) {
		o.Status, o.Error = approval.StepDenied, "no longer permitted: "+failure(err)
		return o, false, nil
	}
	o.Status, o.Error = approval.StepError, failure(err)
	return o, false, nil
}

// perform runs a step and compares it with what was shown. result is the tool's, or both when they differ.
func (p *Approvals) perform(ctx context.Context, t tool.Tool, args map[string]json.RawMessage, arguments string, s Scope, proof approval.Proof,
	shown approval.Preview,
) (result json.RawMessage, differs bool, err error) {
	if proof.Kind == approval.PreviewArguments {
		contents, err := p.Runner.Execute(ctx, t, arguments, s)
		return jsonOf(contents), false, err
	}
	now, seen, err := p.Runner.trial(ctx, t, args, s, false)
	if err != nil {
		return nil, false, err
	}
	if !t.AllowMismatch && !proof.Matches(seen) {
		return json.RawMessage(asJSON(map[string]any{"preview": shown, "execution": json.RawMessage(render(now))})), true, nil
	}
	if proof.Kind == approval.PreviewStatement { // that only was the preview
		if now, err = p.Runner.perform(ctx, t, args, s, nil); err != nil {
			return nil, false, err
		}
	}
	return json.RawMessage(render(now)), false, nil
}

// Reject says no to an action.
func (p *Approvals) Reject(ctx context.Context, id uuid.UUID) error {
	a, approves, err := p.Store.Action(ctx, id, p.Person.Role)
	if err != nil {
		return err
	}
	if err := approval.MayReject(a, p.Person, approves, p.Runner.now()); err != nil {
		return err
	}
	defer p.enter(a)()
	a.Status = approval.Rejected
	return p.decided(ctx, a, approval.WasRejected, decision.ActionRejected)
}

// maxExpired is how many actions one call lets expire.
const maxExpired = 1000

// Expire writes down that actions have expired, whoever they waited for.
func (p *Approvals) Expire(ctx context.Context) (int, error) {
	due, err := p.Store.OverdueActions(ctx, maxExpired)
	if err != nil {
		return 0, err
	}
	for _, a := range due {
		if err := p.expire(ctx, a); err != nil {
			return 0, err
		}
	}
	return len(due), nil
}

// expire writes down that an action has expired, whoever comes by: it is nobody's act, and on record for whom it waited for.
func (p *Approvals) expire(ctx context.Context, a *approval.Action) error {
	defer p.enter(a)()
	who := *p
	if a.Requester.Role != "" { // else the role is another one now
		who.Person = a.Requester
		base := &p.Runner.Decisions.Base
		base.Caller, base.SessionUser, base.Principal, base.Role = a.Requester.Role, a.Requester.SessionUser, a.Requester.Principal, a.Requester.Role
	}
	a.Status = approval.Expired
	return who.decided(ctx, a, approval.WasExpired, decision.ActionExpired)
}
