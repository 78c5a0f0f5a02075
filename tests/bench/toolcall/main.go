// Command toolcall measures what one tool call costs beyond its statement: everything that is done to enter the sandbox and
// to leave it, the decision record, and the two rows of the log.
//
//	go run ./tests/bench/toolcall [-quick] [-n 20] [-calls 400]      (after make install; make bench runs it, too)
//
// An agent under a purpose is called by a member of its role, once with a model that answers at once and once with one that
// asks for N queries first, all in one reply. The difference of the two medians, divided by N, is what a tool call costs. What
// the same query costs by itself is measured in a PL/pgSQL loop, where no client is in the way, and taken off. So it is done
// with an empty decision log, with a million records in it, and with 500 roles of which the caller is a member.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"aidb/tests/bench/measure"
	"aidb/tests/cluster"
)

const (
	records = 1_000_000
	roles   = 500
	goal    = 300 * time.Microsecond
)

func main() {
	n := flag.Int("n", 20, "tool calls in one agent call")
	measure.Calls("toolcall", 400, func(ctx context.Context, calls int) error { return run(ctx, *n, calls) })
}

func run(ctx context.Context, n, calls int) error {
	c, err := cluster.New(ctx, cluster.Options{})
	if err != nil {
		return err
	}
	defer c.Remove()
	if err := prepare(ctx, c, n); err != nil {
		return err
	}
	fmt.Printf("One tool call, SELECT 1 under a purpose; medians of %d agent calls, %d tool calls in each. Goal: under %d µs beyond the statement, and flat.\n\n", calls, n, goal.Microseconds())
	fmt.Printf("%-46s %12s %12s %12s %12s %10s\n", "", "no tool call", fmt.Sprintf("%d of them", n), "one costs", "statement", "beyond")
	for _, s := range []struct{ name, sql string }{
		{"decision log empty", `SELECT`},
		{fmt.Sprintf("decision log with %d records", records), fillLog},
		{fmt.Sprintf("and %d roles, the caller in all of them", roles), makeRoles},
	} {
		if err := c.Exec(ctx, "postgres", s.sql, "VACUUM ANALYZE", "CHECKPOINT"); err != nil {
			return err
		}
		conn, err := c.Connect(ctx, "bench_caller", "postgres")
		if err != nil {
			return err
		}
		err = compare(ctx, conn, s.name, n, calls)
		_ = conn.Close(ctx)
		if err != nil {
			return err
		}
	}
	return nil
}

// prepare makes the roles, the purpose and two agents on scripted models.
func prepare(ctx context.Context, c *cluster.Cluster, n int) error {
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
	script := func(replies ...reply) string {
		text, err := json.Marshal(map[string]any{"scope": "call", "responses": replies})
		if err != nil {
			panic(err) // made of strings
		}
		return string(text)
	}
	return c.Exec(ctx, "postgres", `CREATE EXTENSION aidb`, `CREATE ROLE bench_role`, `CREATE ROLE bench_caller LOGIN IN ROLE aidb_users, bench_role`,
		`GRANT EXECUTE ON FUNCTION aidb.run_sql_query(text) TO bench_role`, `SELECT aidb.create_purpose('bench', 'bench_role')`,
		`SELECT aidb.create_model('none', 'dummy', '`+script(reply{Response: "done"})+`', validate => false)`,
		`SELECT aidb.create_model('many', 'dummy', '`+script(reply{Calls: queries}, reply{Response: "done"})+`', validate => false)`,
		`SELECT aidb.create_agent(m, 'You are measured.', m, tools => '{run_sql_query}', purpose => 'bench') FROM unnest('{none,many}'::text[]) m`)
}

// fillLog makes records like those of a busy month; what matters is how many there are, not that their hashes fit.
const fillLog = `
INSERT INTO aidb_internal.decision_log (decision_id, chain_id, chain_n, at, conversation_id, task_id, agent, purpose, tool, interaction_point,
    principal, caller, session_user_name, role, status, attempted_escalation, query_text, query_hash, rows, duration_us, prev_hash, hash)
SELECT gen_random_uuid(), md5('run' || g / 5)::uuid, g % 5 + 1, now() - interval '30 days' + g * interval '2 seconds', md5('conversation' || g / 20)::uuid,
    md5('task' || g / 5)::uuid, 'agent' || g % 50, 'bench', 'run_sql_query', 'sql_exec', 'user:' || g % 1000, 'bench_caller', 'bench_caller', 'bench_role',
    'allowed', false, 'SELECT ' || g || ' FROM orders WHERE customer = ' || g % 97, md5(g::text) || md5((-g)::text), 1, 900, sha256(g::text::bytea), sha256((g + 1)::text::bytea)
FROM generate_series(1, 1000000) g`

const makeRoles = `
DO $$ BEGIN
    FOR i IN 1 .. 500 LOOP
        EXECUTE format('CREATE ROLE bench_%s', i);
        EXECUTE format('GRANT bench_%s TO bench_caller', i);
    END LOOP;
END $$`

func compare(ctx context.Context, conn *pgx.Conn, name string, n, calls int) error {
	without, with, err := measure.InTurn(40, calls,
		func() (time.Duration, error) { return ask(ctx, conn, "none", 0) },
		func() (time.Duration, error) { return ask(ctx, conn, "many", n) })
	if err != nil {
		return err
	}
	statement, err := plain(ctx, conn, calls)
	if err != nil {
		return err
	}
	one := (measure.Median(with) - measure.Median(without)) / time.Duration(n)
	us := func(d time.Duration) string { return measure.Micros(d, 1) }
	fmt.Printf("%-46s %12s %12s %12s %12s %10s\n", name, us(measure.Median(without)), us(measure.Median(with)), us(one), us(statement), us(one-statement))
	return nil
}

func ask(ctx context.Context, conn *pgx.Conn, agent string, want int) (time.Duration, error) {
	took, id, err := measure.Ask(ctx, conn, agent)
	if err != nil {
		return 0, err
	}
	// Not a measurement of refusals.
	var got int
	err = conn.QueryRow(ctx, `SELECT count(*) FROM aidb.decisions WHERE conversation_id = $1::uuid AND interaction_point = 'sql_exec'
		AND status = 'allowed' AND rows = 1`, id).Scan(&got)
	if err == nil && got != want {
		err = fmt.Errorf("agent %s made %d tool calls instead of %d", agent, got, want)
	}
	return took, err
}

// plain is the query by itself, parsed, planned and executed each time as a tool's is.
func plain(ctx context.Context, conn *pgx.Conn, times int) (time.Duration, error) {
	const inner = 200
	var took []time.Duration
	for range times {
		var us float64
		err := conn.QueryRow(ctx, `SELECT bench_plain FROM pg_temp.bench_plain($1)`, inner).Scan(&us)
		if err != nil && len(took) == 0 {
			if _, err = conn.Exec(ctx, `CREATE FUNCTION pg_temp.bench_plain(times int) RETURNS float8 LANGUAGE plpgsql AS $$
				DECLARE start timestamptz := clock_timestamp(); r record;
				BEGIN
					FOR i IN 1 .. times LOOP EXECUTE 'SELECT 1 AS n' || i % 20 INTO r; END LOOP;
					RETURN extract(epoch FROM clock_timestamp() - start) * 1000000 / times;
				END $$`); err == nil {
				err = conn.QueryRow(ctx, `SELECT bench_plain FROM pg_temp.bench_plain($1)`, inner).Scan(&us)
			}
		}
		if err != nil {
			return 0, err
		}
		took = append(took, time.Duration(us*1000))
	}
	return measure.Median(took), nil
}
