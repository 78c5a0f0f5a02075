package agent

// The transitions of a run's tool calls.

import (
	"strconv"
	"strings"
	"time"

	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
)

// runNext hands out the next call of the reply, in the order given; calls that are not to be run get their result
// at once. After the last one the round is over.
func (s *State) runNext(at time.Time) {
	for s.waiting() {
		if s.cut(at) {
			s.timeUp()
			return
		}
		call := s.pending[s.next]
		s.called(call)
		if refused := s.refusal(call); refused != "" {
			s.result(call, Result{Error: refused}, false)
			continue
		}
		s.toolCalls++
		s.do(Run{Call: call})
		return
	}
	switch s.guard.judge() {
	case circleOfFailure:
		s.fail(conversation.StatusError, fault.New(fault.LimitExceeded,
			"repetition limit exceeded: the model made the same failing tool call in %d rounds in a row", maxRepeats))
	case circleOfSuccess:
		s.close(fault.New(fault.LimitExceeded,
			"repetition limit exceeded: the model made the same tool call with the same result in %d rounds in a row", maxRepeats), false)
	default:
		s.nextRound(at)
	}
}

// refusal says why a call is not run, "" when it is.
func (s *State) refusal(c conversation.ToolCall) string {
	switch {
	case s.truncated:
		return "not run: the reply was cut off at the model's output limit; make the call again, with shorter arguments"
	case s.next >= maxParallel:
		return "not run: more than " + strconv.Itoa(maxParallel) + " tool calls in one reply"
	case s.forgotten(c) != "":
		return s.forgotten(c)
	case !s.known[c.Name]:
		if len(s.names) == 0 {
			return "tool " + fault.Name(c.Name) + " is not available; there are no tools"
		}
		return "tool " + fault.Name(c.Name) + " is not available; available tools: " + fault.Cut(strings.Join(s.names, ", "), maxListed)
	}
	return ""
}

// called logs a call.
func (s *State) called(c conversation.ToolCall) {
	c.Arguments = s.redact(c.Arguments)
	l := Log{
		Type:    conversation.ToolCalled,
		Round:   s.logRound(),
		Request: conversation.ToolCallPayload(c),
		Status:  conversation.StatusSuccess,
	}
	if s.cfg.Debug {
		l.Line = toolCallLine(c)
	}
	s.do(l)
}

// result logs the result of the next call and shows it to the model.
func (s *State) result(c conversation.ToolCall, r Result, timed bool) {
	text, failed := conversation.Clean(r.Contents), r.Error != ""
	if failed {
		if text = conversation.Clean(r.Error); !strings.HasPrefix(text, toolError) {
			text = toolError + text
		}
	}
	logged := s.redact(text)
	l := Log{
		Type:    conversation.ToolResponse,
		Round:   s.logRound(),
		Request: conversation.ToolResponsePayload(c),
		Status:  conversation.StatusSuccess,
		Timed:   timed,
	}
	if r.Waits {
		l.Status = conversation.StatusAwaitApproval
	}
	if r.Declined != "" {
		l.Status, l.Error = conversation.StatusDenied, r.Declined
	}
	if r.Action != "" {
		l.Request = conversation.OfAction(l.Request, r.Action)
	}
	if r.Action != "" || r.Declined != "" {
		s.declined = r.Declined // a later answer of the person counts
	}
	if failed {
		l.Status = conversation.StatusError
		l.Response = conversation.ErrorPayload(logged)
	} else {
		l.Response = conversation.ContentsPayload(logged)
	}
	if s.cfg.Debug {
		l.Line = toolResponseLine(c.Name, logged)
	}
	if r.Used != (Used{}) {
		l.Request = conversation.Delegated(l.Request, r.Used.Tokens, r.Used.Cost)
		s.spent.below.add(r.Used)
	}
	l.Message = len(s.messages)
	s.do(l)
	s.say(conversation.Message{Role: conversation.Tool, Content: text, ToolCallID: c.ID, ToolName: c.Name})
	if r.Gist != "" && !failed {
		text = r.Gist
	}
	s.guard.add(c, text, failed)
	s.next++
}
