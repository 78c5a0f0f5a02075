// Package shop is the small database of the demo and of the tests that need one which the agent does not know.
package shop

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"
)

//go:embed shop.sql
var script string

// Question is one that the shop's data answers, with a join and an aggregate.
const Question = "Which product category has earned us the most, and who are our three best customers?"

// Load makes the schema and its data, and lets the given roles read it.
func Load(ctx context.Context, conn *pgx.Conn, readers ...string) error {
	if _, err := conn.Exec(ctx, script); err != nil {
		return fmt.Errorf("making the shop: %w", err)
	}
	for _, role := range readers {
		to := pgx.Identifier{role}.Sanitize()
		if _, err := conn.Exec(ctx, "GRANT USAGE ON SCHEMA shop TO "+to+"; GRANT SELECT ON ALL TABLES IN SCHEMA shop TO "+to); err != nil {
			return fmt.Errorf("granting the shop to %s: %w", role, err)
		}
	}
	return nil
}
