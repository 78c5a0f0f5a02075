package approval

import "aidb/extension/internal/fault"

// Risk classes of tools.
const (
	Read      = "read"
	Safe      = "safe"
	Confirm   = "confirm"
	Forbidden = "forbidden"
)

// What aidb.unclassified_tools may say of a tool that writes and has no class.
const (
	UnclassifiedAllow   = "allow"
	UnclassifiedConfirm = "confirm"
	UnclassifiedDeny    = "deny"
)

// Why a call is refused, as denial_reason of its decision.
const (
	ActionsOff       = "actions_off"
	ToolForbidden    = "tool_forbidden"
	ToolUnclassified = "tool_unclassified"
	ToolNotAssigned  = "tool_not_assigned"
	AgentDisabled    = "agent_disabled"
)

// Standing is what the catalog says of a tool at the moment at which it is called.
type Standing struct {
	Known    bool   // there is such a tool
	Actions  bool   // the setting aidb.actions
	Class    string // "" when nobody has said
	Fallback string // the setting aidb.unclassified_tools
	Agent    string // "" outside an agent's run
	Enabled  bool   // the agent
	Assigned bool   // the tool to the agent
	Version  string // of the tool's definition
}

// Verdict is what is to become of a call that is not refused.
type Verdict int

// The verdicts.
const (
	Run Verdict = iota
	Ask
)

// EffectiveClass is the class with what stands in for a missing one.
func (s Standing) EffectiveClass() string {
	if s.Class != "" {
		return s.Class
	}
	switch s.Fallback {
	case UnclassifiedConfirm:
		return Confirm
	case UnclassifiedDeny:
		return Forbidden
	}
	return Safe
}

// Judge says whether a tool may be called at all, by anybody, and whether a person must be asked. The order of the checks
// is part of the contract: the switch and the class, then the agent and its tools. A refusal comes with its reason.
func (s Standing) Judge(tool string) (v Verdict, reason string, refusal *fault.Error) {
	class := s.EffectiveClass()
	switch {
	case !s.Actions && class != Read:
		return Run, ActionsOff, fault.New(fault.Privilege, "actions are switched off: tool %s may not run", fault.Name(tool)).
			WithHint("An administrator has set aidb.actions to off. Tools that only read go on.")
	case s.Class == "" && class == Forbidden:
		return Run, ToolUnclassified, fault.New(fault.Privilege, "tool %s is not classified and may not run", fault.Name(tool)).
			WithHint("An administrator classifies it with aidb.classify_tool (see aidb.unclassified_tools).")
	case class == Forbidden:
		return Run, ToolForbidden, fault.New(fault.Privilege, "tool %s is forbidden", fault.Name(tool)).
			WithHint("No agent may use it. Say so, and do not look for another way.")
	case s.Agent == "":
		// a person called the tool by name (aidb.run_tool): they are the one who would be asked
		return Run, "", nil
	case !s.Enabled:
		return Run, AgentDisabled, fault.New(fault.Privilege, "agent %s is disabled", fault.Name(s.Agent))
	case !s.Known, !s.Assigned:
		return Run, ToolNotAssigned, fault.New(fault.Privilege, "tool %s is not one of the agent's any more", fault.Name(tool))
	case class == Confirm:
		return Ask, "", nil
	}
	return Run, "", nil
}
