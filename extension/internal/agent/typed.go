package agent

// Answers that are not taken. Of an output type: what does not fit is not passed on, and goes back to the model with all that is wrong. It
// does not become a part of the history, neither now nor later: the request for a repair quotes it, and the log has it.

import (
	"time"

	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
)

const (
	// maxQuoted bounds how much of a rejected answer is shown to the model again, in bytes.
	maxQuoted = 8 << 10
	// maxWhy bounds what is said to be wrong with it.
	maxWhy = 2000
)

// rejected is an answer that is not of the output type.
type rejected struct {
	answer string
	why    string
	cut    bool // at the model's output limit
	budget bool // it is a text that ends where the budget did
}

func (r *rejected) note() string {
	if r.budget {
		return "Note from the system: your last answer was not taken, because " + r.why + ". It was:\n" + fault.Cut(r.answer, maxQuoted) +
			"\nGive it again, whole and much shorter."
	}
	note := "Note from the system: your last answer was not accepted, because it does not match the JSON Schema: " + r.why + "."
	if r.cut {
		note += " It was cut off at your output limit: answer more briefly."
	}
	return note + " It was:\n" + fault.Cut(r.answer, maxQuoted) + "\nGive the whole answer again, corrected, as JSON and nothing else."
}

// read takes the answer out of a reply: the text, and whether it can be the answer. One that is not of the output type
// is noted as rejected, unless it only accompanies calls.
func (s *State) read(r Reply) (text string, accepted bool) {
	switch {
	case conversation.Empty(r.Content, nil):
		return "", false
	case s.cfg.Output == nil:
		return r.Content, true
	}
	text, err := s.cfg.Output.Read(r.Content)
	if err == nil {
		return text, true
	}
	if len(r.ToolCalls) == 0 && r.Finish != FinishContentFilter {
		why := fault.Cut(conversation.Clean(err.Error()), maxWhy)
		s.rejected = &rejected{answer: r.Content, why: why, cut: r.Finish == FinishLength}
		s.rejections++
	}
	return "", false
}

// repair sends the rejected answer back, or ends the run when that was done often enough.
func (s *State) repair(at time.Time) {
	if s.rejections > maxRepairs {
		s.fail(conversation.StatusError, fault.New(fault.ModelOutput, "answer does not match the output type: %s", s.rejected.why))
		return
	}
	s.nextRound(at)
}
