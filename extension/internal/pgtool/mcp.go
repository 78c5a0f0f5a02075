package pgtool

import (
	"context"
	"encoding/json"
	"errors"

	"aidb/extension/internal/decision"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/spi"
	"aidb/extension/internal/tool"
)

// Remote calls tools that are outside the database.
type Remote interface {
	// Admit says whether the tool may be called now, on whose behalf it is, and returns the call: what is to be known of
	// its server was read then, and nothing was sent yet. A refusal is a *Denial.
	Admit(ctx context.Context, t tool.Tool, s Scope) (RemoteCall, error)
}

// RemoteCall is a call that may be made. An error of Send says what is known of it, as far as it can: see NeverSent and
// OutcomeUnknown.
type RemoteCall interface {
	// About says where the call goes, and after Send in which session it went.
	About() decision.Remote
	Send(ctx context.Context, arguments json.RawMessage) (RemoteResult, error)
}

// RemoteResult is what a tool gave: for a model, and for SQL. Failed says that the tool itself did.
type RemoteResult struct {
	Text   string
	JSON   json.RawMessage
	Failed bool
}

// Denial is why a call may not be made, in the words of a decision record.
type Denial struct {
	Err    error
	Reason string
}

func (d *Denial) Error() string { return d.Err.Error() }

// Unwrap returns the error.
func (d *Denial) Unwrap() error { return d.Err }

// NeverSent reports whether a failed call certainly never left: nothing outside can have happened.
func NeverSent(err error) bool {
	var f interface{ NeverSent() bool }
	if errors.As(err, &f) {
		return f.NeverSent()
	}
	var denied *Denial
	return errors.As(err, &denied)
}

// OutcomeUnknown reports whether a failed call was sent without an answer that says what became of it: it may have taken
// effect, and must not be sent again by itself.
func OutcomeUnknown(err error) bool {
	var f interface{ OutcomeUnknown() bool }
	return errors.As(err, &f) && f.OutcomeUnknown()
}

// remote is the one place where a call leaves the database. First who may, then what: the arguments are looked at only
// when the call itself is permitted, so that a refusal tells nothing. Every call is one decision.
func (r *Runner) remote(ctx context.Context, t tool.Tool, arguments string, s Scope) (RemoteResult, error) {
	s = s.of(t, arguments)
	d := decision.Record{At: r.now(), Tool: t.Name, Point: decision.MCPCall, Role: s.Role, Status: decision.Allowed, Object: t.Server}
	result, err := r.passAndSend(ctx, t, arguments, s, &d)
	var refused *Refused
	if errors.Is(err, spi.ErrGone) || errors.As(err, &refused) { // the latter is on record
		return result, err
	}
	if err == nil {
		if result.Failed {
			d.SQLState = fault.ToolFailed.SQLState()
		}
		r.Decisions.Add(d)
		return result, nil
	}
	if err = r.denied(&d, err); errors.As(err, &refused) {
		return result, err
	}
	d.SQLState = fault.SQLState(err)
	r.Decisions.Add(d)
	return result, err
}

// denied records that a call was refused and returns the refusal; any other error is returned as it is.
func (r *Runner) denied(d *decision.Record, err error) error {
	var denial *Denial
	if !errors.As(err, &denial) {
		return err
	}
	d.SQLState, d.Status, d.Reason = fault.SQLState(err), decision.Denied, denial.Reason
	return &Refused{Err: err, ID: r.Decisions.Add(*d), Reason: d.Reason}
}

// passAndSend makes every check that comes before the arguments are looked at, looks at them, and sends the call. What the
// policies have counted is taken back when the call certainly never left.
func (r *Runner) passAndSend(ctx context.Context, t tool.Tool, arguments string, s Scope, d *decision.Record) (RemoteResult, error) {
	if s.ReadOnly {
		return RemoteResult{}, &Denial{Reason: decision.PreExecutionRejected, Err: fault.New(fault.Privilege, "tool %s writes and cannot be used in a read-only run", fault.Name(t.Name))}
	}
	call, err := r.Remote.Admit(ctx, t, s)
	if err != nil {
		return RemoteResult{}, err
	}
	d.Remote = call.About()
	// Nothing runs as the purpose's role, but whoever may not act as it may not act in its name outside either.
	asked := s.Role != "" || len(s.Guards) > 0
	args, problem := checked(t, arguments)
	if problem != nil {
		if asked {
			problem = r.permitted(ctx, t, nil, s, problem)
		}
		return RemoteResult{}, problem
	}
	passage := &Passage{host: r.Host}
	if asked {
		if passage, err = r.Pass(ctx, t, s); err != nil {
			return RemoteResult{}, err
		}
	}
	if s.mark != nil {
		if err := s.mark(ctx, true); err != nil {
			return RemoteResult{}, err
		}
	}
	result, err := call.Send(ctx, args)
	d.Duration = r.now().Sub(d.At)
	d.Remote = call.About()
	switch {
	case errors.Is(err, spi.ErrGone):
	case NeverSent(err):
		if s.mark != nil {
			if noted := s.mark(ctx, false); noted != nil {
				return result, noted
			}
		}
		if undone := passage.Undo(ctx); undone != nil {
			return result, undone
		}
	case OutcomeUnknown(err):
		if noted := passage.Unknown(ctx); noted != nil {
			return result, noted
		}
	}
	return result, err
}

func checked(t tool.Tool, arguments string) (json.RawMessage, error) {
	args, err := tool.CheckArguments(t, arguments)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(args)
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "arguments cannot be written as JSON")
	}
	return text, nil
}

// remoteText is a call as a model sees it.
func (r *Runner) remoteText(ctx context.Context, t tool.Tool, arguments string, s Scope) (string, error) {
	result, err := r.remote(ctx, t, arguments, s)
	if err != nil {
		return "", err
	}
	if result.Failed {
		return "", fault.New(fault.ToolFailed, "%s", result.Text)
	}
	return result.Text, nil
}

// maxRaised bounds the text of a failed tool that becomes an error of SQL.
const maxRaised = 2000

// RunJSON is Run for SQL: the result is JSON.
func (r *Runner) RunJSON(ctx context.Context, t tool.Tool, arguments string, s Scope) (string, error) {
	switch {
	case t.Type == tool.MCP:
		t, _, err := r.Admit(ctx, t, s)
		if err != nil {
			return "", err
		}
		result, err := r.remote(ctx, t, arguments, s)
		if err == nil && result.Failed {
			err = fault.New(fault.ToolFailed, "tool %s failed: %s", fault.Name(t.Name), fault.Cut(result.Text, maxRaised))
		}
		return string(result.JSON), err
	case t.Name == "generate_text": // every other tool's result is JSON already
		answer, err := r.Run(ctx, t, arguments, s)
		if err != nil {
			return "", err
		}
		quoted, err := json.Marshal(answer)
		if err != nil {
			return "", fault.Wrap(err, fault.Internal, "the answer cannot be written as JSON")
		}
		return string(quoted), nil
	}
	return r.Run(ctx, t, arguments, s)
}
