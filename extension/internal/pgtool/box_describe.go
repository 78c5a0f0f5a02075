package pgtool

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/uuid"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/approval"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/tool"
)

// Describer knows how the tools of an agent stand for a person.
type Describer interface {
	Describe(ctx context.Context, agentID uuid.UUID, role, caller, tool string, machines []approval.Machine) ([]approval.Described, error)
}

// describe answers describe_actions: what is permitted in full, what is not by name with the reason.
func (b *box) describe(ctx context.Context, t tool.Tool, arguments string) (agent.Result, error) {
	args, err := tool.CheckArguments(t, arguments)
	if err != nil {
		return agent.Result{}, err
	}
	name := strings.TrimSpace(text(args["tool"]))
	if name == "null" {
		name = ""
	}
	machines := []approval.Machine{}
	for _, m := range b.scope.Guards {
		machines = append(machines, approval.Machine{Conversation: m.Conversation, Policy: m.Policy, State: m.State})
	}
	list, err := b.opener.Describer.Describe(ctx, b.request.AgentID, b.scope.Role, b.request.Caller.Role, name, machines)
	if err != nil {
		return agent.Result{}, err
	}
	list = slices.DeleteFunc(list, func(d approval.Described) bool { _, offered := b.tools[d.Name]; return !offered })
	if name == "" {
		return agent.Result{Contents: catalog(b.scope.Agent, list)}, nil
	}
	if len(list) == 0 {
		return agent.Result{}, fault.New(fault.NotFound, "tool %s not found; describe_actions without an argument lists the tools", fault.Name(name))
	}
	d := list[0]
	if d.Reason != "" {
		return agent.Result{Contents: asJSON(denied{d.Name, d.Reason})}, nil
	}
	return agent.Result{Contents: asJSON(struct {
		permitted
		Schema json.RawMessage `json:"input_schema"`
	}{permittedOf(d), b.tools[d.Name].InputSchema()})}, nil
}

type permitted struct {
	Name     string `json:"name"`
	Summary  string `json:"summary"`
	Class    string `json:"class"`
	Confirm  bool   `json:"needs_confirmation"`
	Undoable bool   `json:"can_be_undone"`
}

type denied struct {
	Name   string `json:"name"`
	Reason string `json:"denied"`
}

func permittedOf(d approval.Described) permitted {
	return permitted{d.Name, d.Description, d.Class, d.Class == approval.Confirm, d.Undoable}
}

func catalog(agentName string, list []approval.Described) string {
	out := struct {
		Agent     string      `json:"agent"`
		Permitted []permitted `json:"permitted"`
		Denied    []denied    `json:"denied"`
	}{agentName, []permitted{}, []denied{}}
	for _, d := range list {
		if d.Reason == "" {
			out.Permitted = append(out.Permitted, permittedOf(d))
		} else {
			out.Denied = append(out.Denied, denied{d.Name, d.Reason})
		}
	}
	return asJSON(out)
}
