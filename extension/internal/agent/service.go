package agent

// Service: one call of agent_converse, from its arguments to its row.

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"

	"aidb/extension/internal/approval"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/decision"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/policy"
	"aidb/extension/internal/purpose"
)

// Service runs agents. All fields but the last four are needed. NewJournal gives each run a journal of its own.
type Service struct {
	Store      Store
	Models     Models
	Toolboxes  Toolboxes
	NewJournal func() Journal
	Clock      Clock
	IDs        IDs
	Tracer     Tracer
	// Redact takes secrets out of what is logged, shown or becomes an error; nil: nothing does.
	Redact func(string) string
	// OpenModel opens a model by its name, for summaries; nil: the agent's own writes them.
	OpenModel func(ctx context.Context, name string) (Model, *Price, error)
	// Decisions gets the records of delegations and is told which run is in hand; nil: nothing is recorded.
	Decisions *decision.Trail
	// Actions are those that wait for a person; nil: nothing waits.
	Actions Actions
	// Narrowest lets a delegate's own purpose remove rights (aidb.delegation_role); otherwise it is not read.
	Narrowest bool
	// Background is set for a background task; nil: the call runs in its caller's session.
	Background *Background
}

// maxPrompt is more than any model reads. It keeps a call from storing what could never be answered.
const maxPrompt = 8 << 20

// Converse runs one call. The error is for conditions of the engine only (the call was canceled, the host is gone,
// the log cannot be written): the caller raises it, and nothing of the run is to stay. Everything else that goes
// wrong is in the outcome, and what was logged stays.
func (s *Service) Converse(ctx context.Context, c Call) (Outcome, error) {
	r, err := s.prepare(ctx, c, nil)
	if err != nil {
		return refused(ctx, err)
	}
	return r.do(ctx)
}

// prepare checks the call and loads what it names. parent is the run that delegates, nil for a call from outside. Its
// errors leave no trace in the log: there is no agent to log for, or the conversation is not the caller's to write into.
func (s *Service) prepare(ctx context.Context, c Call, parent *run) (*run, error) {
	readOnly, err := readOnly(c)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(c.Prompt) == "" {
		return nil, fault.New(fault.InvalidArgument, "prompt must not be empty")
	}
	if len(c.Prompt) > maxPrompt {
		return nil, fault.New(fault.InvalidArgument, "prompt is too long: %d bytes, the limit is %d", len(c.Prompt), maxPrompt)
	}
	// what confirms an action is never said to a model, not even by whom it belongs to
	c.Prompt = approval.Scrub(c.Prompt)
	id, err := conversationID(c.ConversationID)
	if err != nil {
		return nil, err
	}
	now := s.Clock.Now()
	def, err := s.Store.Agent(ctx, c.Agent)
	switch {
	case err != nil:
		return nil, err
	case def == nil:
		return nil, fault.New(fault.NotFound, "agent %s not found", fault.Name(c.Agent))
	case !def.Enabled:
		return nil, fault.New(fault.WrongState, "agent %s is disabled", fault.Name(c.Agent))
	}
	var log []conversation.Record
	taskID, resumed := s.backgroundTask(parent)
	var note string
	if c.ConversationID == nil {
		id = s.newConversation(taskID)
	} else {
		if err := parent.idle(id); err != nil {
			return nil, err
		}
		known, err := s.Store.Conversation(ctx, id)
		if err != nil {
			return nil, err
		}
		if err := owned(id, known, c.Caller, def.Name); err != nil {
			return nil, err
		}
		log = known.Records
		// a prompt of a background task answers nothing: it may be read long after it was written
		if known.Actions && parent == nil && !readOnly && s.Actions != nil && s.Background == nil {
			if note, err = s.Actions.Reply(ctx, id, c.Prompt, def.ConfirmReplies); err != nil {
				return nil, raisedError{err}
			}
		}
		// Waiting for the lock is not the agent's time.
		now = s.Clock.Now()
	}
	limits := limitsOf(def)
	if s.Background == nil {
		taskID = s.IDs.New()
	}
	r := &run{
		service:  s,
		def:      def,
		call:     c,
		limits:   limits,
		readOnly: readOnly,
		note:     note,
		deadline: now.Add(limits.Timeout),
		task: Task{
			ID:             taskID,
			AgentID:        def.ID,
			Agent:          def.Name,
			ConversationID: id,
			PromptID:       s.IDs.New(),
			Caller:         c.Caller,
			CreatedAt:      stamp(now),
			TimeoutAt:      stamp(now).Add(limits.Timeout),
		},
	}
	if resumed {
		if err := r.recall(ctx); err != nil {
			return nil, err
		}
	}
	r.history = conversation.Rebuild(r.before(log))
	if parent == nil {
		r.acting, r.denied = purpose.Resolve(def.Purpose)
	} else if err := r.under(ctx, parent); err != nil {
		return nil, err
	}
	r.task.Role, r.task.Purpose = r.acting.Role, r.acting.Purpose
	if !readOnly || s.Background != nil {
		r.journal = s.NewJournal()
	}
	r.guard()
	return r, nil
}

// guard finds the machines that the run's tool calls have to pass: of its own conversation, and of those above it.
func (r *run) guard() {
	var above policy.Guards
	if r.parent != nil {
		above = r.parent.guards
	}
	stored := ""
	if r.journal != nil {
		stored = r.task.ConversationID.String()
	}
	guards, err := policy.Within(above, stored, r.def.Policies...)
	if err != nil && r.denied == nil {
		r.denied = err
	}
	r.guards = guards
}

// raisedError is raised whatever its kind is.
type raisedError struct{ error }

// refused turns an error into the call's row, or returns it when it is the engine's.
func refused(ctx context.Context, err error) (Outcome, error) {
	if ctx.Err() != nil {
		return Outcome{}, canceled(ctx)
	}
	var raise raisedError
	if errors.As(err, &raise) {
		return Outcome{}, raise.error
	}
	if fault.Engine(err) {
		return Outcome{}, err
	}
	text := conversation.Clean(err.Error())
	return Outcome{Error: &text}, nil
}

// canceled is the error of a call that the host gave up. The host may say why as the context's cause.
func canceled(ctx context.Context) error {
	cause := context.Cause(ctx)
	if fault.KindOf(cause) != fault.Unclassified {
		return cause
	}
	return fault.Wrap(cause, fault.Canceled, "agent run was canceled")
}

// readOnly is the mode of the run: what the caller asked for, else what the server can do.
func readOnly(c Call) (bool, error) {
	if c.ReadOnly == nil {
		return c.InRecovery || c.CannotWrite, nil
	}
	switch {
	case !*c.ReadOnly && c.InRecovery:
		return false, fault.New(fault.WrongState, "cannot run with read_only => false on a standby")
	case !*c.ReadOnly && c.CannotWrite:
		return false, fault.New(fault.WrongState, "cannot run with read_only => false in a read-only transaction")
	}
	return *c.ReadOnly, nil
}

// conversationID reads the argument; every spelling that the type uuid takes is one.
func conversationID(text *string) (uuid.UUID, error) {
	if text == nil {
		return uuid.Nil, nil
	}
	id, err := uuid.Parse(*text)
	if err != nil {
		return uuid.Nil, fault.New(fault.InvalidText, "invalid conversation id %s: not a uuid", fault.Name(*text))
	}
	return id, nil
}

// owned checks that a conversation may be continued: by the caller that began it, and no other end user of the same
// role; with the agent that it was begun with.
func owned(id uuid.UUID, c Conversation, caller Caller, agent string) error {
	switch {
	case !c.Exists:
		return nil
	case c.Role != caller.Role || c.SessionUser != caller.SessionUser || c.Principal != caller.Principal:
		return fault.New(fault.Privilege, "conversation '%s' belongs to another caller", id)
	case c.Agent != agent:
		return fault.New(fault.InvalidArgument, "conversation '%s' belongs to agent %s", id, fault.Name(c.Agent))
	}
	return nil
}

// stamp is a time as the server stores it.
func stamp(t time.Time) time.Time { return t.Truncate(time.Microsecond) }

// SystemClock is the machine's clock.
type SystemClock struct{}

// Now returns the time.
func (SystemClock) Now() time.Time { return time.Now() }

// UUIDv7 makes ids that sort by the time they are made.
type UUIDv7 struct{}

// New returns an id. The source of randomness cannot fail (it ends the process instead); were it to, the zero id
// would be refused by the primary key of the first table it is stored in twice.
func (UUIDv7) New() uuid.UUID {
	id, err := uuid.NewV7()
	if err != nil {
		return uuid.Nil
	}
	return id
}
