// Command guard measures the guard of temporal policies: aidb.authorize_tool_call in a transaction of its own, for sessions
// with few and with many events.
//
//	go run ./tests/bench/guard [-n 2000]      (after make install)
//
// What a statement costs that does nothing is measured beside it and taken off: that is the client, the network and the
// transaction. fsync and synchronous_commit are off, because it is not the disk that is measured.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"aidb/tests/cluster"
)

const goal = 300 * time.Microsecond

// What is called: without a condition, and with one of each kind. The columns of the table.
var tools = []string{"plain", "argument", "hour", "ever", "sum", "person", "last"}

// The session that is measured has this many events, in equal parts of each tool, and all of them in the last hour.
var sizes = []int{100, 10_000, 1_000_000}

const prepare = `
CREATE EXTENSION aidb;
CREATE ROLE bench_governor IN ROLE aidb_governance;
CREATE ROLE bench_caller LOGIN IN ROLE aidb_users;
SET ROLE bench_governor;
SELECT aidb.create_policy('bench', ARRAY[
    aidb.transition('start', 'plain', NULL),
    aidb.transition('start', 'argument', NULL, '(params ->> ''amount'')::numeric < 100'),
    aidb.transition('start', 'hour', NULL, 'aidb.event_count(session_id, ''hour'', interval ''1 hour'') >= 0'),
    aidb.transition('start', 'ever', NULL, 'aidb.event_count(session_id, ''ever'') >= 0'),
    aidb.transition('start', 'sum', NULL, 'aidb.event_sum(session_id, ''sum'', ''amount'') >= 0'),
    aidb.transition('start', 'person', NULL, 'aidb.principal_event_count(principal, ''person'') >= 0'),
    aidb.transition('start', 'last', NULL, 'aidb.last_event(session_id, ''last'') IS NOT NULL')]);
RESET ROLE`

const fill = `
TRUNCATE aidb_internal.session_events, aidb_internal.policy_sessions;
INSERT INTO aidb_internal.policy_sessions (id, policy, principal, state, caller, opened_for)
SELECT CASE WHEN g = 0 THEN '11111111-1111-1111-1111-111111111111'::uuid ELSE gen_random_uuid() END, 'bench', 'p' || g, 'start', 'bench_caller', 'bench_caller'
FROM generate_series(0, 1000) g;
INSERT INTO aidb_internal.session_events (session_id, policy, tool_name, params, from_state, to_state, principal, rank, called_at)
SELECT '11111111-1111-1111-1111-111111111111', 'bench', ('{plain,argument,hour,ever,sum,person,last}'::text[])[1 + g %% 7], '{"amount": 1}', 'start', 'start', 'p0', 0, now() - interval '30 minutes' * (1 - g / %[1]d::float8)
FROM generate_series(1, %[1]d) g;
VACUUM ANALYZE aidb_internal.session_events, aidb_internal.policy_sessions;
CHECKPOINT`

func main() {
	n := flag.Int("n", 2000, "calls of each kind")
	flag.Parse()
	if err := run(context.Background(), *n); err != nil {
		fmt.Fprintln(os.Stderr, "guard:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, n int) error {
	c, err := cluster.New(ctx, cluster.Options{})
	if err != nil {
		return err
	}
	defer c.Remove()
	if err := c.Exec(ctx, "postgres", prepare); err != nil {
		return err
	}
	fmt.Printf("The guard, %d calls of each kind, each in a transaction of its own, beyond a statement that does nothing; goal: p50 under %d µs, and flat.\n\n", n, goal.Microseconds())
	fmt.Printf("%-10s %8s", "events", "p99")
	for _, tool := range tools {
		fmt.Printf(" %8s", tool)
	}
	fmt.Println("   (p50 in µs)")
	for _, size := range sizes {
		admin, err := c.Connect(ctx, "postgres", "postgres")
		if err != nil {
			return err
		}
		for _, sql := range statements(fmt.Sprintf(fill, size)) {
			if _, err := admin.Exec(ctx, sql); err != nil {
				return err
			}
		}
		_ = admin.Close(ctx)
		if err := measure(ctx, c, size, n); err != nil {
			return err
		}
	}
	return nil
}

func statements(sql string) []string {
	var list []string
	for start, i := 0, 0; i <= len(sql); i++ {
		if i == len(sql) || sql[i] == ';' {
			list = append(list, sql[start:i])
			start = i + 1
		}
	}
	return list
}

func measure(ctx context.Context, c *cluster.Cluster, size, n int) error {
	conn, err := c.Connect(ctx, "bench_caller", "postgres")
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, "SET synchronous_commit = off"); err != nil {
		return err
	}
	nothing, err := times(ctx, conn, n, "SELECT $1::text, $2::text", "x", "y")
	if err != nil {
		return err
	}
	var p50 []time.Duration
	var p99 time.Duration
	for _, tool := range tools {
		t, err := times(ctx, conn, n, "SELECT aidb.authorize_tool_call('11111111-1111-1111-1111-111111111111', $1, $2::text::jsonb)", tool, `{"amount": 12.5}`)
		if err != nil {
			return err
		}
		p50 = append(p50, t[n/2]-nothing[n/2])
		if tool == "plain" {
			p99 = t[n*99/100] - nothing[n/2]
		}
	}
	fmt.Printf("%-10d %8d", size, p99.Microseconds())
	for _, t := range p50 {
		fmt.Printf(" %8d", t.Microseconds())
	}
	fmt.Println()
	return nil
}

// times runs a statement, warm, and returns how long it took each time, in order.
func times(ctx context.Context, conn *pgx.Conn, n int, sql string, args ...any) ([]time.Duration, error) {
	list := make([]time.Duration, 0, n)
	for i := range n + 100 {
		began := time.Now()
		if _, err := conn.Exec(ctx, sql, args...); err != nil {
			return nil, err
		}
		if i >= 100 {
			list = append(list, time.Since(began))
		}
	}
	slices.Sort(list)
	return list, nil
}
