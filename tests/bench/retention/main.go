// Command retention measures how long a million old rows of each log take to go.
//
//	go run ./tests/bench/retention [-rows 1000000]      (after make install; make bench runs it, too)
//
// Each log gets a partition of a month of which all rows are too old, beside one of today that goes on, and vacuum has been there,
// as it would have been in a month. What is measured is one call of aidb.maintain_retention, by hand, from a session that has done
// nothing of the kind before.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"aidb/tests/cluster"
)

func main() {
	rows := flag.Int("rows", 1_000_000, "old rows of each log")
	flag.Parse()
	if err := run(context.Background(), *rows); err != nil {
		fmt.Fprintln(os.Stderr, "retention:", err)
		os.Exit(1)
	}
}

// The hashes do not fit the contents, but they do follow each other.
const fill = `
INSERT INTO aidb_internal.decision_log (decision_id, chain_id, chain_n, at, conversation_id, agent, tool, interaction_point, principal, caller,
    session_user_name, role, status, query_text, query_hash, rows, duration_us, prev_hash, hash)
SELECT gen_random_uuid(), md5('run' || g / 5)::uuid, g %% 5 + 1, %[1]s + (g - %[4]d) * %[2]s, md5('conversation' || g / 20)::uuid, 'agent', 'run_sql_query', 'sql_exec',
    'user', 'user', 'user', 'user', 'allowed', 'SELECT ' || g || ' FROM orders', md5(g::text) || md5((-g)::text), 1, 900, sha256((g - 1)::text::bytea), sha256(g::text::bytea)
FROM generate_series(%[4]d, %[4]d + %[3]d) g;
INSERT INTO aidb_internal.logged_steps (conversation_id, agent_id, task_id, created_at, caller, steps)
SELECT md5('conversation' || g / 20)::uuid, md5('agent')::uuid, md5('task' || g / 10)::uuid, %[1]s + (g - %[4]d) * %[2]s, 'user', jsonb_build_array(
    jsonb_build_object('id', gen_random_uuid(), 'type', 'tool_response', 'at', 0, 'took', 0, 'response', jsonb_build_object('contents', repeat('x', 200))))
FROM generate_series(%[4]d, %[4]d + %[3]d) g;
INSERT INTO aidb_otel.traces (recorded_at, payload_json, trace_id, span_id, gen_ai_conversation_id)
SELECT %[1]s + (g - %[4]d) * %[2]s, jsonb_build_object('name', repeat('x', 200)), md5('run' || g / 5), left(md5(g::text), 16), md5('conversation' || g / 20)
FROM generate_series(%[4]d, %[4]d + %[3]d) g;`

const month = "date_trunc('day', now()) - interval '60 days'"

func run(ctx context.Context, rows int) error {
	c, err := cluster.New(ctx, cluster.Options{})
	if err != nil {
		return err
	}
	defer c.Remove()
	step := fmt.Sprintf("interval '30 days' / %d", rows+1)
	if err := c.Exec(ctx, "postgres", "CREATE EXTENSION aidb", "LOAD 'aidb'",
		fmt.Sprintf("SELECT aidb_internal.add_log_partition(l.kind, %s, %s + interval '30 days') FROM aidb_internal.logs() l", month, month),
		"SELECT * FROM aidb.maintain_retention()",
		fmt.Sprintf(fill, month, step, rows-1, 0),
		fmt.Sprintf(fill, "now()", "interval '1 millisecond'", rows/50, rows),
		"VACUUM ANALYZE", "CHECKPOINT"); err != nil {
		return err
	}
	fmt.Printf("%d rows of each log go with their partition:\n", rows)
	for _, kind := range []string{"action_log", "decision_log", "otel"} {
		conn, err := c.Connect(ctx, "postgres", "postgres")
		if err != nil {
			return err
		}
		if _, err = conn.Exec(ctx, "LOAD 'aidb'; SET aidb.retention_"+kind+" = '28d'"); err != nil {
			return err
		}
		var dropped, left int
		start := time.Now()
		err = conn.QueryRow(ctx, "SELECT count(*) FROM aidb.maintain_retention() m WHERE m.outcome = 'dropped' AND m.kind = $1", kind).Scan(&dropped)
		took := time.Since(start)
		if err == nil {
			err = conn.QueryRow(ctx, "SELECT (SELECT count(*) FROM aidb_internal.logged_steps WHERE $1 = 'action_log') + (SELECT count(*) FROM aidb_internal.decision_log WHERE $1 = 'decision_log')"+
				" + (SELECT count(*) FROM aidb_otel.traces WHERE $1 = 'otel')", kind).Scan(&left)
		}
		_ = conn.Close(ctx)
		if err != nil {
			return err
		}
		if dropped != 1 || left != rows/50+1 {
			return fmt.Errorf("%s: %d partitions were dropped and %d rows are left", kind, dropped, left)
		}
		fmt.Printf("  %-14s %8.1f ms\n", kind, float64(took.Microseconds())/1000)
	}
	return nil
}
