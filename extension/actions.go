package main

import (
	"context"
	"crypto/rand"
	"strconv"

	"github.com/google/uuid"

	"aidb/extension/internal/approval"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/pgtool"
	"aidb/extension/internal/spi"
)

// The functions by which a person decides about actions (sql/api/55_actions.sql).

// random is where tokens come from.
var random = rand.Reader

func (p *parts) approvals() *pgtool.Approvals {
	return &pgtool.Approvals{Store: p.store, Runner: p.runner, Person: approval.Person{
		Role: p.start.Caller, SessionUser: p.start.SessionUser, Principal: p.start.Principal,
	}}
}

// deciding readies a decision about an action; id is the function's first argument.
func (w *wiring) deciding(host spi.Host, s spi.Start) (p *parts, id uuid.UUID, err error) {
	if p, err = w.parts(host, s); err != nil {
		return nil, uuid.Nil, err
	}
	if s.InRecovery || s.ReadOnly {
		return nil, uuid.Nil, fault.New(fault.WrongState, "an action cannot be decided in a read-only transaction")
	}
	if a := arg(s, 0); a != nil {
		if id, err = uuid.Parse(*a); err != nil {
			return nil, uuid.Nil, fault.New(fault.InvalidText, "invalid action id %s: not a uuid", fault.Name(*a))
		}
	}
	return p, id, nil
}

// decided writes what was decided, or says it in the server's log where an error takes the rest back.
func (p *parts) decided(ctx context.Context, err error) error {
	if err != nil {
		p.log()
		return err
	}
	return p.record(ctx)
}

func outcomeRows(outcomes []approval.Outcome) [][]*string {
	rows := make([][]*string, 0, len(outcomes))
	for _, o := range outcomes {
		n := strconv.Itoa(o.Step)
		row := []*string{&n, &o.Tool, &o.Status, nil, nil}
		if len(o.Result) > 0 {
			result := string(o.Result)
			row[3] = &result
		}
		if o.Error != "" {
			row[4] = &o.Error
		}
		rows = append(rows, row)
	}
	return rows
}

func (w *wiring) confirmAction(ctx context.Context, host spi.Host, s spi.Start) (int, [][]*string, error) {
	p, id, err := w.deciding(host, s)
	if err != nil {
		return 0, nil, err
	}
	outcomes, err := p.approvals().Confirm(ctx, id, stringArg(s, 1))
	return 5, outcomeRows(outcomes), p.decided(ctx, err)
}

func (w *wiring) undoAction(ctx context.Context, host spi.Host, s spi.Start) (int, [][]*string, error) {
	p, id, err := w.deciding(host, s)
	if err != nil {
		return 0, nil, err
	}
	outcomes, err := p.approvals().Undo(ctx, id)
	return 5, outcomeRows(outcomes), p.decided(ctx, err)
}

func (w *wiring) rejectAction(ctx context.Context, host spi.Host, s spi.Start) (int, [][]*string, error) {
	p, id, err := w.deciding(host, s)
	if err != nil {
		return 0, nil, err
	}
	return 0, nil, p.decided(ctx, p.approvals().Reject(ctx, id))
}

func (w *wiring) expireActions(ctx context.Context, host spi.Host, s spi.Start) (int, [][]*string, error) {
	p, _, err := w.deciding(host, s)
	if err != nil {
		return 0, nil, err
	}
	n, err := p.approvals().Expire(ctx)
	count := strconv.Itoa(n)
	return 1, [][]*string{{&count}}, p.decided(ctx, err)
}
