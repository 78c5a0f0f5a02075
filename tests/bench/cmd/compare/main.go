// Command compare is `make bench`: it starts a scratch server and a mock model, runs the ordinary program and aidb in turn
// on the same cases, and prints a table with the ratio of the two. Then it measures what the first call of a session costs
// and how much memory a session keeps.
//
//	make bench                    all cases
//	make bench BENCH=-quick       fewer conversations
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"aidb/tests/bench/measure"
	"aidb/tests/bench/mock"
	"aidb/tests/cluster"
)

const orders = `
CREATE TABLE IF NOT EXISTS orders (id int PRIMARY KEY, customer int, total numeric(10,2), placed timestamptz DEFAULT now());
INSERT INTO orders SELECT i, i % 97, (i * 7 % 5000) / 100.0 FROM generate_series(1, 1000) i ON CONFLICT DO NOTHING;
ANALYZE orders;`

// trial is one line of the table.
type trial struct {
	durable                  bool
	rounds, conc, history, n int
}

var trials = []trial{
	{true, 2, 1, 0, 400}, {true, 2, 16, 0, 800}, {true, 10, 1, 0, 150}, {true, 2, 1, 200, 150},
	{false, 2, 1, 0, 600}, {false, 2, 16, 0, 1600}, {false, 10, 1, 0, 300}, {false, 20, 1, 0, 150}, {false, 2, 1, 200, 300},
}

func main() {
	quick := flag.Bool("quick", false, "a quarter of the conversations")
	repeat := flag.Int("repeat", 3, "how often each program runs each case; a cell is the median of that many")
	flag.Parse()
	if err := run(context.Background(), *quick, *repeat); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, quick bool, repeat int) error {
	programs, err := build(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(programs) }()
	url, stop, err := mock.Start()
	if err != nil {
		return err
	}
	defer stop()

	fmt.Printf("One conversation: prompt, rounds-1 queries, answer; everything logged. Milliseconds; CPU is client + server.\n"+
		"A cell is the median of %d runs, a ratio the median of those of runs beside each other. %s.\n\n", repeat, load())
	defer func() { fmt.Printf("\nAt the end: %s.\n", load()) }()
	fmt.Printf("%-6s %6s %5s %8s | %8s %8s %8s | %8s %8s %8s | %7s %7s\n", "fsync", "rounds", "conc", "history",
		"floor", "p99", "CPU", "aidb", "p99", "CPU", "ratio", "CPU")
	for _, durable := range []bool{true, false} {
		if err := withServer(ctx, durable, func(c *cluster.Cluster) error {
			env, err := environment(c, url)
			if err != nil {
				return err
			}
			for _, t := range trials {
				if t.durable != durable {
					continue
				}
				if quick {
					t.n /= 4
				}
				if err := compare(ctx, c, programs, env, t, repeat); err != nil {
					return err
				}
			}
			if durable {
				return nil
			}
			return session(ctx, c, url)
		}); err != nil {
			return err
		}
	}
	return nil
}

// build compiles both programs, so that no compiler runs beside a measurement.
func build(ctx context.Context) (string, error) {
	dir, err := os.MkdirTemp("", "aidb-bench")
	if err != nil {
		return "", err
	}
	for _, name := range []string{"floor", "aidb"} {
		cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", filepath.Join(dir, name), "./tests/bench/"+name)
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return "", fmt.Errorf("building %s: %w", name, err)
		}
	}
	return dir, nil
}

func withServer(ctx context.Context, durable bool, use func(*cluster.Cluster) error) error {
	c, err := cluster.New(ctx, cluster.Options{Durable: durable})
	if err != nil {
		return err
	}
	defer c.Remove()
	if err := c.Exec(ctx, "postgres", orders); err != nil {
		return err
	}
	return use(c)
}

func environment(c *cluster.Cluster, url string) ([]string, error) {
	pid, err := c.PostmasterPID()
	if err != nil {
		return nil, err
	}
	return append(os.Environ(), fmt.Sprintf("PEERS_DSN=postgres://postgres@127.0.0.1:%d/postgres", c.Port), "MOCK_URL="+url, fmt.Sprintf("PG_PID=%d", pid)), nil
}

// compare runs both programs in turn, so that what else the machine does falls on both.
func compare(ctx context.Context, c *cluster.Cluster, programs string, env []string, t trial, repeat int) error {
	results := map[string][]measure.Result{}
	for range repeat {
		for _, name := range []string{"floor", "aidb"} {
			if err := c.Exec(ctx, "postgres", "CHECKPOINT"); err != nil {
				return err
			}
			cmd := exec.CommandContext(ctx, filepath.Join(programs, name), fmt.Sprintf("--rounds=%d", t.rounds), fmt.Sprintf("--conc=%d", t.conc),
				fmt.Sprintf("--history=%d", t.history), fmt.Sprintf("--n=%d", t.n))
			cmd.Env, cmd.Stderr = env, os.Stderr
			out, err := cmd.Output()
			if err != nil {
				return fmt.Errorf("%s %+v: %w", name, t, err)
			}
			var r measure.Result
			if err := json.Unmarshal(out, &r); err != nil {
				return errors.Join(err, errors.New(string(out)))
			}
			results[name] = append(results[name], r)
		}
	}
	fsync := "off"
	if t.durable {
		fsync = "on"
	}
	floor, aidb := results["floor"], results["aidb"]
	fmt.Printf("%-6s %6d %5d %8d | %8.2f %8.2f %8.2f | %8.2f %8.2f %8.2f | %7.2f %7.2f\n", fsync, t.rounds, t.conc, t.history,
		middle(floor, took), middle(floor, slowest), middle(floor, cpu), middle(aidb, took), middle(aidb, slowest), middle(aidb, cpu),
		ratio(aidb, floor, took), ratio(aidb, floor, cpu))
	return nil
}

func took(r measure.Result) float64    { return r.Median }
func slowest(r measure.Result) float64 { return r.P99 }
func cpu(r measure.Result) float64     { return r.ClientCPU + r.ServerCPU }

// middle is the median of a figure. Each figure has its own: autovacuum, say, falls on one run and not on all.
func middle(runs []measure.Result, figure func(measure.Result) float64) float64 {
	list := make([]float64, len(runs))
	for i, r := range runs {
		list[i] = figure(r)
	}
	return median(list)
}

// ratio is the median of the ratios of runs that were made one after the other.
func ratio(a, b []measure.Result, figure func(measure.Result) float64) float64 {
	list := make([]float64, len(a))
	for i := range a {
		list[i] = figure(a[i]) / figure(b[i])
	}
	return median(list)
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// load says how busy the machine is: beside other work every figure is too high.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "Load average unknown"
	}
	one, _, _ := strings.Cut(string(text), " ")
	return fmt.Sprintf("Load average %s on %d processors", one, runtime.NumCPU())
}
