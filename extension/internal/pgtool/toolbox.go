package pgtool

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/approval"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/decision"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/spi"
	"aidb/extension/internal/tool"
)

// Catalog has the definitions of tools. A name that no tool has is left out. Standing and Fresh read the catalog as it is
// now: how a tool stands for an agent ("" for none), and its definition, nil when there is none any more. Foresee says
// without reading how it stood, and what must be found for that to be so still; nil when it does not know.
type Catalog interface {
	Tools(ctx context.Context, names []string) ([]tool.Tool, error)
	Standing(ctx context.Context, agentID string, t tool.Tool) (approval.Standing, error)
	Foresee(agentID string, t tool.Tool) (approval.Standing, *spi.Expected, error)
	Fresh(ctx context.Context, name string) (*tool.Tool, error)
}

// Steps are the transactions of a background task.
type Steps interface {
	Begin(ctx context.Context) error
	End(ctx context.Context, statements ...spi.Statement) error
}

// sleepTool is offered to every agent without being listed.
const sleepTool = "sleep"

// Opener opens the toolboxes of one call: of its run, and of those within it.
type Opener struct {
	Catalog Catalog
	Runner  *Runner

	Actions   ActionStore
	Describer Describer
	IDs       agent.IDs
	Random    io.Reader
	TTL       time.Duration // aidb.confirmation_ttl
	// Steps are those of a background task, of which what its tools do is a part; nil in a session.
	Steps Steps

	warned bool // that tools run as a superuser: once a call
}

// Open implements agent.Toolboxes. A tool that no longer exists is not offered; a call of it is answered as that of
// any unknown tool. In a read-only run only tools that never write are offered, and none of an MCP server.
func (o *Opener) Open(ctx context.Context, r agent.ToolboxRequest) (agent.Toolbox, error) {
	names := append(r.Names[:len(r.Names):len(r.Names)], sleepTool)
	if r.Catalog {
		names = append(names, describeTool, actTool)
	}
	tools, err := o.Catalog.Tools(ctx, names)
	if err != nil {
		return nil, err
	}
	b := &box{opener: o, request: r, runner: o.Runner, tools: make(map[string]tool.Tool, len(tools)), scope: Scope{
		Role: r.Role, RoleID: r.RoleID, Elevated: r.Elevated, Purpose: r.Purpose, ReadOnly: r.ReadOnly, Debug: r.Debug, Agent: r.Agent, AgentID: r.AgentID.String(),
		Guards: r.Guards,
	}, warn: r.Caller.Superuser && r.Role == "", caller: r.Caller.Role}
	if !r.ReadOnly {
		b.scope.ConversationID = r.ConversationID.String()
	}
	o.Runner.Decisions.Base.Purpose = r.Purpose
	for _, t := range tools {
		if _, twice := b.tools[t.Name]; twice || (r.ReadOnly && (!t.ReadOnly || t.Type == tool.MCP)) {
			continue
		}
		b.tools[t.Name] = t
		if t.Quarantined {
			continue // what a model would be shown is not what the tool is now
		}
		if r.Catalog && !t.ReadOnly && t.Name != actTool {
			continue // known to act and describe_actions, and no function of the model's
		}
		b.specs = append(b.specs, agent.ToolSpec{Name: t.Name, Description: describe(t), Parameters: t.InputSchema()})
	}
	return b, nil
}

// describe is a tool's description as the model sees it: with the shape of its rows, where that is known.
func describe(t tool.Tool) string {
	if len(t.Result) == 0 {
		return t.Description
	}
	var b strings.Builder
	b.WriteString(t.Description)
	b.WriteString("\nReturns an array of rows with")
	for i, c := range t.Result {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(" " + c.Name + " (" + c.Type)
		if c.Description != "" {
			b.WriteString(": " + c.Description)
		}
		b.WriteByte(')')
	}
	return b.String()
}

type box struct {
	opener  *Opener
	request agent.ToolboxRequest
	runner  *Runner
	tools   map[string]tool.Tool
	specs   []agent.ToolSpec
	scope   Scope
	warn    bool // the caller is a superuser and the agent has no purpose
	caller  string
	number  int // of the call in hand
}

func (b *box) Specs() []agent.ToolSpec { return b.specs }

func (b *box) Call(ctx context.Context, call conversation.ToolCall, n int) (agent.Result, error) {
	b.number = n
	t, ok := b.tools[call.Name]
	if !ok {
		return agent.Result{Error: "tool " + fault.Name(call.Name) + " not found; the tools are: " + b.names()}, nil
	}
	if b.warn && !b.opener.warned && t.Name != sleepTool {
		b.opener.warned = true
		b.runner.Host.Notice("warning", "tools of agent "+fault.Name(b.scope.Agent)+" run as superuser "+fault.Name(b.caller),
			"Give the agent a purpose, or call it as a role with fewer rights.")
	}
	var result agent.Result
	var err error
	switch t.Name {
	case describeTool:
		result, err = b.describe(ctx, t, call.Arguments)
	case actTool:
		result, err = b.act(ctx, call.Arguments)
	default:
		result, err = b.one(ctx, t, call.Arguments)
	}
	if err == nil {
		// should one have got into the data after all
		result.Contents, result.Error = approval.Scrub(result.Contents), approval.Scrub(result.Error)
		return result, nil
	}
	if errors.Is(err, spi.ErrGone) || ctx.Err() != nil {
		return agent.Result{}, err
	}
	return agent.Result{Error: approval.Scrub(failure(err))}, nil
}

// Pass implements agent.Toolbox. The tool is none of the box: it has no privilege of its own to look at.
func (b *box) Pass(ctx context.Context, call conversation.ToolCall, probe bool) (*agent.Result, error) {
	if len(b.scope.Guards) == 0 {
		return nil, nil
	}
	s := b.scope
	s.Role, s.RoleID, s.Elevated = "", "", false
	s.tool, s.params = call.Name, params(call.Arguments)
	if b.opener.Steps != nil && !probe {
		// it counts in the transaction of what it lets begin: cut off between the two, it would count again
		if err := b.opener.Steps.Begin(ctx); err != nil {
			return nil, err
		}
	}
	_, err := b.runner.ask(ctx, tool.Tool{Name: call.Name, ReadOnly: true}, s, probe)
	if err == nil {
		return nil, nil
	}
	if errors.Is(err, spi.ErrGone) || ctx.Err() != nil {
		return nil, err
	}
	return &agent.Result{Error: approval.Scrub(failure(err))}, nil
}

// Repeatable implements agent.Repeater: what leaves the database is not sent a second time when nobody knows whether it
// arrived, unless that does no harm. A plan may have such a step.
func (b *box) Repeatable(call conversation.ToolCall) bool {
	if call.Name != actTool {
		return repeatable(b.tools[call.Name])
	}
	for _, t := range b.tools {
		if !repeatable(t) {
			return false
		}
	}
	return true
}

func repeatable(t tool.Tool) bool { return t.Type != tool.MCP || t.Idempotent }

func (b *box) names() string {
	var s string
	for i, spec := range b.specs {
		if i > 0 {
			s += ", "
		}
		s += spec.Name
	}
	return s
}

// failure is an error as the model reads it: with the detail and the hint, which often say what to do. Of who may
// become whom the model is told no more than that it may not.
func failure(err error) string {
	var e *fault.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	s := e.Error()
	var refused *Refused
	denied := errors.As(err, &refused)
	if denied && (refused.Reason == decision.NotRoleMember || refused.Reason == decision.RoleNotFound) {
		e = &fault.Error{}
	}
	if e.Detail != "" {
		s += "\nDETAIL: " + e.Detail
	}
	if e.Hint != "" {
		s += "\nHINT: " + e.Hint
	}
	if denied {
		s += " [decision_id=" + refused.ID.String() + "]"
	}
	return s
}
