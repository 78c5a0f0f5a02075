package pgstore

import (
	"context"

	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/spi"
)

const recordingSQL = `
SELECT l.action_type, l.request_payload, l.response_payload, l.error, l.id, l.caller = $2 AND l.principal = $3 AND l.created_at >= aidb_internal.history_since($2)
FROM aidb_internal.steps($1::uuid) WITH ORDINALITY l
ORDER BY l.ordinality`

// Recording returns the whole log of a conversation for replay, and whether it is the caller's own.
func (s *Store) Recording(ctx context.Context, id, caller, principal string) (records []conversation.Record, own bool, err error) {
	rows, err := s.host.Batch(ctx, spi.Statement{SQL: recordingSQL, Args: []any{id, caller, principal}})
	if err != nil {
		return nil, false, err
	}
	if len(rows) == 0 || len(rows[0].Values) == 0 {
		return nil, false, fault.New(fault.NotFound, "conversation %s, which the model replays, not found", fault.Name(id))
	}
	records, own = make([]conversation.Record, 0, len(rows[0].Values)), true
	for _, values := range rows[0].Values {
		r := row{values: values}
		rec := conversation.Record{Type: conversation.ActionType(r.text()), Request: r.raw(), Response: r.raw(), Error: r.text(), ID: r.id()}
		own = r.bool() && own
		if r.err != nil {
			return nil, false, r.err
		}
		records = append(records, rec)
	}
	return records, own, nil
}
