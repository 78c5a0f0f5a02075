package pgstore

import (
	"context"
	"strconv"
	"time"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/spi"
)

// Since $3 what is behind all principals is counted elsewhere, since $4 what is behind this one.
const quotasSQL = `
SELECT q.caller, q.principal, q.tokens, q.cost, q.calls, u.tokens, u.cost, u.calls
FROM aidb_internal.quotas q
CROSS JOIN LATERAL (
    SELECT coalesce(sum(u.tokens), 0)::bigint AS tokens, coalesce(sum(u.cost), 0) AS cost, coalesce(sum(u.calls), 0)::bigint AS calls
    FROM aidb_internal.quota_usage u
    WHERE u.caller = $1 AND (q.principal = '' OR u.principal = $2) 
      AND u.at < (CASE q.principal WHEN '' THEN $3 ELSE $4 END)::timestamptz
      AND u.at >= date_trunc('day', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'
) u
WHERE q.caller IN ($1, '*') AND q.principal IN ('', '*', $2)
ORDER BY q.caller, q.principal`

// Quotas returns the quotas that hold for a caller, with what was used of them today before those moments: behind all
// principals, and behind this one.
func (s *Store) Quotas(ctx context.Context, caller, principal string, all, behind time.Time) ([]agent.Quota, error) {
	rows, err := s.host.Batch(ctx, spi.Statement{SQL: quotasSQL, Args: []any{
		caller, principal, all.UTC().Format(time.RFC3339Nano), behind.UTC().Format(time.RFC3339Nano),
	}})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	quotas := make([]agent.Quota, 0, len(rows[0].Values))
	for _, values := range rows[0].Values {
		r := row{values: values}
		_, behind := r.text(), r.text()
		q := agent.Quota{Of: "role " + fault.Name(caller), Each: behind != "", Tokens: r.count(), Cost: r.money(), Calls: r.count()}
		if q.Each {
			q.Of = "principal " + fault.Name(principal) + " of " + q.Of
		}
		tokens, cost, calls := r.count(), r.amount(), r.count()
		if r.err != nil {
			return nil, r.err
		}
		q.Used = agent.Usage{Calls: *calls, Used: agent.Used{Tokens: *tokens, Cost: cost}}
		quotas = append(quotas, q)
	}
	return quotas, nil
}

const usageSQL = `
INSERT INTO aidb_internal.quota_usage (caller, principal, calls, tokens, cost)
VALUES ($1, $2, $3::bigint, $4::bigint, $5::numeric)`

// WriteUsage notes what a call used.
func (s *Store) WriteUsage(ctx context.Context, caller, principal string, u agent.Usage) error {
	return s.host.Write(ctx, spi.Statement{SQL: usageSQL, Args: []any{
		caller, principal, u.Calls, u.Tokens, conversation.Money(u.Cost),
	}})
}

func (r *row) count() *int64 {
	v := r.optional()
	if v == nil {
		return nil
	}
	n, err := strconv.ParseInt(*v, 10, 64)
	if err != nil {
		r.fail("a number", err)
	}
	return &n
}

// money is an amount that may be NULL.
func (r *row) money() *int64 {
	if r.err == nil && r.next < len(r.values) && r.values[r.next] == nil {
		r.next++
		return nil
	}
	n := r.amount()
	return &n
}
