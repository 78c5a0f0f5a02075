package approval

import (
	"fmt"
	"strings"

	"aidb/extension/internal/fault"
)

const (
	// maxNote bounds what a model is told of one action's outcome, maxResult of one step's, in bytes.
	maxNote   = 8000
	maxResult = 2000
)

// Waiting is what the model is told of a plan that was parked: that it waits, and the preview. Nothing in it confirms.
const Waiting = "This waits for the person's yes, which only they can say and which is not said to you by any tool. Nothing has run. " +
	"Show them what it would do, and ask."

// Fate is what became of an action.
func (a *Action) Fate() string {
	switch a.Status {
	case Done:
		return "was confirmed and has run."
	case Stopped:
		return "was confirmed, and stopped before its end."
	case Void:
		return "did not run: something it needs has changed since it was shown. Propose it again if it is still wanted."
	case Undone:
		return "was undone."
	case Expired:
		return "was not confirmed in time and did not run."
	}
	return "was not confirmed and did not run."
}

// Declined says why an action that nobody confirmed is over; "" when it is not, or somebody did.
func (a *Action) Declined() string {
	switch a.Status {
	case Rejected:
		return "a person declined what the agent proposed"
	case Expired:
		return "nobody confirmed in time what the agent proposed"
	}
	return ""
}

// Note tells the model how an action ended that it had proposed.
func Note(a *Action) string {
	var b strings.Builder
	b.WriteString("Note from the system: the action that you proposed (")
	for i, s := range a.Steps {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(s.Tool)
	}
	b.WriteString(") ")
	b.WriteString(a.Fate())
	for _, o := range a.Outcomes {
		fmt.Fprintf(&b, "\n%d. %s: ", o.Step, o.Tool)
		switch {
		case o.Error != "":
			b.WriteString(fault.Cut(o.Error, maxResult))
		case a.Status == Undone:
			b.WriteString("undone")
		default:
			b.WriteString(fault.Cut(string(o.Result), maxResult))
		}
	}
	return Scrub(fault.Cut(b.String(), maxNote))
}
