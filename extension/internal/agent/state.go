package agent

// The state of a run, the events that move it and the effects that it asks for.

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"

	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/redact"
	"aidb/extension/internal/structured"
)

// Config is what a run is about; it does not change while it runs.
type Config struct {
	Agent        string
	Model        string
	Instructions string
	// User is the sender of the prompt, as the log shows it.
	User   string
	Prompt string
	// Note is put below the prompt for the model: how actions have ended since it spoke last.
	Note string
	// History is what was said before in the conversation, in order (see conversation.Repair).
	History []conversation.Message
	Tools   []ToolSpec
	// Output is the shape that the answer must have, nil for free text.
	Output *structured.Type
	Limits Limits
	// Price is the model's, nil when it has none.
	Price *Price
	// Allowances are limits that are not the agent's own.
	Allowances []Allowance
	// Compaction says when and how the conversation is made shorter.
	Compaction Compaction
	Deadline   time.Time
	// Bound is when the run that this one works for is cut short; zero: never, or there is none.
	Bound time.Time
	// Debug asks for a debug line with every logged step.
	Debug bool
	// Redact takes secrets out of what is logged, shown in debug lines or becomes an error; nil: nothing does. The model
	// and the caller get texts as they are.
	Redact func(string) string
}

// State is one run. It does no I/O and knows no clock: events carry the time. It belongs to one goroutine.
type State struct {
	cfg    Config
	system string   // the instructions, with what is said of the output
	names  []string // of the tools
	known  map[string]bool

	// messages is what the model sees; the first is the system message's place and is skipped while that is empty.
	messages  []conversation.Message
	textBytes int   // of messages from the second on
	toolBytes int   // of the tools' specifications
	offered   bool  // the tools, with the last request
	bounded   int64 // how many tokens the reply to it may have; 0: any number

	round     int // rounds begun
	spent     spent
	toolCalls int // calls handed to a tool

	overBudget   *fault.Error // what attempt_complete's grace rounds were granted for
	grace        int          // grace rounds begun
	warned       bool         // ignore has warned
	empties      int          // empty answers in a row
	rejected     *rejected    // the last answer, when it was not of the output type
	rejections   int          // answers that were not
	unclassified int          // model errors without a kind
	closing      *closing     // the closing report, once it is asked for
	compacting   *compacting  // the summary, while it is asked for
	overflowed   bool         // the request in hand did not fit, and was made shorter
	measured     measured     // the last request whose size the provider told
	guard        guard

	// A reply's calls, and which of them is next.
	pending   []conversation.ToolCall
	next      int
	truncated bool

	declined string // that a person has declined what the run proposed last
	prompted bool   // the prompt is in the log already
	// recalled: the reply in hand was read from the log.
	recalled bool
	finished bool
	effects  []Effect
}

// NewState begins a run; its first event is Started or Refused.
func NewState(cfg Config) *State {
	s := &State{cfg: cfg, system: cfg.Instructions, known: make(map[string]bool, len(cfg.Tools)), names: make([]string, len(cfg.Tools))}
	for i, t := range cfg.Tools {
		s.names[i] = t.Name
		s.known[t.Name] = true
		s.toolBytes += len(t.Name) + len(t.Description) + len(t.Parameters)
	}
	if cfg.Output != nil {
		s.system = join(s.system, cfg.Output.Instruction())
	}
	s.messages = make([]conversation.Message, 1, len(cfg.History)+8)
	s.messages[0].Role = conversation.System
	for _, m := range cfg.History {
		s.say(m)
	}
	return s
}

// Messages returns the conversation as it stands, without the system message.
func (s *State) Messages() []conversation.Message { return s.messages[1:] }

func (s *State) redact(text string) string {
	if s.cfg.Redact == nil {
		return text
	}
	return s.cfg.Redact(text)
}

// forgotten says why a call that was read from the log is not run: its arguments held a secret, which the log does not.
func (s *State) forgotten(c conversation.ToolCall) string {
	if s.recalled && strings.Contains(c.Arguments, redact.Mark) {
		return "not run: the server was interrupted, and the log does not keep the secret in the arguments; make the call again"
	}
	return ""
}

// redactCalls returns the calls as they are logged.
func (s *State) redactCalls(calls []conversation.ToolCall) []conversation.ToolCall {
	if s.cfg.Redact == nil {
		return calls
	}
	copied := false
	for i := range calls {
		arguments := s.cfg.Redact(calls[i].Arguments)
		if arguments == calls[i].Arguments {
			continue
		}
		if !copied {
			calls, copied = append([]conversation.ToolCall(nil), calls...), true
		}
		calls[i].Arguments = arguments
	}
	return calls
}

func (s *State) say(m conversation.Message) {
	s.messages = append(s.messages, m)
	s.textBytes += m.Size()
}

// Logged says which id a record was given: it is the id of the message that stands in it.
func (s *State) Logged(l Log, id uuid.UUID) {
	if l.Message > 0 {
		s.messages[l.Message].ID = id
	}
}

// sentBytes is the size of what the last request held, the basis of an estimate.
func (s *State) sentBytes() int {
	n := len(s.messages[0].Content) + s.textBytes
	if s.offered {
		n += s.toolBytes
	}
	return n
}

// Event is something that happened.
type Event interface{ event() }

type (
	// Started is the first event.
	Started struct{ At time.Time }
	// Refused is the first event of a run that may not begin: it only logs that it was asked for, and why not.
	Refused struct {
		Status string
		Err    *fault.Error
	}
	// Replied: the model answered.
	Replied struct {
		At    time.Time
		Reply Reply
	}
	// ModelFailed: the model did not answer, and the run was not over its time.
	ModelFailed struct {
		At  time.Time
		Err error
	}
	// ToolDone: the call that was handed out has a result.
	ToolDone struct {
		At     time.Time
		Result Result
	}
	// ToolBroke: the call that was handed out ended the run.
	ToolBroke struct {
		At  time.Time
		Err error
	}
	// TimeUp: what was handed out was cut short by the time budget.
	TimeUp struct{ At time.Time }
)

func (Started) event()     {}
func (Refused) event()     {}
func (Replied) event()     {}
func (ModelFailed) event() {}
func (ToolDone) event()    {}
func (ToolBroke) event()   {}
func (TimeUp) event()      {}

// Effect is something to do. The last effect of a step is Ask, Run or Finish; the ones before it are done in order.
type Effect interface{ effect() }

type (
	// Log is a step for the action log. Timed says that it began when the last Ask or Run was handed out; otherwise
	// it takes no time. Line is the debug line, "" without Debug.
	Log struct {
		Type     conversation.ActionType
		Round    int
		Request  json.RawMessage
		Response json.RawMessage
		Status   string
		Error    string
		Timed    bool
		Line     string
		// Message is the message that stands in the record, by its place; zero: none does.
		Message int
	}
	// Warn is a warning to the session.
	Warn struct{ Text, Hint string }
	// Extend gives the run a new deadline, that long from now.
	Extend struct{ By time.Duration }
	// Ask is a model call, answered by Replied, ModelFailed or TimeUp. Summary: for a summary, which another model may
	// write.
	Ask struct {
		Request Request
		Summary bool
	}
	// Run is a tool call, answered by ToolDone, ToolBroke or TimeUp.
	Run struct{ Call conversation.ToolCall }
	// Finish ends the run: with an answer, or with Err. Declined comes with an answer, after a person's no.
	Finish struct {
		Status   string
		Answer   string
		Declined string
		Err      *fault.Error
	}
)

func (Log) effect()    {}
func (Warn) effect()   {}
func (Extend) effect() {}
func (Ask) effect()    {}
func (Run) effect()    {}
func (Finish) effect() {}
