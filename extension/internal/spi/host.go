package spi

import (
	"context"
	"fmt"
	"time"

	"aidb/extension/internal/fault"
	"aidb/extension/internal/seam"
)

// Refusal is an error of the server, and why the sandbox refused a tool call in the words of a decision record (role_not_found,
// not_role_member, engine_privilege_denied, escalation_blocked, pre_execution_rejected); "" when the error is none.
type Refusal struct {
	Fault  *fault.Error
	Reason string
	Schema string
	Table  string
}

func (e *Refusal) Error() string { return e.Fault.Error() }

// Unwrap returns the error itself.
func (e *Refusal) Unwrap() error { return e.Fault }

func serverError(r *seam.Reader) error {
	e := &fault.Error{SQLState: r.Text(), Message: r.Text(), Detail: r.Text(), Hint: r.Text()}
	reason, schema, table := r.Text(), r.Text(), r.Text()
	if r.Err() != nil {
		return fault.Wrap(r.Err(), fault.Internal, "the server's answer could not be read")
	}
	e.Kind = fault.KindOfState(e.SQLState)
	return &Refusal{Fault: e, Reason: reason, Schema: schema, Table: table}
}

// Batch implements Querier.
func (r *run) Batch(_ context.Context, statements ...Statement) ([]Rows, error) {
	reply, err := r.ask(seam.ReqQuery, batch(statements))
	if err != nil {
		return nil, err
	}
	results := make([]Rows, len(statements))
	for i := range results {
		results[i] = readRows(reply)
	}
	if reply.Err() != nil {
		return nil, fault.Wrap(reply.Err(), fault.Internal, "the server's answer could not be read")
	}
	return results, nil
}

// Write implements Writer: a QUERY without a sequence number has no reply.
func (r *run) Write(_ context.Context, statements ...Statement) error {
	return r.tell(seam.ReqQuery, 0, batch(statements))
}

func batch(statements []Statement) *seam.Writer {
	var w seam.Writer
	w.Int(int64(len(statements)))
	for _, s := range statements {
		w.Text(s.SQL)
		w.Int(int64(s.MaxRows))
		w.Int(int64(len(s.Args)))
		for _, a := range s.Args {
			putArg(&w, a)
		}
	}
	return &w
}

// putArg writes a parameter as text: what a statement casts from.
func putArg(w *seam.Writer, a any) {
	switch v := a.(type) {
	case nil:
		w.Null()
	case string:
		w.Text(v)
	case *string:
		w.Optional(v)
	case []byte:
		if v == nil {
			w.Null()
			return
		}
		w.Bytes(v)
	case bool:
		w.Bool(v)
	case int:
		w.Int(int64(v))
	case int64:
		w.Int(v)
	default:
		w.Text(fmt.Sprint(v))
	}
}

func readRows(r *seam.Reader) Rows {
	var rows Rows
	columns := int(r.Int())
	for i := 0; i < columns && r.Err() == nil; i++ {
		rows.Columns = append(rows.Columns, r.Text())
	}
	n := int(r.Int())
	for i := 0; i < n && r.Err() == nil; i++ {
		row := make([]*string, columns)
		for j := range row {
			row[j] = r.Optional()
		}
		rows.Values = append(rows.Values, row)
	}
	return rows
}

// Tool implements Host.
func (r *run) Tool(_ context.Context, t ToolRequest) (ToolResult, error) {
	var w seam.Writer
	w.OrNull(t.Role)
	w.OrNull(t.RoleID)
	w.OrNull(t.Statement)
	w.OrNull(t.Function)
	w.Bool(t.ReadOnly)
	w.Bool(t.Trusted)
	w.Bool(t.Elevated)
	w.Int(int64(t.MaxRows))
	w.Int(t.MaxBytes)
	w.Int(t.Timeout.Milliseconds())
	w.OrNull(t.ConversationID)
	w.OrNull(t.Agent)
	w.Bool(t.Fingerprint)
	w.Bool(t.CheckOnly)
	w.Bool(t.OwnStatement)
	w.Int(int64(len(t.Params)))
	for _, p := range t.Params {
		w.Text(p.Type)
		w.Optional(p.Value)
		w.OrNull(p.Name)
	}
	w.Bool(t.Probe)
	w.OrNull(t.Tool)
	w.OrNull(t.ToolParams)
	w.Int(int64(len(t.Guards)))
	for _, g := range t.Guards {
		w.OrNull(g.Session)
		w.Text(g.Policy)
		w.OrNull(g.State)
	}
	if t.Expected == nil {
		w.Null()
	} else {
		w.Text(t.Expected.Lookup)
		w.Int(int64(len(t.Expected.Args)))
		for _, a := range t.Expected.Args {
			putArg(&w, a)
		}
		w.Int(int64(len(t.Expected.Row)))
		for _, v := range t.Expected.Row {
			w.Optional(v)
		}
	}
	reply, err := r.ask(seam.ReqTool, &w)
	if err != nil {
		return ToolResult{}, err
	}
	if !reply.Bool() {
		return ToolResult{}, ErrOtherwise
	}
	result := ToolResult{Tag: reply.Text(), ReturnsRows: reply.Bool(), Truncated: reply.Bool(), Affected: reply.Int()}
	n := int(reply.Int())
	result.Print = reply.Int()
	body, _ := reply.Raw()
	rows := seam.NewReader(body)
	for i := 0; i < n && rows.Err() == nil; i++ {
		result.Rows = append(result.Rows, rows.Text())
	}
	for range t.Guards {
		result.Guarded = append(result.Guarded, Guarded{From: reply.Text(), To: reply.Text(), Event: reply.Text(), WouldDeny: reply.Text()})
	}
	if reply.Err() != nil || rows.Err() != nil {
		return ToolResult{}, fault.New(fault.Internal, "the server's answer could not be read")
	}
	return result, nil
}

// LockConversation implements Host.
func (r *run) LockConversation(_ context.Context, id string) error {
	var w seam.Writer
	w.Text(id)
	_, err := r.ask(seam.ReqLock, &w)
	return err
}

// Scope implements Host.
func (r *run) Scope(_ context.Context, what string) error {
	var w seam.Writer
	w.Text(what)
	_, err := r.ask(seam.ReqScope, &w)
	return err
}

// Secret implements Host.
func (r *run) Secret(_ context.Context, kind, name string) (string, error) {
	var w seam.Writer
	w.Text(kind)
	w.Text(name)
	reply, err := r.ask(seam.ReqSecret, &w)
	if err != nil {
		return "", err
	}
	return reply.Text(), reply.Err()
}

// Notice implements Host.
func (r *run) Notice(level, text, hint string) {
	var w seam.Writer
	w.Text(level)
	w.Text(text)
	w.OrNull(hint)
	_ = r.tell(seam.ReqNotice, 0, &w) // nobody listens to a run that is gone
}

// Admit implements Turns.
func (r *run) Admit(_ context.Context, t Turn) (time.Duration, string, error) {
	var w seam.Writer
	for _, text := range []string{t.Key, t.Kind, t.Name} {
		w.Text(text)
	}
	for _, n := range []int64{int64(t.Concurrent), int64(t.Requests), t.Limit, t.Tokens} {
		w.Int(n)
	}
	reply, err := r.ask(seam.ReqAdmit, &w)
	if err != nil {
		return 0, "", err
	}
	wait := time.Duration(reply.Int()) * time.Millisecond
	return wait, reply.Text(), reply.Err()
}

// Leave implements Turns.
func (r *run) Leave(key string, thought, used int64) {
	var w seam.Writer
	w.Text(key)
	w.Int(thought)
	w.Int(used)
	_ = r.tell(seam.ReqLeave, 0, &w) // a run that is gone has left already
}

// Pause implements Turns.
func (r *run) Pause(key string, d time.Duration) {
	var w seam.Writer
	w.Text(key)
	w.Int(max(1, d.Milliseconds()))
	_ = r.tell(seam.ReqPause, 0, &w)
}

// Spend implements Spender.
func (r *run) Spend(_ context.Context, caller, principal string, day, calls, tokens, cost int64) (all, behind Spending, err error) {
	var w seam.Writer
	w.Text(caller)
	w.Text(principal)
	for _, n := range []int64{day, calls, tokens, cost} {
		w.Int(n)
	}
	reply, err := r.ask(seam.ReqSpend, &w)
	if err != nil {
		return all, behind, err
	}
	for _, s := range []*Spending{&all, &behind} {
		s.Calls, s.Tokens, s.Cost, s.Since = reply.Int(), reply.Int(), reply.Int(), time.UnixMicro(reply.Int())
	}
	return all, behind, reply.Err()
}

// Auditor is a host that keeps rows whatever becomes of the transaction: a COPY command and its rows. It does not wait; what
// cannot be kept ends the call. Settled waits until all that was given so far is kept.
type Auditor interface {
	Audit(command string, rows []byte) error
	Settled(ctx context.Context) error
}

// Audit implements Auditor.
func (r *run) Audit(command string, rows []byte) error {
	var w seam.Writer
	w.Text(command)
	w.Bytes(rows)
	return r.tell(seam.ReqAudit, 0, &w)
}

// Settled implements Auditor.
func (r *run) Settled(_ context.Context) error {
	var w seam.Writer
	w.Null()
	w.Null()
	_, err := r.ask(seam.ReqKeep, &w)
	return err
}

// Keeper is a host that commits rows in a transaction of its own before it answers: a COPY command and its rows. False:
// there is nobody who could.
type Keeper interface {
	Keep(ctx context.Context, command string, rows []byte) (bool, error)
}

// Keep implements Keeper.
func (r *run) Keep(_ context.Context, command string, rows []byte) (bool, error) {
	var w seam.Writer
	w.Text(command)
	w.Bytes(rows)
	reply, err := r.ask(seam.ReqKeep, &w)
	if err != nil {
		return false, err
	}
	kept := reply.Bool()
	return kept, reply.Err()
}
