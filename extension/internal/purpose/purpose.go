// Package purpose is governance's part of an agent run: which role the tools of a call run as. An agent's purpose
// is resolved to a role name once per call, before any tool runs (an agent that another one delegates to does not
// resolve its own, see package agent); that the role exists and that the caller may
// act as it is checked where the role is assumed, at each tool call, and not here.
package purpose

import "aidb/extension/internal/fault"

// State is a purpose as the registry has it now. Registered false means that no row has the name; Retired that
// the row is there and was retired.
type State struct {
	Name       string
	Registered bool
	Retired    bool
	Role       string
	// RoleID is the oid that the role had when the purpose was set, "" when there was no such role: a role that was
	// dropped and created anew under the name is another one.
	RoleID string
	// Elevated permits roles that no sandbox can hold (superusers and the like).
	Elevated bool
}

// Acting is what the tools of a run run as. Role "" is the caller; Purpose is the one that gave the role, "" without one.
type Acting struct {
	Purpose  string
	Role     string
	RoleID   string
	Elevated bool
}

// Resolve returns what tools run as. There are three outcomes: no purpose (nil) gives the caller; a live purpose gives
// its role; a retired or unregistered one is an error of kind Privilege, never the caller: an agent that lost its
// purpose must not run with more rights than it had.
func Resolve(p *State) (Acting, error) {
	if p == nil {
		return Acting{}, nil
	}
	as := Acting{Purpose: p.Name}
	switch {
	case !p.Registered:
		return as, fault.New(fault.Privilege, "purpose %s is not registered", fault.Name(p.Name))
	case p.Retired:
		return as, fault.New(fault.Privilege, "purpose %s has been retired", fault.Name(p.Name))
	case p.Role == "":
		// The registry's constraint forbids it; running as the caller instead would be the one wrong answer.
		return as, fault.New(fault.Internal, "purpose %s has no role", fault.Name(p.Name))
	}
	as.Role, as.RoleID, as.Elevated = p.Role, p.RoleID, p.Elevated
	return as, nil
}
