package pgstore

import (
	"context"
	"encoding/json"
	"slices"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/spi"
)

// The instructions become a tool's description, of which the model is shown the beginning.
const delegatesSQL = `
SELECT jsonb_agg(jsonb_build_object('Name', a.name, 'Instructions', left(a.instructions, 2000)))
FROM aidb_internal.agents a
WHERE a.name = ANY ($1::text[]) AND a.enabled`

// Delegates implements agent.Store.
func (s *Store) Delegates(ctx context.Context, names []string) ([]agent.Delegate, error) {
	rows, err := s.host.Batch(ctx, spi.Statement{SQL: delegatesSQL, Args: []any{textArray(names)}})
	if err != nil {
		return nil, err
	}
	var found []agent.Delegate
	if r, ok := firstRow(rows); ok {
		if raw := r.raw(); raw != nil {
			if err := json.Unmarshal(raw, &found); err != nil {
				return nil, fault.Wrap(err, fault.Internal, "delegates cannot be read")
			}
		}
	}
	slices.SortFunc(found, func(a, b agent.Delegate) int {
		return slices.Index(names, a.Name) - slices.Index(names, b.Name)
	})
	return found, nil
}

// No row: the purpose's role does not exist, and whoever runs as it is refused everything.
const narrowerSQL = `
SELECT coalesce((SELECT pg_has_role(above.oid, own.oid, 'MEMBER') FROM pg_roles above WHERE above.rolname = $2), false)
FROM pg_roles own WHERE own.rolname = $1`

// Narrower implements agent.Store.
func (s *Store) Narrower(ctx context.Context, purposeRole, role string) (bool, error) {
	rows, err := s.host.Batch(ctx, spi.Statement{SQL: narrowerSQL, Args: []any{purposeRole, role}})
	if err != nil {
		return false, err
	}
	r, ok := firstRow(rows)
	if !ok {
		return true, nil
	}
	narrower := r.bool()
	return narrower, r.err
}
