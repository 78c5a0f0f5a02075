package pgstore

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"aidb/extension/internal/fault"
	"aidb/extension/internal/spi"
)

const (
	markSentSQL  = `COPY aidb_internal.sent_steps (action_id, step, sent, at, id) FROM STDIN`
	sentStepsSQL = `SELECT to_jsonb(aidb_internal.sent_steps($1::uuid))`
	dropSentSQL  = `DELETE FROM aidb_internal.sent_steps WHERE action_id = $1::uuid`
)

// MarkSent implements pgtool.ActionStore. The mark is looked for after it was written: what could not be written is in the
// server's log only.
func (s *Store) MarkSent(ctx context.Context, action uuid.UUID, step int, left bool) error {
	keeper, ok := s.host.(spi.Keeper)
	if !ok {
		return nil
	}
	id, err := uuid.NewRandom()
	if err != nil {
		return fault.Wrap(err, fault.Internal, "an id cannot be made")
	}
	var rows spi.CopyText
	rows.Plain(action.String())
	rows.Plain(strconv.Itoa(step))
	rows.Plain(strconv.FormatBool(left))
	rows.Plain(timestamp(time.Now()))
	rows.Plain(id.String())
	rows.EndRow()
	kept, err := keeper.Keep(ctx, markSentSQL, rows.Bytes())
	if err != nil || !kept || !left {
		return err
	}
	sent, err := s.SentSteps(ctx, action)
	if err == nil && !slices.Contains(sent, step) {
		err = fault.New(fault.WrongState, "the call could not be marked as sent, so it was not sent: see the server's log")
	}
	return err
}

// SentSteps implements pgtool.ActionStore.
func (s *Store) SentSteps(ctx context.Context, action uuid.UUID) (steps []int, err error) {
	rows, err := s.host.Batch(ctx, spi.Statement{SQL: sentStepsSQL, Args: []any{action.String()}})
	if err != nil {
		return nil, err
	}
	if r, ok := firstRow(rows); ok {
		r.json(&steps)
		return steps, r.err
	}
	return nil, nil
}
