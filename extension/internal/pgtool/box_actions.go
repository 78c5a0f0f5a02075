package pgtool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/approval"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/decision"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/spi"
	"aidb/extension/internal/tool"
)

const (
	describeTool = "describe_actions"
	actTool      = "act"
	// sampleRows is how many rows a preview shows.
	sampleRows = 10
)

// planned is a step with the tool that it calls.
type planned struct {
	approval.Step
	tool tool.Tool
	args map[string]json.RawMessage
}

// one runs a single call, or parks it.
func (b *box) one(ctx context.Context, t tool.Tool, arguments string) (agent.Result, error) {
	if contents, done, err := b.runner.foreseen(ctx, t, arguments, b.scope); done || err != nil {
		return agent.Result{Contents: contents}, err
	}
	t, verdict, err := b.runner.Admit(ctx, t, b.scope)
	if err != nil {
		return agent.Result{}, err
	}
	if verdict == approval.Ask {
		if strings.TrimSpace(arguments) == "" {
			arguments = "{}"
		}
		return b.propose(ctx, []planned{{Step: approval.Step{N: 1, Tool: t.Name, Args: json.RawMessage(conversation.CleanJSON(arguments))}, tool: t}})
	}
	if t.Name == sleepTool && b.opener.Steps != nil {
		now := b.runner.now()
		end, _ := ctx.Deadline()
		if r := rest(t, arguments, now, now, end); r != nil {
			return *r, nil
		}
	}
	contents, err := b.runner.Execute(ctx, t, arguments, b.scope)
	return agent.Result{Contents: contents}, err
}

// act runs a plan. If a step needs a person's yes nothing of it runs: the whole plan waits.
func (b *box) act(ctx context.Context, arguments string) (agent.Result, error) {
	steps, err := approval.ParsePlan(conversation.CleanJSON(arguments))
	if err != nil {
		return agent.Result{}, err
	}
	plan := make([]planned, len(steps))
	ask := false
	for i, s := range steps {
		t, ok := b.tools[s.Tool]
		if !ok || s.Tool == actTool || s.Tool == describeTool {
			return agent.Result{}, fault.New(fault.NotFound, "step %d: tool %s not found; the tools are: %s", s.N, fault.Name(s.Tool), b.names())
		}
		t, verdict, err := b.runner.Admit(ctx, t, b.scope)
		if err != nil {
			return agent.Result{}, inStep(s, err)
		}
		plan[i] = planned{Step: s, tool: t}
		ask = ask || verdict == approval.Ask
	}
	if ask {
		return b.propose(ctx, plan)
	}
	if err := b.prepareAll(ctx, plan); err != nil {
		return agent.Result{}, err
	}
	var done []approval.Outcome
	for _, s := range plan {
		contents, err := b.runner.Execute(ctx, s.tool, string(s.Args), b.scope)
		if err != nil && (errors.Is(err, spi.ErrGone) || ctx.Err() != nil) {
			return agent.Result{}, err
		}
		if err != nil {
			done = append(done, approval.Outcome{Step: s.N, Tool: s.Tool, Status: approval.StepError, Error: failure(err)})
			return agent.Result{Error: fmt.Sprintf("step %d of %d failed; the steps before it stand: %s", s.N, len(plan), asJSON(approval.Rest(steps, done)))}, nil
		}
		done = append(done, approval.Outcome{Step: s.N, Tool: s.Tool, Status: approval.StepSuccess, Result: jsonOf(contents)})
	}
	return agent.Result{Contents: asJSON(done)}, nil
}

// prepare is what is asked of a plan before it is tried. A single call that is tried as it is asks by that itself, as a call that is
// run does; only where its arguments are wrong the right to call comes first.
func (b *box) prepare(ctx context.Context, plan []planned) error {
	if len(plan) > 1 || !alone(plan) {
		return b.prepareAll(ctx, plan)
	}
	s := &plan[0]
	args, err := tool.CheckArguments(s.tool, string(s.Args))
	if err != nil {
		return b.runner.permitted(ctx, s.tool, args, b.scope.of(s.tool, string(s.Args)), err)
	}
	s.args = args
	return nil
}

// alone reports whether a plan is one call that is previewed by running it, so that one request does all of it.
func alone(plan []planned) bool {
	return len(plan) == 1 && plan[0].tool.Preview == nil && triable(plan[0].tool)
}

// triable reports whether running a tool and taking it back shows what it does.
func triable(t tool.Tool) bool {
	return t.Type == tool.SQL || t.Name == "execute_sql" || t.Name == "run_sql_query"
}

// prepareAll asks for every step whether the role may run it, and only then looks at the arguments of any. Under a temporal policy
// those of a later step are looked at when it is its turn, since only then it is known whether the policy permits it.
func (b *box) prepareAll(ctx context.Context, plan []planned) error {
	for _, s := range plan {
		scope := b.scope.of(s.tool, string(s.Args))
		if s.N > 1 {
			scope.Guards = nil // what may follow the steps before it is seen when they are tried
		}
		if err := b.runner.May(ctx, s.tool, scope); err != nil {
			return b.named(plan, s, err)
		}
	}
	for i, s := range plan {
		if i > 0 && len(b.scope.Guards) > 0 {
			break // what the policies say of the steps behind is not known before this one has run
		}
		args, err := tool.CheckArguments(s.tool, string(s.Args))
		if err != nil {
			return b.named(plan, s, err)
		}
		plan[i].args = args
	}
	return nil
}

// ready is prepare for a step behind others that have been tried: the policies, then the arguments.
func (b *box) ready(ctx context.Context, s *planned) (err error) {
	if s.args != nil {
		return nil
	}
	if err := b.runner.May(ctx, s.tool, b.scope.of(s.tool, string(s.Args))); err != nil {
		return err
	}
	s.args, err = tool.CheckArguments(s.tool, string(s.Args))
	return err
}

// named says which step of a plan an error is about; a single call needs no number.
func (b *box) named(plan []planned, s planned, err error) error {
	if len(plan) == 1 {
		return err
	}
	return inStep(s.Step, err)
}

// propose previews a plan and parks it. The model learns that it waits, and the preview; the token is nobody's but the
// person's, who finds it in aidb.pending_actions.
func (b *box) propose(ctx context.Context, plan []planned) (agent.Result, error) {
	if b.scope.ReadOnly {
		return agent.Result{}, b.runner.reject(plan[0].Tool, "", fault.New(fault.Privilege,
			"tool %s waits for a person's confirmation, which a read-only run cannot ask for", fault.Name(plan[0].Tool)))
	}
	if err := b.prepare(ctx, plan); err != nil {
		return agent.Result{}, err
	}
	now := b.runner.now()
	a := &approval.Action{
		ID: b.actionID(), Conversation: b.request.ConversationID, Root: b.request.RootConversationID, Task: b.request.TaskID,
		AgentID: b.request.AgentID, RootAgentID: b.request.RootAgentID, Agent: b.scope.Agent, Purpose: b.scope.Purpose,
		Requester: approval.Person{Role: b.request.Caller.Role, SessionUser: b.request.Caller.SessionUser, Principal: b.request.Caller.Principal},
		Status:    approval.Pending, CreatedAt: now, ExpiresAt: now.Add(b.opener.TTL),
	}
	for _, s := range plan {
		a.Steps = append(a.Steps, s.Step)
		if s.tool.Approver != "" && !slices.Contains(a.Approvers, s.tool.Approver) {
			a.Approvers = append(a.Approvers, s.tool.Approver)
		}
	}
	for _, m := range b.scope.Guards {
		a.Machines = append(a.Machines, approval.Machine{Conversation: m.Conversation, Policy: m.Policy})
	}
	policies, err := b.opener.Actions.PolicyDigest(ctx, a)
	if err != nil {
		return agent.Result{}, err
	}
	if err := b.previews(ctx, a, plan); err != nil {
		return agent.Result{}, err
	}
	for i := range a.Proofs {
		a.Proofs[i].Digest = approval.Bound(a.Proofs[i].Digest, policies)
	}
	if a.Token, err = approval.NewToken(b.opener.Random); err != nil {
		return agent.Result{}, fault.Wrap(err, fault.Internal, "a confirmation token cannot be made")
	}
	id := b.runner.Decisions.Add(decision.Record{
		At: now, Tool: toolNames(a), Point: decision.Approval, Role: b.scope.Role, Status: decision.Allowed, Object: about(a, approval.WasProposed),
	})
	if err := b.opener.Actions.SaveAction(ctx, a, id); err != nil {
		return agent.Result{}, err
	}
	return agent.Result{Contents: asJSON(struct {
		Status  string             `json:"status"`
		Note    string             `json:"note"`
		Preview []approval.Preview `json:"preview"`
	}{"awaiting_confirmation", approval.Waiting, a.Previews}), Waits: true}, nil
}

// previews finds what each step would do. All of them run in one subtransaction that is taken back, so that a step sees
// what those before it would have done; a single call has that for itself.
func (b *box) previews(ctx context.Context, a *approval.Action, plan []planned) (err error) {
	if alone(plan) {
		return b.previewStep(ctx, a, plan, 0, true)
	}
	host := b.runner.Host
	if err := host.Scope(ctx, spi.ScopeBegin); err != nil {
		return err
	}
	defer func() {
		if e := host.Scope(ctx, spi.ScopeUndo); err == nil {
			err = e
		}
	}()
	for i := range plan {
		if err := b.previewStep(ctx, a, plan, i, false); err != nil {
			return err
		}
	}
	return nil
}

func (b *box) previewStep(ctx context.Context, a *approval.Action, plan []planned, i int, alone bool) error {
	s := plan[i]
	if err := b.ready(ctx, &s); err != nil {
		return b.named(plan, s, err)
	}
	p, proof, err := b.runner.preview(ctx, s.tool, s.args, b.scope.of(s.tool, string(s.Args)), alone)
	if err != nil {
		return b.named(plan, s, err)
	}
	p.Step, p.Tool = s.N, s.Tool
	if p.Kind == approval.PreviewArguments {
		p.Args = s.Args
	}
	a.Previews, a.Proofs = append(a.Previews, p), append(a.Proofs, proof)
	return nil
}

// preview is what one call would do, with real figures where there is something to try.
// Nothing of a call that is alone is kept; who previews several takes back all of them.
func (r *Runner) preview(ctx context.Context, t tool.Tool, args map[string]json.RawMessage, s Scope, alone bool) (approval.Preview, approval.Proof, error) {
	proof := approval.Proof{Digest: t.Digest(), Kind: approval.PreviewArguments}
	if t.Preview == nil && !triable(t) {
		_, err := r.ask(ctx, t, s, false) // a step after it may depend on where it leads
		return approval.Preview{Kind: proof.Kind}, proof, err
	}
	if t.Preview != nil {
		if _, err := r.ask(ctx, t, s, false); err != nil {
			return approval.Preview{}, proof, err
		}
	}
	result, proof, err := r.trial(ctx, t, args, s, alone)
	if err != nil {
		return approval.Preview{}, proof, err
	}
	p := approval.Preview{Kind: proof.Kind, Truncated: result.Truncated}
	if proof.Kind == approval.PreviewExecuted && result.Tag != "SELECT" {
		p.Affected = &result.Affected
	}
	for _, row := range result.Rows[:min(len(result.Rows), sampleRows)] {
		p.Rows = append(p.Rows, json.RawMessage(row))
	}
	p.Truncated = p.Truncated || len(result.Rows) > sampleRows
	return p, proof, nil
}

// trial runs what shows what a call does: the tool's preview statement, or else the call itself. What it does is taken back at
// once when it is a probe, else by whoever calls.
func (r *Runner) trial(ctx context.Context, t tool.Tool, args map[string]json.RawMessage, s Scope, probe bool) (spi.ToolResult, approval.Proof, error) {
	proof := approval.Proof{Digest: t.Digest(), Kind: approval.PreviewExecuted}
	var result spi.ToolResult
	var err error
	if t.Preview != nil {
		proof.Kind = approval.PreviewStatement
		var q spi.ToolRequest
		if q, err = r.companion(ctx, t, t.Preview, args, nil, s); err != nil {
			return result, proof, err
		}
		q.ReadOnly, q.Fingerprint, q.MaxRows = true, true, min(q.MaxRows, sampleRows+1)
		result, err = r.exec(ctx, t.Name, s, q)
	} else {
		result, err = r.perform(ctx, t, args, s, func(q *spi.ToolRequest) { q.Fingerprint, q.Probe = true, probe })
	}
	proof.Affected, proof.Print = found(t, result)
	return result, proof, err
}

// found is what is compared. Rows that an INSERT returns hold what it made, such as a new number; where the tool says so,
// nothing is.
func found(t tool.Tool, r spi.ToolResult) (affected, print int64) {
	switch {
	case t.AllowMismatch:
		return 0, 0
	case r.Tag == "INSERT":
		return r.Affected, 0
	}
	return r.Affected, r.Print
}

func inStep(s approval.Step, err error) error {
	var refused *Refused
	if errors.As(err, &refused) {
		return &Refused{Err: inStep(s, refused.Err), ID: refused.ID, Reason: refused.Reason}
	}
	var e *fault.Error
	if !errors.As(err, &e) {
		return err
	}
	c := *e
	c.Message = fmt.Sprintf("step %d (%s): %s", s.N, s.Tool, e.Error())
	return &c
}

func toolNames(a *approval.Action) string {
	names := make([]string, len(a.Steps))
	for i, s := range a.Steps {
		names[i] = s.Tool
	}
	return strings.Join(names, ", ")
}

// about is what a decision about an action is about.
func about(a *approval.Action, e approval.Event) string {
	return "action " + a.ID.String() + " " + string(e)
}

// jsonOf is a tool's result as JSON: nearly all are, the text of generate_text is not.
func jsonOf(contents string) json.RawMessage {
	if json.Valid([]byte(contents)) {
		return json.RawMessage(contents)
	}
	return json.RawMessage(asJSON(contents))
}

// asJSON writes what is made of texts, numbers and JSON that came from the server.
func asJSON(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "null"
	}
	return strings.TrimSuffix(b.String(), "\n")
}
