// Command audit measures what a decision costs with aidb.audit = 'durable', beside the default, on a scratch server of its own
// with durable commits.
//
//	go run ./tests/bench/audit [-quick] [-n 20] [-calls 200]      (after make install; make bench runs it, too)
//
// Three agents: one query and the answer; N queries, a round each; N queries in one reply. Each is called in a session with the
// default and in one with durable decisions, in turn. Printed are the medians, and what the setting adds to a call, to each of
// its requests to the model, which wait for what was decided before, and to each decision. The model answers at once, so that
// nothing of this hides behind it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"aidb/tests/bench/measure"
	"aidb/tests/bench/mock"
	"aidb/tests/cluster"
)

func main() {
	n := flag.Int("n", 20, "queries of the larger agent calls")
	measure.Calls("audit", 200, func(ctx context.Context, calls int) error { return run(ctx, *n, calls) })
}

func run(ctx context.Context, n, calls int) error {
	c, err := cluster.New(ctx, cluster.Options{Preload: true, Durable: true})
	if err != nil {
		return err
	}
	defer c.Remove()
	url, stop, err := mock.Start()
	if err != nil {
		return err
	}
	defer stop()
	if err := prepare(ctx, c, url, n); err != nil {
		return err
	}
	var took [2][3][]time.Duration // by setting, by agent
	var decisions [3]int
	var sessions [2]*pgx.Conn
	for i, role := range []string{"bench_default", "bench_durable"} {
		if sessions[i], err = c.Connect(ctx, role, "postgres"); err != nil {
			return err
		}
		defer func() { _ = sessions[i].Close(ctx) }()
	}
	const warm = 20
	for i := range warm + calls {
		for setting, conn := range sessions {
			for kind, agent := range []string{"one", "rounds", "reply"} {
				d, made, err := ask(ctx, conn, agent)
				if err != nil {
					return err
				}
				decisions[kind] = made
				if i >= warm {
					took[setting][kind] = append(took[setting][kind], d)
				}
			}
		}
	}
	fmt.Printf("Decisions on record, whatever becomes of the transaction: medians of %d agent calls, fsync on.\n\n", calls)
	fmt.Printf("%-32s %10s %10s %12s %12s %12s %14s %14s\n", "", "requests", "decisions", "default", "durable", "more", "a request", "a decision")
	for kind, k := range []struct {
		name     string
		requests int
	}{{"1 query", 2}, {fmt.Sprintf("%d queries, a round each", n), n + 1}, {fmt.Sprintf("%d queries in one reply", n), 2}} {
		a, b := measure.Median(took[0][kind]), measure.Median(took[1][kind])
		fmt.Printf("%-32s %10d %10d %12s %12s %12s %14s %14s\n", k.name, k.requests, decisions[kind], us(a), us(b), us(b-a),
			us((b-a)/time.Duration(k.requests)), us((b-a)/time.Duration(decisions[kind])))
	}
	return nil
}

func us(d time.Duration) string { return measure.Micros(d, 0) }

// prepare makes two callers and the agents: two on an HTTP server, one on a script that asks for all in one reply.
func prepare(ctx context.Context, c *cluster.Cluster, url string, n int) error {
	type call struct {
		Name      string            `json:"name"`
		Arguments map[string]string `json:"arguments"`
	}
	type reply struct {
		Response string `json:"response,omitempty"`
		Calls    []call `json:"tool_calls,omitempty"`
	}
	var queries []call
	for i := range n { // the same call again and again would end the run
		queries = append(queries, call{"run_sql_query", map[string]string{"query": fmt.Sprintf("SELECT 1 AS n%d", i)}})
	}
	script, err := json.Marshal(map[string]any{"scope": "call", "responses": []reply{{Calls: queries}, {Response: "done"}}})
	if err != nil {
		return err
	}
	return c.Exec(ctx, "postgres", `CREATE EXTENSION aidb`, `CREATE ROLE bench_default LOGIN IN ROLE aidb_users`,
		`CREATE ROLE bench_durable LOGIN IN ROLE aidb_users`, `ALTER ROLE bench_durable SET aidb.audit = 'durable'`,
		fmt.Sprintf(`SELECT aidb.create_model(m, 'openai_completions', jsonb_build_object('model', 'mock-r' || r, 'url', '%s'), validate => false)
			FROM (VALUES ('one', 2), ('rounds', %d)) v (m, r)`, url, n+1),
		`SELECT aidb.create_model('reply', 'dummy', '`+string(script)+`', validate => false)`,
		`SELECT aidb.create_agent(m, 'You are measured.', m, tools => '{run_sql_query}') FROM unnest('{one,rounds,reply}'::text[]) m`)
}

// ask calls an agent and counts the decisions that were made.
func ask(ctx context.Context, conn *pgx.Conn, agent string) (took time.Duration, decisions int, err error) {
	took, id, err := measure.Ask(ctx, conn, agent)
	if err != nil {
		return 0, 0, err
	}
	err = conn.QueryRow(ctx, "SELECT count(*) FROM aidb.decisions WHERE conversation_id = $1::uuid", id).Scan(&decisions)
	return took, decisions, err
}
