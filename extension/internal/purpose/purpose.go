// Package purpose is governance's part of an agent run: which role the tools of a call run as. An agent's purpose
// is resolved to a role name once per call, before any tool runs; that the role exists and that the caller may
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

// Resolve returns the role that tools run as. There are three outcomes: no purpose (nil) gives "", the caller; a
// live purpose gives its role; a retired or unregistered one is an error of kind Privilege, never the caller: an
// agent that lost its purpose must not run with more rights than it had.
func Resolve(p *State) (role string, err error) {
	switch {
	case p == nil:
		return "", nil
	case !p.Registered:
		return "", fault.New(fault.Privilege, "purpose %s is not registered", fault.Name(p.Name))
	case p.Retired:
		return "", fault.New(fault.Privilege, "purpose %s has been retired", fault.Name(p.Name))
	case p.Role == "":
		// The registry's constraint forbids it; running as the caller instead would be the one wrong answer.
		return "", fault.New(fault.Internal, "purpose %s has no role", fault.Name(p.Name))
	}
	return p.Role, nil
}
