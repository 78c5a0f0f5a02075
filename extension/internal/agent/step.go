package agent

// The transitions of a run.

import (
	"strconv"
	"time"

	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
)

// toolError begins the text of every failed tool call, for the model and in the log.
const toolError = "Tool error: "

// Step moves the run on and returns what to do. The slice is valid until the next Step. Events that do not fit the
// state (after the end, a tool's result when none was asked for) change nothing.
func (s *State) Step(e Event) []Effect {
	s.effects = s.effects[:0]
	if s.finished {
		return nil
	}
	switch e := e.(type) {
	case Started:
		s.start(e.At)
	case Refused:
		s.prompt()
		s.fail(e.Status, e.Err)
	case Replied:
		if s.compacting != nil {
			s.summarized(e.Reply)
		} else {
			s.replied(e.At, e.Reply)
		}
	case ModelFailed:
		if s.compacting != nil {
			s.compacted(s.compacting.ownSummary(), "", conversation.Cost{})
		} else {
			s.modelFailed(e.Err)
		}
	case ToolDone:
		if s.waiting() {
			s.result(s.pending[s.next], e.Result, true)
			s.runNext(e.At)
		}
	case ToolBroke:
		if s.waiting() {
			err := brokenBy(e.Err)
			s.result(s.pending[s.next], Result{Error: err.Message}, true)
			s.drop("not run: the call before it ended the run")
			s.fail(conversation.StatusError, err)
		}
	case TimeUp:
		if s.waiting() {
			s.result(s.pending[s.next], Result{Error: timeOver}, true)
		}
		s.compacting = nil
		s.timeUp()
	}
	return s.effects
}

func (s *State) do(e Effect) { s.effects = append(s.effects, e) }

// waiting reports whether a tool call is handed out.
func (s *State) waiting() bool { return s.next < len(s.pending) }

func (s *State) start(at time.Time) {
	s.prompt()
	s.nextRound(at)
}

// prompt logs the prompt and shows it to the model.
func (s *State) prompt() {
	if !s.prompted {
		text := s.redact(s.cfg.Prompt)
		s.do(Log{
			Type:    conversation.UserPrompt,
			Request: conversation.Noted(conversation.UserPromptPayload(text, s.cfg.User), s.redact(s.cfg.Note)),
			Status:  conversation.StatusSuccess,
			Line:    s.line(conversation.UserPrompt, text),
			Message: len(s.messages),
		})
	}
	s.say(conversation.Message{Role: conversation.User, Content: conversation.WithNote(s.cfg.Prompt, s.cfg.Note)})
}

// nextRound compares the budgets and asks the model, or ends the run. This is the only place where budgets are
// compared, so one long call may overshoot them; time is the exception, it also cuts calls short.
func (s *State) nextRound(at time.Time) {
	switch {
	case s.cut(at):
		s.timeUp()
		return
	case s.round >= maxRounds:
		ceiling := fault.New(fault.LimitExceeded, "round limit exceeded: no answer after %d rounds", maxRounds)
		if s.cfg.Limits.Strategy == StrategySummarize && s.exhausted() == nil {
			// The strategy promises a report whichever limit stops the run, and one that has no round budget has this one.
			s.close(ceiling, true)
			return
		}
		s.fail(conversation.StatusError, ceiling)
		return
	}
	if err := s.exhausted(); err != nil {
		s.fail(conversation.StatusError, err)
		return
	}
	if s.overBudget == nil {
		over := s.over(at)
		if over == nil {
			s.ask("", true)
			return
		}
		switch s.cfg.Limits.Strategy {
		case StrategyError:
			s.fail(conversation.StatusError, over)
			return
		case StrategySummarize:
			s.close(over, true)
			return
		case StrategyIgnore:
			if !s.warned {
				s.warned = true
				s.do(Warn{
					Text: "agent " + fault.Name(s.cfg.Agent) + ": " + over.Message + "; continuing",
					Hint: "Its budget strategy is 'ignore': the only limit left is that of " + strconv.Itoa(maxRounds) + " rounds.",
				})
			}
			s.ask("", true)
			return
		}
		s.overBudget = over
	}
	if s.grace == graceRounds {
		s.fail(conversation.StatusError, fault.New(fault.BudgetSpent,
			"%s, and %d extra rounds did not bring an answer", s.overBudget.Message, graceRounds))
		return
	}
	s.grace++
	s.ask(graceNote(s.overBudget.Message, graceRounds-s.grace+1), true)
}

// ask hands the conversation to the model. The note, and what is to say of the last reply, is for this call only and
// put at the end of the instructions: a system message elsewhere, or a user message right after a tool's result, is
// refused by some servers.
func (s *State) ask(note string, offer bool) {
	if s.closing == nil {
		s.round++
	}
	if last := s.lastNote(); note != "" && last != "" {
		note += "\n" + last
	} else {
		note += last
	}
	s.messages[0].Content = join(s.system, note)
	s.offered = offer
	if s.full() {
		if p, ok := s.plan(false); ok {
			s.compact(p, conversation.CompactedForSize)
			return
		}
	}
	s.request()
}

// request asks the model, or asks it again: the same messages and tools.
func (s *State) request() {
	messages := s.messages
	if s.messages[0].Content == "" {
		messages = messages[1:]
	}
	s.bounded = s.outputLeft()
	r := Request{
		Messages: messages[:len(messages):len(messages)], Output: s.cfg.Output.Schema(), MaxOutput: s.bounded,
		Forced: s.rejected != nil && s.cfg.Output != nil,
	}
	var names []string
	if s.offered {
		r.Tools, names = s.cfg.Tools, s.names
	}
	l := Log{
		Type:    conversation.ModelRequest,
		Round:   s.logRound(),
		Request: conversation.ModelRequestPayload(s.cfg.Model, s.logRound(), len(messages), names),
		Status:  conversation.StatusSuccess,
	}
	if s.cfg.Debug {
		l.Line = debugLine(l.Type, spaced(string(l.Request)))
	}
	s.do(l)
	s.do(Ask{Request: r})
}

// logRound numbers the rounds of the log: a closing report's model calls follow the rounds of the run.
func (s *State) logRound() int {
	if s.closing != nil {
		return s.round + s.closing.attempt
	}
	return s.round
}

func (s *State) replied(at time.Time, r Reply) {
	r.Content = conversation.Clean(r.Content)
	r.ToolCalls = uniqueIDs(conversation.CleanCalls(r.ToolCalls[:min(len(r.ToolCalls), maxKept)]), s.logRound())
	m := conversation.Message{Role: conversation.Assistant, Content: r.Content, ToolCalls: r.ToolCalls}
	cost := s.spent.add(r.Usage, s.cfg.Price, s.sentBytes(), max(m.Size(), r.Bytes))
	s.overflowed, s.recalled = false, false
	s.measured.take(r.Usage, s.sentBytes())
	s.rejected = nil
	text, accepted := s.read(r)
	if accepted && len(r.ToolCalls) == 0 && s.cutByBudget(r) {
		accepted, s.rejected = false, &rejected{answer: r.Content, why: "it was cut off where the budget ended", budget: true}
	}
	l := Log{
		Type:  conversation.ModelResponse,
		Round: s.logRound(),
		Response: conversation.Retried(conversation.ModelResponsePayload(s.redact(r.Content), s.redactCalls(r.ToolCalls), conversation.Clean(r.Finish),
			conversation.Clean(r.Model), r.Usage), r.Retries),
		Status: conversation.StatusSuccess,
		Timed:  true,
	}
	if s.rejected != nil {
		why := s.redact(s.rejected.why)
		l.Response, l.Error, l.Status = conversation.Rejected(l.Response, why), why, conversation.StatusError
	}
	if s.cfg.Debug {
		l.Line = debugLine(l.Type, spaced(string(l.Response)))
	}
	l.Response = conversation.Costed(l.Response, cost)
	empty := conversation.Empty(r.Content, r.ToolCalls)
	if s.rejected == nil && !empty {
		l.Message = len(s.messages)
	}
	s.do(l)
	switch {
	case s.rejected != nil:
		s.empties = 0
	case !empty:
		s.say(m)
		s.empties = 0
	}
	s.pending, s.next, s.truncated = r.ToolCalls, 0, r.Finish == FinishLength

	switch {
	case r.Finish == FinishContentFilter:
		s.drop("not run: the reply was stopped by the provider's content filter")
		s.fail(conversation.StatusError, fault.New(fault.ModelRefused, "the model's reply was stopped by its provider's content filter"))
	case s.closing != nil:
		s.closingReplied(text, accepted, len(r.ToolCalls) > 0)
	case len(r.ToolCalls) > 0:
		s.runNext(at)
	case s.rejected != nil:
		s.repair(at)
	case accepted:
		if s.truncated {
			s.do(Warn{
				Text: "answer of agent " + fault.Name(s.cfg.Agent) + " was cut off at the model's output limit",
				Hint: "Raise max_tokens in the model's configuration, or ask for a shorter answer.",
			})
		}
		s.answer(text)
	default:
		if s.empties++; s.empties == maxEmpty {
			s.fail(conversation.StatusError, fault.New(fault.ModelOutput,
				"the model gave an empty answer %d times in a row", maxEmpty))
			return
		}
		s.nextRound(at)
	}
}

func (s *State) modelFailed(err error) {
	failure := modelError(err)
	if failure.Kind == fault.ModelOverflow && s.overflow(failure) {
		return
	}
	if failure.Kind == fault.Unclassified {
		if s.unclassified++; s.unclassified < maxUnclassified {
			s.noReply(failure)
			s.request()
			return
		}
	}
	s.fail(conversation.StatusError, failure)
}

// noReply logs a model call that failed and is made again.
func (s *State) noReply(failure *fault.Error) {
	text := s.redact(failure.Message)
	s.do(Log{Type: conversation.ModelResponse, Round: s.logRound(), Status: conversation.StatusError, Error: text,
		Timed: true, Line: s.line(conversation.ModelResponse, text)})
}

// drop gives every call that is left a result saying why it was not run: a call without one would make the
// conversation impossible to continue.
func (s *State) drop(why string) {
	for s.waiting() {
		c := s.pending[s.next]
		s.called(c)
		s.result(c, Result{Error: why}, false)
	}
}

// timeUp ends a run whose time is over.
func (s *State) timeUp() {
	s.drop("not run: the time budget was used up")
	if s.cfg.Limits.Strategy == StrategySummarize && s.closing == nil && !s.borrowed() {
		s.do(Extend{By: min(closingTime, s.cfg.Limits.Timeout)})
		s.close(s.cutShort(), true)
		return
	}
	s.fail(conversation.StatusTimeout, s.cutShort())
}
