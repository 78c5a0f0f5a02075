package pgtool

// Steps of actions that leave the database: they are not sent a second time because a transaction was rolled back.

import (
	"context"
	"errors"
	"slices"

	"aidb/extension/internal/approval"
	"aidb/extension/internal/spi"
)

// sent are the steps that left the database in an earlier confirmation, of which the transaction knows nothing, and that must
// not leave again.
func (p *Approvals) sent(ctx context.Context, a *approval.Action) ([]int, error) {
	if !slices.ContainsFunc(a.Proofs, func(p approval.Proof) bool { return p.Kind == approval.PreviewArguments }) {
		return nil, nil
	}
	steps, err := p.Store.SentSteps(ctx, a.ID)
	if err != nil {
		return nil, err
	}
	harmful := steps[:0]
	for _, n := range steps {
		if n < 1 || n > len(a.Steps) {
			continue
		}
		t, err := p.Runner.Catalog.Fresh(ctx, a.Steps[n-1].Tool)
		if err != nil {
			return nil, err
		}
		if t == nil || !repeatable(*t) {
			harmful = append(harmful, n)
		}
	}
	return harmful, nil
}

// mark is what a step's call tells before it leaves, and when it turned out not to have left.
func (p *Approvals) mark(a *approval.Action, step int) func(context.Context, bool) error {
	return func(ctx context.Context, left bool) error {
		err := p.Store.MarkSent(ctx, a.ID, step, left)
		if err != nil && left && !errors.Is(err, spi.ErrGone) && ctx.Err() == nil {
			return &unmarked{err}
		}
		return err
	}
}

// unmarked is why a call was not sent: it could not be marked. Nothing is decided then.
type unmarked struct{ error }

func (e *unmarked) Unwrap() error { return e.error }
