package agent

// Background tasks. A run in the background commits step by step and may be cut off between any two of them, by a crash
// of the server or of its worker. Whoever takes it up again hands the steps that were committed to a new state machine,
// as events; what the machine then asks for is what comes next. The machine is the same as ever: no rule of a run is
// here, and nothing but the log is stored.
//
//	cut off between            what happens again
//	a model's answer, commit   the model is asked again
//	a tool's effect, commit    the tool is called again: its effect was not committed either
//	an external call, commit   nothing: the model is told that the outcome is not known
//
// A call that waits for a person is a cut made on purpose. What was proposed and that the task waits commit together, and
// then nothing of the run is left in memory. Whoever takes it up finds the call without a result, and an action of that
// number: how the person answered is the result (see Waiter).
//
// A call that sleeps is such a cut, too: it began when it was logged, and is over so many seconds later, whoever has the
// task by then.
//
// A delegate is a run within the run with a task of its own. Its id is made of its parent's and of the number of the
// call, so that the one who takes the parent up again finds it, and goes on with it in the same way.

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
)

// Background is what makes a call a background task.
type Background struct {
	// Task is the task's id. Resumed says that it may have been begun before.
	Task    uuid.UUID
	Resumed bool
	// Past reads what was committed of a task; nil when it was never begun.
	Past func(ctx context.Context, task uuid.UUID) (*Past, error)
}

// Past is what was committed of a task. Records is all of its log. End is set when it is over; Declined then says that it
// answered after a person's no.
type Past struct {
	Begun    Task
	Records  []conversation.Record
	End      *Outcome
	Declined string
}

// Progress is how a run stands after a step. Phase is what it does next: model, tool:<name> or sleep. Final: nothing, the
// next call is Finish.
type Progress struct {
	Phase  string
	Rounds int
	Usage  conversation.Usage
	Final  bool
}

// ProgressJournal is a journal that writes each step as it is taken. It is told how the run stands before each Append.
// Park writes that the task waits, for a person or until a time, and when its time budget ends; nothing more is written of
// the run then.
type ProgressJournal interface {
	Journal
	Progress(p Progress)
	Park(ctx context.Context, until, end time.Time) error
}

// Waiter is a toolbox whose calls may wait. Answered is what became of the call of that number, which the run made before
// it was parked: nil if nobody was asked, a Result that Waits if nobody has answered, or if its time is not over. The
// call began at a time and must be over at another, which may be zero.
type Waiter interface {
	Answered(ctx context.Context, call conversation.ToolCall, n int, began, end time.Time) (*Result, error)
}

// Repeater is a toolbox that knows which calls may be made again when it is not known whether they were made. A toolbox
// that is none makes its effects in the transaction that logs them, so each of its calls may.
type Repeater interface {
	Repeatable(call conversation.ToolCall) bool
}

// Resumer is a model that has to know how many replies a run has had already.
type Resumer interface{ Resume(replies int) }

const (
	sleepTool    = "sleep"
	phaseModel   = "model"
	timeOver     = "stopped: the time budget was used up"
	unknownCall  = "the call was sent, and it is not known whether it was carried out: the server was interrupted. It was not sent again. Find out how things stand before you repeat it"
	changedAgent = "the agent was changed while its task was interrupted, and the task cannot go on from its log"
)

// backgroundTask is the id of a run's task in the background, where it has one before it begins.
func (s *Service) backgroundTask(parent *run) (id uuid.UUID, resumed bool) {
	switch {
	case s.Background == nil:
		return uuid.Nil, false
	case parent == nil:
		return s.Background.Task, s.Background.Resumed
	}
	return uuid.NewSHA1(parent.task.ID, []byte("delegation "+strconv.Itoa(parent.state.toolCalls))), s.Background.Resumed
}

// newConversation is the id of a conversation that a run begins.
func (s *Service) newConversation(task uuid.UUID) uuid.UUID {
	if s.Background == nil {
		return s.IDs.New()
	}
	return uuid.NewSHA1(task, []byte("conversation"))
}

// recall loads what was committed of the run before.
func (r *run) recall(ctx context.Context) error {
	past, err := r.service.Background.Past(ctx, r.task.ID)
	if err != nil || past == nil {
		return err
	}
	r.past = past
	if len(past.Records) == 0 {
		return nil
	}
	r.task.PromptID = past.Records[0].ID
	r.task.CreatedAt = past.Begun.CreatedAt
	r.task.TimeoutAt = r.task.CreatedAt.Add(r.limits.Timeout)
	if past.Begun.TimeoutAt.After(r.task.TimeoutAt) { // it has been put aside before
		r.task.TimeoutAt = past.Begun.TimeoutAt
	}
	r.deadline = r.task.TimeoutAt
	return nil
}

// before leaves out of a conversation's log what is this run's own.
func (r *run) before(log []conversation.Record) []conversation.Record {
	if r.past == nil || len(r.past.Records) == 0 {
		return log
	}
	own := make(map[uuid.UUID]bool, len(r.past.Records))
	for i := range r.past.Records {
		own[r.past.Records[i].ID] = true
	}
	kept := make([]conversation.Record, 0, len(log))
	for i := range log {
		if !own[log[i].ID] {
			kept = append(kept, log[i])
		}
	}
	return kept
}

// resumed reports whether steps of the run were committed before.
func (r *run) resumed() bool { return r.past != nil && len(r.past.Records) > 0 }

// resume hands the committed steps to the state machine, and returns what it asks for after the last.
func (r *run) resume(ctx context.Context, first Event) (Effect, error) {
	if refusal, ok := first.(Refused); ok {
		return r.refuseAgain(ctx, refusal)
	}
	records := r.past.Records
	last := &records[len(records)-1]
	r.last, r.sequence = last.CreatedAt, last.Sequence
	event, replies, done := Event(Started{At: records[0].CreatedAt}), 0, 0
	var extended time.Duration
	for {
		var next Effect
		for _, effect := range r.state.Step(event) {
			switch e := effect.(type) {
			case Log:
				if done == len(records) || records[done].Type != e.Type {
					return r.diverged(ctx)
				}
				r.round = e.Round
				r.state.Logged(e, records[done].ID)
				done++
			case Extend:
				extended = e.By
			case Warn:
			default:
				next = effect
			}
		}
		if done == len(records) {
			// the time in which nobody had the task is not the agent's
			if now := r.service.Clock.Now(); now.After(last.CompletedAt) {
				away := now.Sub(last.CompletedAt)
				r.deadline = r.deadline.Add(away - min(away, slept(next)))
				r.state.cfg.Deadline = r.deadline
				if end := r.hard(); !end.IsZero() {
					r.limit(ctx, end.Sub(now))
				}
			}
			if m, ok := r.model.(Resumer); ok {
				m.Resume(replies)
			}
			if extended > 0 {
				r.limit(ctx, extended)
			}
			r.state.recalled = true
			return r.unknown(ctx, next)
		}
		var err error
		if event, err = r.happened(next, records[done:]); err != nil {
			return nil, err
		}
		if _, ok := event.(Replied); ok {
			replies++
		}
	}
}

// happened is the event that the first of these records tells of.
func (r *run) happened(next Effect, records []conversation.Record) (Event, error) {
	rec := &records[0]
	switch e := next.(type) {
	case Ask:
		return asked(e, records)
	case Run:
		contents, failure, err := conversation.ReadToolResponse(rec.Response)
		switch {
		case err != nil:
			return nil, fault.Wrap(err, fault.Internal, "a tool_response of the log cannot be read")
		case failure == toolError+timeOver:
			return TimeUp{At: rec.CompletedAt}, nil
		}
		result := Result{Contents: contents, Error: failure, Gist: r.gist(e.Call.Name, contents), Action: conversation.ReadAction(rec.Request)}
		if rec.Status == conversation.StatusDenied {
			result.Declined = rec.Error
		}
		result.Used.Tokens, result.Used.Cost = conversation.ReadDelegated(rec.Request)
		return ToolDone{At: rec.CompletedAt, Result: result}, nil
	}
	return nil, fault.New(fault.Internal, "%s", changedAgent)
}

// asked is what came of a model call.
func asked(e Ask, records []conversation.Record) (Event, error) {
	rec := &records[0]
	switch {
	case e.Summary && rec.Type == conversation.Compaction:
		a, failed, err := conversation.ReadCompaction(rec.Response)
		switch {
		case err != nil:
			return nil, fault.Wrap(err, fault.Internal, "a compaction of the log cannot be read")
		case failed:
			return ModelFailed{At: rec.CompletedAt, Err: errors.New("no summary")}, nil
		}
		if strings.HasPrefix(a.Contents, ownSummary) {
			a.Contents = "" // the model's said nothing
		}
		return Replied{At: rec.CompletedAt, Reply: Reply{Content: a.Contents, Model: a.Model, Usage: a.Usage}}, nil
	case rec.Type != conversation.ModelResponse:
		return TimeUp{At: rec.CreatedAt}, nil
	case len(rec.Response) == 0:
		// what did not fit is asked for again only when it was made shorter
		if len(records) > 1 && records[1].Type == conversation.ModelRequest {
			return ModelFailed{At: rec.CompletedAt, Err: errors.New(rec.Error)}, nil
		}
		return ModelFailed{At: rec.CompletedAt, Err: fault.New(fault.ModelOverflow, "%s", rec.Error)}, nil
	}
	a, err := conversation.ReadModelResponse(rec.Response)
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "a model_response of the log cannot be read")
	}
	return Replied{At: rec.CompletedAt, Reply: Reply{
		Content: a.Contents, ToolCalls: a.ToolCalls, Finish: a.Finish, Model: a.Model, Usage: a.Usage,
	}}, nil
}

// gist is that of a delegate's answer; see answerObject.
func (r *run) gist(tool, contents string) string {
	d, ok := r.toolbox.(*delegates)
	if !ok {
		return ""
	}
	if _, ok := d.tools[tool]; !ok {
		return ""
	}
	var answer struct {
		Answer string `json:"answer"`
	}
	if json.Unmarshal([]byte(contents), &answer) != nil {
		return ""
	}
	return answer.Answer
}

// unknown answers the call that was begun before the run was cut off, if it must not be made a second time.
func (r *run) unknown(ctx context.Context, next Effect) (Effect, error) {
	call, ok := next.(Run)
	if !ok {
		return next, nil
	}
	box, delegate := r.toolbox, false
	if d, ok := box.(*delegates); ok {
		box = d.Toolbox
		_, delegate = d.tools[call.Call.Name]
	}
	if w, ok := box.(Waiter); ok && !delegate {
		answer, err := w.Answered(ctx, call.Call, r.state.toolCalls, r.last, r.hard())
		switch {
		case err != nil:
			return nil, err
		case answer != nil && answer.Waits:
			return parked{answer.Until}, nil
		case answer != nil:
			r.sent = r.service.Clock.Now()
			return r.advance(ctx, ToolDone{At: r.sent, Result: *answer})
		}
	}
	if refused := r.state.forgotten(call.Call); refused != "" {
		r.sent = r.service.Clock.Now()
		return r.advance(ctx, ToolDone{At: r.sent, Result: Result{Error: refused}})
	}
	if delegate {
		return next, nil
	}
	if t, ok := box.(Repeater); !ok || t.Repeatable(call.Call) {
		return next, nil
	}
	r.sent = r.service.Clock.Now()
	return r.advance(ctx, ToolDone{At: r.sent, Result: Result{Error: unknownCall}})
}

// slept is how long the call that a run was put aside for sleeps: that is the agent's own time.
func slept(next Effect) time.Duration {
	call, ok := next.(Run)
	if !ok || call.Call.Name != sleepTool {
		return 0
	}
	var args struct {
		Seconds float64 `json:"seconds"`
	}
	if json.Unmarshal([]byte(call.Call.Arguments), &args) != nil {
		return 0
	}
	return time.Duration(max(args.Seconds, 0) * float64(time.Second))
}

// parked is what to do with a run whose call waits: nothing, until it is taken up again.
type parked struct{ until time.Time }

func (parked) effect() {}

// park puts the run aside. Where a delegate waits, its own step has said so for all the runs above it.
func (r *run) park(ctx context.Context, until time.Time) (Outcome, error) {
	j, ok := r.journal.(ProgressJournal)
	if !ok {
		return Outcome{}, fault.New(fault.Internal, "a run that is not in the background cannot be put aside")
	}
	if err := j.Park(ctx, until, r.deadline); err != nil {
		return Outcome{}, raised(ctx, err)
	}
	return Outcome{Parked: true}, nil
}

// refuseAgain ends a run that may no longer go on: its prompt is in the log already.
func (r *run) refuseAgain(ctx context.Context, refusal Refused) (Effect, error) {
	last := &r.past.Records[len(r.past.Records)-1]
	r.last, r.sequence = last.CreatedAt, last.Sequence
	r.state.prompted = true
	return r.advance(ctx, refusal)
}

// diverged ends a run whose log no longer fits its agent.
func (r *run) diverged(ctx context.Context) (Effect, error) {
	r.state = NewState(r.state.cfg)
	return r.refuseAgain(ctx, Refused{Status: conversation.StatusError, Err: fault.New(fault.WrongState, "%s", changedAgent)})
}

// tellProgress says how the run stands, with what it does next.
func (r *run) tellProgress(next Effect) {
	j, ok := r.journal.(ProgressJournal)
	if !ok {
		return
	}
	p := Progress{Rounds: r.state.round, Usage: r.state.spent.reported}
	switch e := next.(type) {
	case Ask:
		p.Phase = phaseModel
	case Run:
		if p.Phase = "tool:" + fault.Cut(e.Call.Name, maxDebugName); e.Call.Name == sleepTool {
			p.Phase = sleepTool
		}
	case Finish:
		p.Final = true
	}
	j.Progress(p)
}
