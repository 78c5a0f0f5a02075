package agent

// What the loop itself says to the model and about it.

import (
	"strconv"

	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
)

// graceNote tells the model that its time is running out.
func graceNote(over string, left int) string {
	rounds := strconv.Itoa(left) + " replies"
	if left == 1 {
		rounds = "1 reply"
	}
	return "Note from the system: this task is over its budget (" + over + "). You have " + rounds +
		" left, this one included; after that the task fails. Wrap up now: give your final answer, and call a tool only if you cannot answer without it."
}

// closingNote asks for the closing report.
func closingNote(why string) string {
	return "Note from the system: this task is being stopped (" + why + "). Do not call any tool. " +
		"Reply in plain text with a brief status report: what was done so far, what was found, and what is still open."
}

// emptyNote tells a model that its last reply was empty: the same request would likely give the same reply.
func (s *State) emptyNote() string {
	if s.empties == 0 {
		return ""
	}
	note := "Note from the system: your last reply was empty. Answer the user, or call a tool."
	if s.overBudget != nil {
		note = "\n" + note
	}
	return note
}

// modelError is the error of a failed model call with a text to show.
func modelError(err error) *fault.Error {
	text := conversation.Clean(err.Error())
	kind := fault.KindOf(err)
	if kind == fault.Unclassified {
		return fault.Wrap(err, kind, "the model call failed: %s", text)
	}
	return fault.Wrap(err, kind, "%s", text)
}

// brokenBy is the error of a run that a tool call ended.
func brokenBy(err error) *fault.Error {
	return fault.Wrap(err, fault.KindOf(err), "%s", conversation.Clean(err.Error()))
}

// uniqueIDs gives calls without an id, or with one that an earlier call of the reply has, an id of their own: results
// are matched to calls by it.
func uniqueIDs(calls []conversation.ToolCall, round int) []conversation.ToolCall {
	if len(calls) == 0 || (len(calls) == 1 && calls[0].ID != "") {
		return calls
	}
	taken := make(map[string]bool, len(calls))
	for i := range calls {
		taken[calls[i].ID] = true
	}
	used := make(map[string]bool, len(calls))
	copied := false
	for i := range calls {
		id := calls[i].ID
		if id == "" || used[id] {
			for n := i + 1; ; n++ {
				if id = "call_" + strconv.Itoa(round) + "_" + strconv.Itoa(n); !taken[id] && !used[id] {
					break
				}
			}
			if !copied {
				calls, copied = append([]conversation.ToolCall(nil), calls...), true
			}
			calls[i].ID = id
		}
		used[id] = true
	}
	return calls
}
