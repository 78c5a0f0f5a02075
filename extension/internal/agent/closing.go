package agent

// The closing report: a run that is stopped before it has an answer asks the model for one last text. No tool runs
// any more, so this is not a round.

import (
	"fmt"

	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
)

type closing struct {
	// why the run was stopped.
	why *fault.Error
	// always: the run ends with a report, if need be one of our own (the strategy summarize promises it).
	// Otherwise it ends with why, when the model gives none.
	always  bool
	attempt int
}

// close asks for the closing report. The first time the tools are still offered, as some providers refuse a
// conversation with calls in it otherwise; a model that calls one all the same is asked again without.
func (s *State) close(why *fault.Error, always bool) {
	if s.closing == nil {
		s.closing = &closing{why: why, always: always}
	}
	s.closing.attempt++
	s.ask(closingNote(s.closing.why.Message, s.cfg.Output != nil), s.closing.attempt < maxClosing)
}

// closingReplied judges a reply to the closing request; given says that its text can be the answer.
func (s *State) closingReplied(text string, given, withCalls bool) {
	wanted := "a closing report in plain text"
	if s.cfg.Output != nil {
		wanted = "the final answer"
	}
	s.drop("not run: the run is being stopped, only " + wanted + " is wanted")
	c := s.closing
	switch {
	case given && (!withCalls || c.attempt == maxClosing):
		// Text beside calls announces them more often than it reports; it counts only when there is no better.
		s.answer(text)
	case c.attempt < maxClosing:
		s.close(c.why, c.always)
	case s.rejected != nil:
		s.fail(conversation.StatusError, fault.New(c.why.Kind, "%s, and the closing answer does not match the output type: %s",
			c.why.Message, s.rejected.why))
	case c.always && s.cfg.Output == nil:
		s.answer(s.ownReport())
	default:
		s.fail(conversation.StatusError, fault.New(c.why.Kind, "%s, and gave no closing report", c.why.Message))
	}
}

// ownReport says what is known when the model reports nothing.
func (s *State) ownReport() string {
	return fmt.Sprintf("The run was stopped: %s. The model gave no report; %d rounds with %d tool calls were completed.",
		s.closing.why.Message, s.round, s.toolCalls)
}

// answer ends a run with its answer.
func (s *State) answer(text string) {
	logged := s.redact(text)
	s.do(Log{
		Type:     conversation.Answer,
		Round:    s.logRound(),
		Response: conversation.ContentsPayload(logged),
		Status:   conversation.StatusSuccess,
		Line:     s.line(conversation.Answer, logged),
	})
	f := Finish{Status: conversation.StatusSuccess, Answer: text, Declined: s.declined}
	if s.declined != "" {
		f.Status = conversation.StatusDenied
	}
	s.finish(f)
}

func (s *State) fail(status string, err *fault.Error) {
	if text := s.redact(err.Message); text != err.Message {
		c := *err
		c.Message = text
		err = &c
	}
	s.do(Log{
		Type:     conversation.Failure,
		Round:    s.logRound(),
		Response: conversation.ErrorPayload(err.Message),
		Status:   status,
		Error:    err.Message,
		Line:     s.line(conversation.Failure, err.Message),
	})
	s.finish(Finish{Status: status, Err: err})
}

func (s *State) finish(f Finish) {
	s.finished = true
	s.do(f)
}
