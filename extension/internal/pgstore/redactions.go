package pgstore

import (
	"context"
	"encoding/json"

	"aidb/extension/internal/spi"
)

// redactionsSQL is the registered redactions, NULL when there are none.
const redactionsSQL = `(SELECT jsonb_build_object('columns', coalesce(jsonb_agg(x.column_name ORDER BY x.name) FILTER (WHERE x.pattern IS NULL), '[]'),
        'patterns', coalesce(jsonb_agg(x.pattern ORDER BY x.name) FILTER (WHERE x.pattern IS NOT NULL), '[]'))
        FROM aidb_internal.redactions x HAVING count(*) > 0)`

func (s *Store) redactWith(rules json.RawMessage) error {
	if s.Redactions == nil {
		return nil
	}
	return s.Redactions(rules)
}

// LoadRedactions is for calls that begin with neither an agent nor a model.
func (s *Store) LoadRedactions(ctx context.Context) error {
	rows, err := s.host.Batch(ctx, spi.Statement{SQL: "SELECT " + redactionsSQL})
	if err != nil {
		return err
	}
	if r, ok := firstRow(rows); ok {
		return s.redactWith(r.raw())
	}
	return nil
}
