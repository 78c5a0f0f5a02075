// Package policy is temporal governance's part of an agent run: which machines a tool call has to pass. A machine is one
// conversation's session of one temporal policy, a state machine over the names of tools. Whether it permits a call is
// decided where its state is locked, in the server (c_shim/guard.c); here is only which ones are asked.
//
// A run has the machines of its agent's policy and of its purpose's, and those of every run above it: work that is handed
// to another agent does not begin a new history.
package policy

import (
	"cmp"
	"slices"

	"aidb/extension/internal/fault"
)

// State is a policy that an agent or its purpose names, as it is now.
type State struct {
	Name       string
	Registered bool
	Retired    bool
}

// Machine is a session of a policy. Conversation "" is a run of which nothing is stored: its machine lives as long as the
// run, State says where it stands ("" before the first call).
type Machine struct {
	Conversation string
	Policy       string
	State        string
}

// Guards are the machines that every tool call of a run has to pass, in the order in which they are locked.
type Guards []*Machine

// Within returns the guards of a run: those of the run above (nil for none) and its own. A policy that is named and not
// live is an error of kind Privilege: what lost its policy is refused, it does not run unguarded.
func Within(above Guards, conversation string, policies ...State) (Guards, error) {
	guards := slices.Clone(above)
	for i, p := range policies {
		switch {
		case !p.Registered:
			return nil, fault.New(fault.Privilege, "policy %s is not registered", fault.Name(p.Name))
		case p.Retired:
			return nil, fault.New(fault.Privilege, "policy %s has been retired", fault.Name(p.Name))
		}
		if !slices.ContainsFunc(policies[:i], func(q State) bool { return q.Name == p.Name }) {
			guards = append(guards, &Machine{Conversation: conversation, Policy: p.Name})
		}
	}
	slices.SortStableFunc(guards, func(a, b *Machine) int {
		return cmp.Or(cmp.Compare(a.Conversation, b.Conversation), cmp.Compare(a.Policy, b.Policy))
	})
	return guards, nil
}

// Exempt reports whether a tool needs no transition: it has no effect of its own. What act runs is guarded step by step.
func Exempt(tool string) bool {
	return tool == "sleep" || tool == "describe_actions" || tool == "act"
}
