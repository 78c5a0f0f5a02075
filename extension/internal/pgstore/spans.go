package pgstore

import (
	"context"

	"aidb/extension/internal/spi"
)

// Span is a span of telemetry as it is stored. Package telemetry makes it; adapters do not know each other, so the
// wiring hands it over field by field.
type Span struct {
	Payload, TraceID, SpanID, ParentSpanID, SessionID, ConversationID, MCPSession, DecisionStatus string
}

const spanSQL = `
INSERT INTO aidb_otel.traces (payload_json, trace_id, span_id, parent_span_id, pg_session_id, gen_ai_conversation_id, mcp_session_id, decision_status)
VALUES ($1::jsonb, $2, $3, $4, $5, $6, $7, $8)`

// WriteSpans stores spans, all of them or none. It waits, so that a failure can be told apart and ignored.
func (s *Store) WriteSpans(ctx context.Context, spans []Span) error {
	statements := make([]spi.Statement, 0, len(spans))
	for _, p := range spans {
		statements = append(statements, spi.Statement{SQL: spanSQL, Args: []any{
			p.Payload, p.TraceID, p.SpanID, optionalText(p.ParentSpanID), optionalText(p.SessionID),
			optionalText(p.ConversationID), optionalText(p.MCPSession), optionalText(p.DecisionStatus),
		}})
	}
	_, err := s.host.Batch(ctx, statements...)
	return err
}

// Version returns the version of the installed extension.
func (s *Store) Version(ctx context.Context) (string, error) {
	rows, err := s.host.Batch(ctx, spi.Statement{SQL: `SELECT extversion FROM pg_extension WHERE extname = 'aidb'`})
	if err != nil {
		return "", err
	}
	r, ok := firstRow(rows)
	if !ok {
		return "", nil
	}
	return r.text(), r.err
}
