package main

import (
	"context"
	"fmt"

	"aidb/tests/cluster"
)

// turns is how long the conversation is of which the stored bytes are counted.
const turns = 50

// stored counts what a turn of two rounds with one query leaves in aidb's tables, as it is stored, without indexes. The
// first and the second half are told apart: a turn late in a conversation must not cost more than an early one.
func stored(ctx context.Context, c *cluster.Cluster) error {
	conn, err := c.Connect(ctx, "first_call", "postgres")
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	var id *string
	for range turns {
		if err := conn.QueryRow(ctx, `SELECT conversation_id FROM aidb.agent_converse('first_call', 'How many orders are there?', $1)`, id).Scan(&id); err != nil {
			return err
		}
	}
	super, err := c.Connect(ctx, "postgres", "postgres")
	if err != nil {
		return err
	}
	defer func() { _ = super.Close(ctx) }()
	for _, t := range []struct{ name, table, at string }{
		{"log", "aidb_internal.logged_steps", "created_at"}, {"task", "aidb_internal.agent_task_queue", "created_at"},
		{"decisions", "aidb_internal.decision_log", "at"},
	} {
		var early, late int
		err := super.QueryRow(ctx, `WITH r AS (SELECT pg_column_size(x.*) AS size, ntile(2) OVER (ORDER BY x.`+t.at+`) AS half
			FROM `+t.table+` x WHERE x.conversation_id = $1::uuid)
			SELECT coalesce(sum(size) FILTER (WHERE half = 1), 0) * 2 / $2::int, coalesce(sum(size) FILTER (WHERE half = 2), 0) * 2 / $2::int FROM r`,
			id, turns).Scan(&early, &late)
		if err != nil {
			return err
		}
		fmt.Printf("bytes stored for a turn (%s): %d in the first half of a conversation of %d turns, %d in the second\n", t.name, early, turns, late)
	}
	return nil
}
