package spi

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"aidb/extension/internal/fault"
	"aidb/extension/internal/seam"
)

// Sender queues a message for the main thread. It does not block.
type Sender func(kind uint32, run uint64, seq uint32, body []byte) error

// Start is what the main thread says when it starts a run.
type Start struct {
	Function    string
	Caller      string // current_user
	SessionUser string
	Principal   string // aidb.principal, else Caller
	Superuser   bool
	InRecovery  bool
	ReadOnly    bool  // the transaction is read-only
	Prefetched  *Rows // of the statement that goes with the function, nil if none does
	Args        []*string
}

// Handler runs one function and returns its rows.
type Handler func(ctx context.Context, host Host, start Start) (columns int, rows [][]*string, err error)

// Runs keeps the runs of this process (there is one at a time, and the remains of those that were cancelled) and
// hands each message to the one that it belongs to. It implements the rule of the seam that a run which has ended
// neither sends nor receives.
type Runs struct {
	send    Sender
	spawn   func(name string, f func()) // starts a goroutine; a panic in f comes back through failed
	handler Handler
	config  func(map[string]string)

	mu   sync.Mutex
	runs map[uint64]*run
}

// NewRuns returns an empty set of runs.
func NewRuns(send Sender, spawn func(string, func()), handler Handler, config func(map[string]string)) *Runs {
	return &Runs{send: send, spawn: spawn, handler: handler, config: config, runs: map[uint64]*run{}}
}

// Deliver handles a message of the main thread. It does not block.
func (rs *Runs) Deliver(m seam.Message) {
	switch m.Kind {
	case seam.CmdConfig:
		rs.configure(m)
	case seam.CmdStart:
		rs.start(m)
	case seam.CmdCancel:
		if r := rs.remove(m.Run); r != nil {
			r.cancel(ErrGone)
		}
	default:
		rs.mu.Lock()
		r := rs.runs[m.Run]
		rs.mu.Unlock()
		if r != nil {
			r.reply(m)
		}
	}
}

func (rs *Runs) configure(m seam.Message) {
	r := seam.NewReader(m.Body)
	values := map[string]string{}
	for r.Left() >= 2 && r.Err() == nil {
		name := r.Text()
		values[name] = r.Text()
	}
	rs.config(values)
}

func (rs *Runs) start(m seam.Message) {
	r := seam.NewReader(m.Body)
	s := Start{
		Function: r.Text(), Caller: r.Text(), SessionUser: r.Text(), Principal: r.Text(),
		Superuser: r.Bool(), InRecovery: r.Bool(), ReadOnly: r.Bool(),
	}
	if body, ok := r.Raw(); ok {
		rows := readRows(seam.NewReader(body))
		s.Prefetched = &rows
	}
	for r.Left() > 0 && r.Err() == nil {
		s.Args = append(s.Args, r.Optional())
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	one := &run{id: m.Run, send: rs.send, ctx: ctx, cancel: cancel, waiting: map[uint32]chan seam.Message{}}
	rs.mu.Lock()
	rs.runs[m.Run] = one
	rs.mu.Unlock()
	rs.spawn("run "+s.Function, func() { rs.execute(one, s) })
}

// execute runs the handler and tells the main thread how it ended; also when it panics.
func (rs *Runs) execute(r *run, s Start) {
	defer rs.remove(r.id)
	defer r.cancel(ErrGone)
	columns, rows, err := rs.guarded(r, s)
	if context.Cause(r.ctx) != nil {
		return
	}
	if err != nil {
		r.fail(err)
		return
	}
	r.result(columns, rows)
}

func (rs *Runs) guarded(r *run, s Start) (columns int, rows [][]*string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &fault.Error{Kind: fault.Internal, SQLState: "38000",
				Message: fmt.Sprintf("the aidb runtime failed: %v", p),
				Hint:    "This is a fault of the extension, please report it. The session can be used on."}
		}
	}()
	return rs.handler(r.ctx, r, s)
}

func (rs *Runs) remove(id uint64) *run {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r := rs.runs[id]
	delete(rs.runs, id)
	return r
}

// run is one run; it implements Host.
type run struct {
	id     uint64
	send   Sender
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	seq     uint32
	waiting map[uint32]chan seam.Message
}

func (r *run) reply(m seam.Message) {
	r.mu.Lock()
	ch := r.waiting[m.Seq]
	delete(r.waiting, m.Seq)
	r.mu.Unlock()
	if ch != nil {
		ch <- m // buffered, one reply each
	}
}

// ask sends a request and waits for its reply. It waits on the run's life, not on a caller's deadline: the main
// thread answers every request of a run that lives, and work it has begun has a limit of its own.
func (r *run) ask(kind uint32, w *seam.Writer) (*seam.Reader, error) {
	ch := make(chan seam.Message, 1)
	r.mu.Lock()
	r.seq++
	seq := r.seq
	r.waiting[seq] = ch
	r.mu.Unlock()
	if err := r.tell(kind, seq, w); err != nil {
		return nil, err
	}
	select {
	case m := <-ch:
		reader := seam.NewReader(m.Body)
		if m.Kind == seam.RepError {
			return nil, serverError(reader)
		}
		return reader, nil
	case <-r.ctx.Done():
		return nil, ErrGone
	}
}

func (r *run) tell(kind, seq uint32, w *seam.Writer) error {
	if r.ctx.Err() != nil {
		return ErrGone
	}
	if err := r.send(kind, r.id, seq, w.Body()); err != nil {
		return fault.Wrap(err, fault.LimitExceeded, "a message for the server could not be made")
	}
	return nil
}

func (r *run) result(columns int, rows [][]*string) {
	var w seam.Writer
	w.Int(int64(columns))
	w.Int(int64(len(rows)))
	for _, row := range rows {
		for _, v := range row {
			w.Optional(v)
		}
	}
	if err := r.tell(seam.ReqResult, 0, &w); err != nil && r.ctx.Err() == nil {
		r.fail(err)
	}
}

func (r *run) fail(err error) {
	_ = r.send(seam.ReqFail, r.id, 0, FailBody(err)) // nothing is left to try; a run that is gone needs no answer
}

// FailBody is the body of a FAIL message.
func FailBody(err error) []byte {
	var e *fault.Error
	if !errors.As(err, &e) {
		e = &fault.Error{Message: err.Error()}
	}
	var w seam.Writer
	w.Text(fault.SQLState(err))
	w.Text(e.Error())
	w.OrNull(e.Detail)
	w.OrNull(e.Hint)
	return w.Body()
}
