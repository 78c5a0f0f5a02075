package agent

// Delegation: an agent's delegates are tools of its model, and a call of one is a run of that agent within the run, in
// the same call of agent_converse. What crosses the handoff:
//
//	the caller, read-only, debug    as they are
//	what tools run as               the run's above, whatever the delegate's own purpose is; under
//	                                aidb.delegation_role = 'narrowest' the delegate's own, if that removes rights
//	time                            the delegate's own budget, and never more than what is left to the run above
//	the tree's budget, quotas       what is left of them
//	everything else                 the delegate's own: instructions, model, tools, other budgets, output type, log
//
// What goes wrong in a delegate is a failed tool call for the one above, with one exception: a chain that is too deep
// ends every run of it, because it is most likely a circle that any of their models would only begin again.

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/google/uuid"

	"aidb/extension/internal/conversation"
	"aidb/extension/internal/decision"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/purpose"
	"aidb/extension/internal/tool"
)

const (
	// maxDelegations is how many delegations a chain may have.
	maxDelegations = 10
	// maxDescription bounds the instructions of a delegate as the description of a tool, in bytes: some providers
	// refuse more.
	maxDescription = 1000
)

// errTooDeep is the cause of the error of a chain that is too deep.
var errTooDeep = errors.New("too many delegations")

// delegates is a toolbox with the agents that a run may hand work to.
type delegates struct {
	Toolbox
	run   *run
	tools map[string]tool.Tool
	specs []ToolSpec
}

// addDelegates puts the agent's delegates beside its tools. One that was deleted or disabled since is not offered; a
// call of it is answered as that of any unknown tool.
func (r *run) addDelegates(ctx context.Context) error {
	found, err := r.service.Store.Delegates(ctx, r.def.Delegates)
	if err != nil {
		return err
	}
	own := r.toolbox.Specs()
	d := &delegates{Toolbox: r.toolbox, run: r, tools: make(map[string]tool.Tool, len(found))}
	d.specs = append(make([]ToolSpec, 0, len(own)+len(found)), own...)
	taken := make(map[string]bool, len(own))
	for i := range own {
		taken[own[i].Name] = true
	}
	for _, f := range found {
		if taken[f.Name] {
			continue
		}
		t := delegateTool(f)
		d.tools[f.Name] = t
		d.specs = append(d.specs, ToolSpec{Name: t.Name, Description: t.Description, Parameters: t.InputSchema()})
	}
	r.toolbox = d
	return nil
}

func delegateTool(f Delegate) tool.Tool {
	description := fault.Cut(strings.TrimSpace(f.Instructions), maxDescription)
	if description == "" {
		description = "Another agent."
	}
	return tool.Tool{Name: f.Name, Description: description, Params: []tool.Parameter{
		{Name: "prompt", Type: "text", Required: true,
			Description: "What this agent is asked to do, with all that it needs to know: it does not see this conversation."},
		{Name: "conversation_id", Type: "text",
			Description: "From an earlier result of this tool, to go on with that conversation. Leave it out to begin a new one."},
	}}
}

// Specs implements Toolbox.
func (d *delegates) Specs() []ToolSpec { return d.specs }

// Call implements Toolbox.
func (d *delegates) Call(ctx context.Context, call conversation.ToolCall, n int) (Result, error) {
	if t, ok := d.tools[call.Name]; ok {
		return d.delegate(ctx, t, call)
	}
	return d.Toolbox.Call(ctx, call, n)
}

// delegate hands a call to another agent, if the temporal policies let it through. They are asked twice: before anything
// is looked at, without a trace, and again when the other agent is about to begin, which is when the call counts.
func (d *delegates) delegate(ctx context.Context, t tool.Tool, call conversation.ToolCall) (Result, error) {
	begun, err := d.run.hasDelegated(ctx)
	if err != nil {
		return Result{}, err
	}
	if begun { // and counted
		return d.run.delegate(t, call.Arguments, func() (*Result, error) { return nil, nil })
	}
	refusal, err := d.Pass(ctx, call, true)
	if err != nil || refusal != nil {
		return result(refusal), err
	}
	return d.run.delegate(t, call.Arguments, func() (*Result, error) { return d.Pass(ctx, call, false) })
}

func result(r *Result) Result {
	if r == nil {
		return Result{}
	}
	return *r
}

// delegate runs another agent. It runs under the call's own context and not under that of the tool call, so that a
// delegate whose time is over still ends its task in order.
func (r *run) delegate(t tool.Tool, arguments string, pass func() (*Result, error)) (Result, error) {
	prompt, conversationID, err := handoff(t, arguments)
	if err != nil {
		return Result{Error: err.Error()}, nil
	}
	if r.depth == maxDelegations {
		err := fault.Wrap(errTooDeep, fault.LimitExceeded, "delegation depth limit (%d) exceeded", maxDelegations)
		r.decide(t.Name, r.acting, err, decision.DelegationDepth)
		return Result{}, err
	}
	readOnly := r.readOnly
	child, err := r.service.prepare(r.whole, Call{
		Agent: t.Name, Prompt: prompt, ConversationID: conversationID, ReadOnly: &readOnly, Debug: r.call.Debug,
		InRecovery: r.call.InRecovery, Caller: r.call.Caller,
	}, r)
	var out Outcome
	if err != nil {
		out, err = refused(r.whole, err)
	} else if child.past != nil && child.past.End != nil {
		out = *child.past.End // it had ended before this run was cut off
	} else {
		if child.denied == nil {
			if refusal, err := pass(); err != nil || refusal != nil {
				return result(refusal), err
			}
		}
		out, err = r.runWithin(child)
	}
	switch {
	case err != nil:
		r.raised = err
		return Result{}, err
	case child != nil && child.failure != nil && errors.Is(child.failure, errTooDeep):
		return Result{}, child.failure
	case out.Parked:
		return Result{Waits: true}, nil
	case out.Error != nil:
		return Result{Error: *out.Error, Used: child.used()}, nil
	}
	return Result{
		Contents: answerObject(*out.Message, out.ConversationID), Gist: *out.Message, Used: child.used(), Declined: child.declined(),
	}, nil
}

// hasDelegated reports whether the call in hand was begun before the run was cut off: the delegate has a task.
func (r *run) hasDelegated(ctx context.Context) (bool, error) {
	id, resumed := r.service.backgroundTask(r)
	if !resumed {
		return false, nil
	}
	past, err := r.service.Background.Past(ctx, id)
	return past != nil, err
}

// declined says that a person declined what the run proposed, as far as that is how it ended.
func (r *run) declined() string {
	switch {
	case r.state != nil:
		return r.state.declined
	case r.past != nil:
		return r.past.Declined
	}
	return ""
}

// used is what a run and all below it used; nothing of one that could not begin.
func (r *run) used() Used {
	if r == nil || r.state == nil {
		return Used{}
	}
	return r.state.spent.all()
}

// handoff reads the arguments of a delegation. An empty id is none: many models fill in every argument there is.
func handoff(t tool.Tool, arguments string) (prompt string, conversationID *string, err error) {
	args, err := tool.CheckArguments(t, arguments)
	if err != nil {
		return "", nil, err
	}
	if id := strings.TrimSpace(text(args["conversation_id"])); id != "" {
		conversationID = &id
	}
	return conversation.Clean(text(args["prompt"])), conversationID, nil
}

// text is an argument that was checked to be a string, or is not there.
func text(raw json.RawMessage) (s string) {
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// runWithin runs a prepared delegate to its end.
func (r *run) runWithin(child *run) (Outcome, error) {
	id := uuid.Nil
	if child.denied != nil || !child.resumed() { // what goes on was recorded when it began
		id = r.decide(child.def.Name, child.acting, child.denied, decision.PurposeRefused)
	}
	if r.service.Decisions != nil {
		defer r.service.Decisions.Enter(child.def.Name)()
	}
	out, err := child.do(r.whole)
	if err == nil && child.denied != nil && id != uuid.Nil {
		text := *out.Error + decisionMark + id.String() + "]"
		out.Error = &text
	}
	return out, err
}

// decide records a delegation: allowed, or denied because of an error.
func (r *run) decide(delegate string, as purpose.Acting, refusal error, reason string) uuid.UUID {
	if r.service.Decisions == nil {
		return uuid.Nil
	}
	d := decision.Record{
		At: r.service.Clock.Now(), Tool: delegate, Point: decision.Delegation, Role: as.Role, Status: decision.Allowed, Object: delegate,
	}
	if refusal != nil {
		d.Status, d.Reason, d.SQLState = decision.Denied, reason, fault.SQLState(refusal)
	}
	return r.service.Decisions.Add(d)
}

// under makes the run one that works for another.
func (r *run) under(ctx context.Context, parent *run) error {
	r.parent, r.depth, r.bound = parent, parent.depth+1, parent.hard()
	r.acting = parent.acting
	r.allowances = parent.state.handDown()
	if parent.journal != nil {
		id := parent.task.ID
		r.task.Parent = &id
	}
	if !r.service.Narrowest || r.def.Purpose == nil {
		return nil
	}
	own, err := purpose.Resolve(r.def.Purpose)
	if err != nil {
		r.denied = err
		return nil
	}
	above := parent.acting.Role
	if above == "" {
		above = r.call.Caller.Role
	}
	narrower, err := r.service.Store.Narrower(ctx, own.Role, above)
	if err == nil && narrower {
		r.acting = own
	}
	return err
}

// root is the run that the person called.
func (r *run) root() *run {
	for r.parent != nil {
		r = r.parent
	}
	return r
}

// idle checks that a conversation is not one that this run, or one above it, is in the middle of: what was said there
// so far is not written yet.
func (r *run) idle(id uuid.UUID) error {
	for ; r != nil; r = r.parent {
		if r.journal != nil && r.task.ConversationID == id {
			return fault.New(fault.WrongState, "conversation '%s' is in use by this very call", id)
		}
	}
	return nil
}

// answerObject is a delegate's answer as the model above sees it.
func answerObject(answer string, conversationID *string) string {
	id := "null"
	if conversationID != nil {
		id = conversation.Quote(*conversationID)
	}
	return `{"answer": ` + conversation.Quote(answer) + `, "conversation_id": ` + id + `}`
}
