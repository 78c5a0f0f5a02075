package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"aidb/tests/cluster"
)

const (
	fresh = 20 // sessions of which the first call is measured
	used  = 10 // sessions of which the memory is measured, each after this many calls:
	calls = 20
)

// session measures what the compare table does not show: the first call of a session, which loads the Go library, and what
// a session that has used it keeps of the machine's memory.
func session(ctx context.Context, c *cluster.Cluster, url string) error {
	conn, err := c.Connect(ctx, "postgres", "postgres")
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, `CREATE ROLE first_call LOGIN IN ROLE aidb_users; GRANT SELECT ON orders TO first_call`); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, `SELECT aidb.create_model('first_call', 'openai_completions', $1::jsonb, credentials => '{"api_key": "x"}', validate => false)`,
		map[string]any{"model": "mock-r2-l0", "url": url}); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, `SELECT aidb.create_agent('first_call', 'You are a data analyst.', 'first_call', tools => '{run_sql_query}')`); err != nil {
		return err
	}
	if err := firstCalls(ctx, c); err != nil {
		return err
	}
	if err := stored(ctx, c); err != nil {
		return err
	}
	return memory(ctx, c)
}

func ask(ctx context.Context, conn *pgx.Conn) (time.Duration, error) {
	start := time.Now()
	var message, problem *string
	// The simple protocol: no preparation of the statement is counted, or hidden, in the first call.
	err := conn.QueryRow(ctx, `SELECT message, error FROM aidb.agent_converse('first_call', 'How many orders are there?')`, pgx.QueryExecModeSimpleProtocol).Scan(&message, &problem)
	if err == nil && problem != nil {
		err = errors.New(*problem)
	}
	return time.Since(start), err
}

func firstCalls(ctx context.Context, c *cluster.Cluster) error {
	var first, firstCPU, second, secondCPU []float64
	for range fresh {
		conn, err := c.Connect(ctx, "first_call", "postgres")
		if err != nil {
			return err
		}
		pid := int(conn.PgConn().PID())
		begin := cpuTime(pid)
		one, err := ask(ctx, conn)
		if err != nil {
			return err
		}
		middle := cpuTime(pid)
		two, err := ask(ctx, conn)
		if err != nil {
			return err
		}
		first, second = append(first, ms(one)), append(second, ms(two))
		firstCPU, secondCPU = append(firstCPU, ms(middle-begin)), append(secondCPU, ms(cpuTime(pid)-middle))
		if err := conn.Close(ctx); err != nil {
			return err
		}
	}
	fmt.Printf("\nFirst call in a fresh backend, milliseconds: fastest %.1f, median %.1f, slowest %.1f; CPU %.1f to %.1f, median %.1f (the second: median %.1f, CPU %.1f)\n",
		slices.Min(first), median(first), slices.Max(first), slices.Min(firstCPU), slices.Max(firstCPU), median(firstCPU), median(second), median(secondCPU))
	return nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// cpuTime is the CPU time of all threads of a process, 0 where the system does not tell.
func cpuTime(pid int) (total time.Duration) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, t := range threads {
		if text, err := os.ReadFile(t); err == nil {
			nanoseconds, _, _ := strings.Cut(string(text), " ")
			n, _ := strconv.ParseInt(nanoseconds, 10, 64)
			total += time.Duration(n)
		}
	}
	return total
}

// memory compares backends that have used an agent, idle again, with backends that have run plain queries.
func memory(ctx context.Context, c *cluster.Cluster) error {
	var plain, agents []float64
	for range used {
		conn, err := c.Connect(ctx, "first_call", "postgres")
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(ctx) }()
		for range calls {
			if _, err := conn.Exec(ctx, "SELECT count(*) FROM orders"); err != nil {
				return err
			}
		}
		before := settled(int(conn.PgConn().PID()))
		for range calls {
			if _, err := ask(ctx, conn); err != nil {
				return err
			}
		}
		plain, agents = append(plain, before), append(agents, settled(int(conn.PgConn().PID())))
	}
	fmt.Printf("Private memory of an idle backend: %.1f MB after plain queries, %.1f MB after %d conversations (median of %d): +%.1f MB\n",
		median(plain), median(agents), calls, used, median(agents)-median(plain))
	return nil
}

// settled is a process's private memory in MB when it has been idle for a while: the Go runtime gives memory back some time
// after the last call.
func settled(pid int) float64 {
	const idle = 2 * time.Second
	time.Sleep(idle)
	return private(pid)
}

func private(pid int) float64 {
	f, err := os.Open(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }()
	kb := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 1 && strings.HasPrefix(fields[0], "Private_") {
			n, _ := strconv.Atoi(fields[1])
			kb += n
		}
	}
	return float64(kb) / 1024
}
