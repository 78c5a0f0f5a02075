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

// closingNote asks for the closing report, or for the answer itself where it must have a shape that a report has not.
func closingNote(why string, typed bool) string {
	note := "Note from the system: this task is being stopped (" + why + "). Do not call any tool. "
	if typed {
		return note + "Give your final answer now, in the form that is asked for above, from what you know."
	}
	return note + "Reply in plain text with a brief status report: what was done so far, what was found, and what is still open."
}

// lastNote tells a model what was wrong with its last reply: the same request would likely give the same reply.
func (s *State) lastNote() string {
	switch {
	case s.rejected != nil:
		return s.rejected.note()
	case s.empties > 0 && s.closing == nil:
		return "Note from the system: your last reply was empty. Answer the user, or call a tool."
	}
	return ""
}

// join puts a paragraph below a text.
func join(text, below string) string {
	if text == "" || below == "" {
		return text + below
	}
	return text + "\n\n" + below
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
