// Command actions measures what a person or a model waits for before anything has run: describe_actions over 200 tools, and a
// preview beside the statement that it tries.
//
//	go run ./tests/bench/actions [-quick] [-calls 100]      (after make install; make bench runs it, too)
//
// An agent is called with a model that answers at once, and with one that asks for N calls first; the difference, divided by N,
// is what one costs. A statement is measured as one that a client sends in a transaction of its own and rolls back: what a
// preview does, without an agent; and as the same tool that needs no confirmation, which is what the agent would run.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"aidb/tests/bench/measure"
	"aidb/tests/cluster"
)

const (
	tools = 200
	goal  = 20 * time.Millisecond
	ratio = 1.5
)

// rows is how many rows the previewed statements change.
var rows = []int{1, 1_000, 30_000}

func main() { measure.Calls("actions", 100, run) }

func run(ctx context.Context, calls int) error {
	c, err := cluster.New(ctx, cluster.Options{})
	if err != nil {
		return err
	}
	defer c.Remove()
	if err := prepare(ctx, c); err != nil {
		return err
	}
	conn, err := c.Connect(ctx, "bench_caller", "postgres")
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	one, err := difference(ctx, conn, "describe", "silent", calls)
	if err != nil {
		return err
	}
	fmt.Printf("describe_actions over %d tools; medians of %d calls; goal: under %v\n\n  %.2f ms\n\n", tools, calls, goal, ms(one))
	fmt.Printf("A preview beside its statement, an UPDATE; medians of %d; goal: at most %.1f times the statement\n\n", calls, ratio)
	fmt.Printf("%-12s %14s %14s %8s %14s %8s\n", "rows", "statement", "proposal", "ratio", "as a call", "ratio")
	for _, n := range rows {
		preview, err := difference(ctx, conn, fmt.Sprintf("update_%d", n), "none", calls)
		if err != nil {
			return err
		}
		call, err := difference(ctx, conn, fmt.Sprintf("safe_%d", n), "none", calls)
		if err != nil {
			return err
		}
		plain, err := statement(ctx, conn, n, calls)
		if err != nil {
			return err
		}
		fmt.Printf("%-12d %11.2f ms %11.2f ms %8.2f %11.2f ms %8.2f\n", n, ms(plain), ms(preview), float64(preview)/float64(plain),
			ms(call), float64(preview)/float64(call))
	}
	return nil
}

const update = "UPDATE public.bench SET n = n + 1 WHERE id <= "

func prepare(ctx context.Context, c *cluster.Cluster) error {
	sql := []string{
		`CREATE EXTENSION aidb`, `CREATE ROLE bench_caller LOGIN IN ROLE aidb_users`,
		`CREATE TABLE public.bench (id int PRIMARY KEY, n int, note text) WITH (autovacuum_enabled = off)`,
		`INSERT INTO public.bench SELECT g, 0, repeat('x', 100) FROM generate_series(1, 100000) g`,
		`GRANT SELECT, UPDATE ON public.bench TO bench_caller`,
		fmt.Sprintf(`SELECT aidb.create_sql_tool('tool_' || g, 'One of many tools.', 'UPDATE public.bench SET n = ${n} WHERE id = ${id} RETURNING id',
			aidb.tool_params(aidb.tool_param('id', 'int', 'which'), aidb.tool_param('n', 'int', 'what')), read_only => false) FROM generate_series(1, %d) g`, tools),
		model("describe", map[string]any{"name": "describe_actions", "arguments": map[string]any{}}),
		model("none", nil),
		`SELECT aidb.create_agent('none', 'x', 'none', tools => '{tool_1}')`,
		model("silent", nil),
		fmt.Sprintf(`SELECT aidb.create_agent(m, 'x', m, tool_exposure => 'catalog', tools => (SELECT array_agg('tool_' || g) FROM generate_series(1, %d) g))
			FROM unnest('{describe,silent}'::text[]) m`, tools),
	}
	for _, n := range rows {
		for kind, risk := range map[string]string{"update": "confirm", "safe": "safe"} {
			name := fmt.Sprintf("%s_%d", kind, n)
			sql = append(sql, fmt.Sprintf(`SELECT aidb.create_sql_tool('%s', 'x', '%s%d', '[]', read_only => false, risk => '%s')`, name, update, n, risk),
				model(name, map[string]any{"name": name, "arguments": map[string]any{}}),
				fmt.Sprintf(`SELECT aidb.create_agent('%[1]s', 'x', '%[1]s', tools => '{%[1]s}')`, name))
		}
	}
	return c.Exec(ctx, "postgres", append(sql, "VACUUM ANALYZE", "CHECKPOINT")...)
}

// model is a scripted model that makes one call, or none.
func model(name string, call map[string]any) string {
	replies := []any{map[string]any{"response": "done"}}
	if call != nil {
		replies = append([]any{map[string]any{"tool_calls": []any{call}}}, replies...)
	}
	text, err := json.Marshal(map[string]any{"scope": "call", "responses": replies})
	if err != nil {
		panic(err) // made of strings
	}
	return fmt.Sprintf(`SELECT aidb.create_model('%s', 'dummy', '%s', validate => false)`, name, text)
}

// difference is what the one call of an agent costs: a call of it less one of an agent that calls nothing. In turn, so that
// what else the machine does falls on both.
func difference(ctx context.Context, conn *pgx.Conn, agent, silent string, calls int) (time.Duration, error) {
	call := func(agent string) measure.Timed {
		return func() (time.Duration, error) {
			return undone(ctx, conn, "SELECT error FROM aidb.agent_converse('"+agent+"', 'go')")
		}
	}
	without, with, err := measure.InTurn(10, calls, call(silent), call(agent))
	if err != nil {
		return 0, err
	}
	return measure.Median(with) - measure.Median(without), nil
}

func statement(ctx context.Context, conn *pgx.Conn, n, calls int) (time.Duration, error) {
	var list []time.Duration
	for range calls {
		d, err := undone(ctx, conn, fmt.Sprintf("%s%d", update, n))
		if err != nil {
			return 0, err
		}
		list = append(list, d)
	}
	return measure.Median(list), nil
}

// undone runs a statement in a transaction that it rolls back, so that all find the same table; the time is the statement's. What
// an agent answers must not be an error.
func undone(ctx context.Context, conn *pgx.Conn, sql string) (time.Duration, error) {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	start := time.Now()
	found, err := tx.Query(ctx, sql)
	if err != nil {
		return 0, err
	}
	for found.Next() {
		values, err := found.Values()
		if err != nil {
			return 0, err
		}
		if values[0] != nil {
			return 0, fmt.Errorf("%s: %v", sql, values[0])
		}
	}
	took := time.Since(start)
	return took, found.Err()
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
