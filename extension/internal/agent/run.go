package agent

// The driver of a run: does what the state machine asks for, and tells it what came of it.

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"github.com/google/uuid"

	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/policy"
	"aidb/extension/internal/purpose"
	"aidb/extension/internal/structured"
)

// run is one call on its way. journal is nil where nothing is stored: in a read-only run
// that is not in the background.
type run struct {
	service *Service
	def     *Definition
	call    Call
	limits  Limits
	output  *structured.Type // nil: free text
	history []conversation.Message
	note    string // how actions have ended, for the model
	acting  purpose.Acting
	denied  error // why governance refuses the call
	guards  policy.Guards
	task    Task
	journal Journal
	// readOnly: no tool may write.
	readOnly bool
	// deadline is TimeoutAt with the clock's monotonic reading: a clock that is set does not end a run.
	deadline time.Time

	allowances []Allowance // limits that are not the agent's own

	// Of a run that another one delegated; see delegate.go.
	parent *run
	depth  int       // delegations above this run
	bound  time.Time // when the run above is cut short, zero: never

	past *Past // what was committed of it before; see resume.go

	state   *State
	model   Model
	summary struct { // writes summaries; nil until one is asked for
		model Model
		price *Price
	}
	toolbox Toolbox
	whole   context.Context // the call's, which only the host ends
	timed   context.Context // what calls run under; see limit
	stop    context.CancelFunc
	failure *fault.Error // how the run ended without an answer
	raised  error        // the engine's error of a run within this one

	records  []conversation.Record // of the step in hand
	last     time.Time             // CreatedAt of the newest record
	sent     time.Time             // when the last Ask or Run was handed out
	round    int
	sequence uuid.UUID
	answer   *uuid.UUID
}

// do runs the call to its end.
func (r *run) do(ctx context.Context) (Outcome, error) {
	if err := r.begin(ctx); err != nil {
		return Outcome{}, err
	}
	first, err := r.open(ctx)
	if err != nil {
		return Outcome{}, err
	}
	r.whole, r.timed, r.stop = ctx, ctx, func() {}
	if end := r.hard(); !end.IsZero() {
		r.limit(ctx, end.Sub(r.service.Clock.Now()))
	}
	defer func() { r.stop() }()
	var next Effect
	if r.resumed() {
		next, err = r.resume(ctx, first)
	} else {
		next, err = r.advance(ctx, first)
	}
	for err == nil {
		var event Event
		switch e := next.(type) {
		case Ask:
			event, err = r.askModel(ctx, e)
		case Run:
			event, err = r.callTool(ctx, e)
			if done, ok := event.(ToolDone); ok && done.Result.Waits && r.service.Background != nil {
				return r.park(ctx, done.Result.Until)
			}
		case Finish:
			return r.finish(ctx, e)
		case parked:
			return r.park(ctx, e.until)
		default:
			err = fault.New(fault.Internal, "agent loop came to a stop")
		}
		if err == nil {
			next, err = r.advance(ctx, event)
		}
	}
	return Outcome{}, err
}

// advance tells the state machine what happened, logs the step, and returns what to do next.
func (r *run) advance(ctx context.Context, event Event) (next Effect, err error) {
	for _, effect := range r.state.Step(event) {
		switch e := effect.(type) {
		case Log:
			r.log(e)
		case Warn:
			r.service.Tracer.Warning(e.Text, e.Hint)
		case Extend:
			r.limit(ctx, e.By)
		default:
			next = effect
		}
	}
	r.tellProgress(next)
	if err := r.append(ctx); err != nil {
		return nil, err
	}
	r.sent = r.service.Clock.Now()
	return next, nil
}

func (r *run) begin(ctx context.Context) error {
	r.last = r.task.CreatedAt.Add(-time.Microsecond)
	if r.journal == nil {
		return nil
	}
	if err := r.journal.Begin(ctx, r.task); err != nil {
		return raised(ctx, err)
	}
	return nil
}

// open readies the model and the tools and makes the state. What keeps the run from beginning is its first event, so
// that the refusal is in the log.
func (r *run) open(ctx context.Context) (Event, error) {
	status, err := conversation.StatusDenied, r.denied
	if err == nil {
		status, err = conversation.StatusError, r.openAll(ctx)
		if err != nil && ctx.Err() != nil {
			return nil, canceled(ctx)
		}
	}
	if err != nil && fault.Engine(err) {
		return nil, err
	}
	cfg := Config{
		Agent:        r.def.Name,
		Model:        r.def.ModelName,
		Instructions: r.def.Instructions,
		User:         r.call.Caller.Role,
		Prompt:       r.call.Prompt,
		Note:         r.note,
		History:      r.history,
		Output:       r.output,
		Limits:       r.limits,
		Allowances:   r.allowances,
		Compaction:   Compaction{CompactionSettings: r.def.Compaction},
		Deadline:     r.deadline,
		Bound:        r.bound,
		Debug:        r.call.Debug,
		Redact:       r.service.Redact,
	}
	if m := r.def.Model; m != nil {
		cfg.Price, cfg.Compaction.Context = m.Price, m.Context
		if err == nil && m.Price == nil && cfg.limitsCost() {
			err = fault.New(fault.InvalidArgument, "the cost of agent %s is limited, but its model %s has no price",
				fault.Name(r.def.Name), fault.Name(m.Name)).WithHint(`Give the model's config a "price".`)
		}
	}
	if err != nil {
		r.state = NewState(cfg)
		return Refused{Status: status, Err: modelError(err)}, nil
	}
	cfg.Tools = r.toolbox.Specs()
	r.state = NewState(cfg)
	return Started{At: r.service.Clock.Now()}, nil
}

func (r *run) openAll(ctx context.Context) (err error) {
	if r.output, err = structured.Compile(r.outputType()); err != nil {
		return err
	}
	if r.def.Model == nil {
		return fault.New(fault.NotFound, "Model not found: %s", fault.Cut(r.def.ModelName, maxListed))
	}
	r.model, err = r.service.Models.Open(ctx, *r.def.Model)
	switch {
	case err == nil:
	case fault.KindOf(err) == fault.Unclassified:
		return fault.Wrap(err, fault.ModelRejected, "could not open model %s: %s", fault.Name(r.def.ModelName), err)
	default:
		return err
	}
	request := ToolboxRequest{
		Names:    r.def.Tools,
		ReadOnly: r.readOnly,
		Debug:    r.call.Debug,
		Role:     r.acting.Role,
		RoleID:   r.acting.RoleID,
		Elevated: r.acting.Elevated,
		Purpose:  r.acting.Purpose,
		Guards:   r.guards,
		AgentID:  r.def.ID,
		Agent:    r.def.Name,
		Caller:   r.call.Caller,
		Catalog:  r.def.Exposure == ExposureCatalog,
	}
	if r.journal != nil {
		request.TaskID, request.ConversationID = r.task.ID, r.task.ConversationID
	}
	root := r.root()
	request.RootAgentID, request.RootConversationID = root.def.ID, root.task.ConversationID
	r.toolbox, err = r.service.Toolboxes.Open(ctx, request)
	if err != nil || len(r.def.Delegates) == 0 {
		return err
	}
	return r.addDelegates(ctx)
}

// outputType is the one of the call, else the agent's. A JSON null is the call's wish for none.
func (r *run) outputType() json.RawMessage {
	if len(r.call.OutputType) > 0 {
		return r.call.OutputType
	}
	return r.def.OutputType
}

// hard is when what the run waits for is cut short; zero: never.
func (r *run) hard() time.Time {
	if r.limits.hardDeadline() && (r.bound.IsZero() || r.deadline.Before(r.bound)) {
		return r.deadline
	}
	return r.bound
}

// limit gives what is called from now on a new time limit, which never is beyond that of the run above.
func (r *run) limit(ctx context.Context, d time.Duration) {
	if r.stop != nil {
		r.stop()
	}
	if !r.bound.IsZero() {
		d = min(d, r.bound.Sub(r.service.Clock.Now()))
	}
	r.timed, r.stop = context.WithTimeout(ctx, d)
}

// askModel calls the model.
func (r *run) askModel(ctx context.Context, e Ask) (Event, error) {
	model, price, err := r.modelFor(e)
	var reply Reply
	if err == nil {
		reply, err = model.Complete(r.timed, e.Request)
		reply.Price = price
	}
	at := r.service.Clock.Now()
	switch {
	case ctx.Err() != nil:
		return nil, canceled(ctx)
	case err == nil:
		return Replied{At: at, Reply: reply}, nil
	case r.timed.Err() != nil:
		return TimeUp{At: at}, nil
	case fault.Is(err, fault.Canceled, fault.Internal):
		return nil, err
	}
	return ModelFailed{At: at, Err: err}, nil
}

// modelFor is the model that is to answer, and its price when it is not the run's own.
func (r *run) modelFor(e Ask) (Model, *Price, error) {
	name := r.def.Compaction.Model
	if !e.Summary || name == "" || name == r.def.ModelName || r.service.OpenModel == nil {
		return r.model, nil, nil
	}
	if r.summary.model == nil {
		m, price, err := r.service.OpenModel(r.timed, name)
		if err != nil {
			return nil, nil, err
		}
		r.summary.model, r.summary.price = m, price
	}
	return r.summary.model, r.summary.price, nil
}

// callTool calls a tool.
func (r *run) callTool(ctx context.Context, e Run) (Event, error) {
	result, err := r.toolbox.Call(r.timed, e.Call, r.state.toolCalls)
	at := r.service.Clock.Now()
	switch {
	case ctx.Err() != nil:
		return nil, canceled(ctx)
	case r.raised != nil:
		return nil, r.raised
	case err == nil:
		return ToolDone{At: at, Result: result}, nil
	case r.timed.Err() != nil:
		return TimeUp{At: at}, nil
	case fault.Engine(err):
		return nil, err
	}
	return ToolBroke{At: at, Err: err}, nil
}

func (r *run) finish(ctx context.Context, f Finish) (Outcome, error) {
	var out Outcome
	end := TaskEnd{
		ID:             r.task.ID,
		Status:         f.Status,
		PromptID:       r.task.PromptID,
		AnswerID:       r.answer,
		BudgetConsumed: min(plus(r.state.spent.input, r.state.spent.output), math.MaxInt32),
		Usage:          r.state.spent.reported,
		Cost:           r.cost(),
		Rounds:         r.state.round,
		CompletedAt:    r.last,
		TimeoutAt:      r.task.TimeoutAt,
	}
	if now := stamp(r.service.Clock.Now()); now.After(end.CompletedAt) {
		end.CompletedAt = now
	}
	switch {
	case f.Err != nil:
		r.failure, end.Error = f.Err, f.Err.Message
		out.Error = &end.Error
	default:
		end.Error, out.Message = f.Declined, &f.Answer
	}
	if r.journal == nil {
		return out, nil
	}
	if err := r.journal.Finish(ctx, end); err != nil {
		return Outcome{}, raised(ctx, err)
	}
	if f.Err == nil {
		id := r.task.ConversationID.String()
		out.ConversationID = &id
	}
	return out, nil
}

// cost is what the run's model calls cost, nil when its model has no price.
func (r *run) cost() *int64 {
	if r.state.cfg.Price == nil {
		return nil
	}
	return &r.state.spent.cost
}

// raised is a journal's error, which is always the engine's: what cannot be logged must not take effect.
func raised(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return canceled(ctx)
	}
	return err
}
