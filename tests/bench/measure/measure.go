// Package measure runs a job many times and tells what one run of it cost.
package measure

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Flags of a driver program.
type Flags struct {
	Rounds, Latency, N, Conc, History, Warm int
}

// Parse reads them from the command line.
func Parse() Flags {
	var f Flags
	flag.IntVar(&f.Rounds, "rounds", 2, "model calls of one conversation; all but the last ask for a query")
	flag.IntVar(&f.Latency, "latency", 0, "milliseconds that the model takes for a reply")
	flag.IntVar(&f.N, "n", 300, "measured conversations")
	flag.IntVar(&f.Conc, "conc", 1, "conversations at a time")
	flag.IntVar(&f.History, "history", 0, "turns that a conversation already has")
	flag.IntVar(&f.Warm, "warm", 30, "conversations before the measured ones")
	flag.Parse()
	return f
}

// Model is the mock's model name for these flags.
func (f Flags) Model() string { return fmt.Sprintf("mock-r%d-l%d", f.Rounds, f.Latency) }

// ModelURL is the mock's base URL.
func ModelURL() string {
	if url := os.Getenv("MOCK_URL"); url != "" {
		return url
	}
	return "http://127.0.0.1:18080/v1"
}

// Result is what a driver prints: one line of JSON. Milliseconds are what a conversation costs beyond the model's own time.
type Result struct {
	Peer        string  `json:"peer"`
	Rounds      int     `json:"rounds"`
	Latency     int     `json:"latency_ms"`
	Concurrency int     `json:"concurrency"`
	History     int     `json:"history_turns"`
	N           int     `json:"n"`
	Median      float64 `json:"overhead_ms_median"`
	P99         float64 `json:"overhead_ms_p99"`
	PerSecond   float64 `json:"conv_per_s"`
	ClientCPU   float64 `json:"cpu_ms_per_conv"`
	ServerCPU   float64 `json:"pg_cpu_ms_per_conv"`
	WAL         float64 `json:"wal_kb_per_conv"`
	RSS         int     `json:"rss_mb"`
	PeakRSS     int64   `json:"peak_rss_mb"`
}

// Print writes the result as one line.
func (r Result) Print(w io.Writer) error { return json.NewEncoder(w).Encode(r) }

// Run prepares all conversations, warms up, and measures: job runs one conversation, given what prepare made for it.
func Run(ctx context.Context, peer string, f Flags, pool *pgxpool.Pool,
	prepare func(context.Context) (string, error), job func(context.Context, string) (string, error),
) (Result, error) {
	ids := make([]string, f.Warm+f.N)
	for i := range ids {
		var err error
		if ids[i], err = prepare(ctx); err != nil {
			return Result{}, fmt.Errorf("preparing: %w", err)
		}
	}
	if _, err := pump(ctx, f.Conc, ids[:f.Warm], job); err != nil {
		return Result{}, err
	}
	wal0, server0, client0, start := wal(ctx, pool), serverCPU(), clientCPU(), time.Now()
	took, err := pump(ctx, f.Conc, ids[f.Warm:], job)
	if err != nil {
		return Result{}, err
	}
	wall, client1, server1, wal1 := time.Since(start).Seconds(), clientCPU(), serverCPU(), wal(ctx, pool)

	slices.Sort(took)
	n := float64(f.N)
	quantile := func(q float64) float64 {
		return round(took[min(len(took)-1, int(q*float64(len(took))))] - float64(f.Rounds*f.Latency))
	}
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return Result{
		Peer: peer, Rounds: f.Rounds, Latency: f.Latency, Concurrency: f.Conc, History: f.History, N: f.N,
		Median: quantile(.5), P99: quantile(.99), PerSecond: round(n / wall),
		ClientCPU: round((client1 - client0) / n), ServerCPU: round((server1 - server0) / n), WAL: round((wal1 - wal0) / 1024 / n),
		RSS: residentMB(), PeakRSS: usage.Maxrss / 1024,
	}, nil
}

// pump runs the jobs, conc at a time, and returns how long each took in milliseconds.
func pump(ctx context.Context, conc int, ids []string, job func(context.Context, string) (string, error)) ([]float64, error) {
	var next atomic.Int64
	var mu sync.Mutex
	var took []float64
	var failed error
	var wg sync.WaitGroup
	for range conc {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(ids) {
					return
				}
				start := time.Now()
				answer, err := job(ctx, ids[i])
				d := float64(time.Since(start).Microseconds()) / 1000
				if err == nil && !strings.Contains(answer, "1000 orders") {
					err = fmt.Errorf("not the answer: %q", answer)
				}
				mu.Lock()
				if err != nil && failed == nil {
					failed = err
					next.Store(int64(len(ids)))
				}
				took = append(took, d)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return took, failed
}

func wal(ctx context.Context, pool *pgxpool.Pool) (bytes float64) {
	_ = pool.QueryRow(ctx, "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::float8").Scan(&bytes)
	return bytes
}

func clientCPU() float64 {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e6
}

// serverCPU is the CPU time, in milliseconds, of the postmaster PG_PID, of its children that ended and of those that live.
func serverCPU() float64 {
	pid := os.Getenv("PG_PID")
	if pid == "" {
		return 0
	}
	const user, system, childUser, childSystem = 11, 12, 13, 14 // fields of /proc/pid/stat after the name
	total := ticks(pid, user, system, childUser, childSystem)
	children, _ := os.ReadFile("/proc/" + pid + "/task/" + pid + "/children")
	for _, child := range strings.Fields(string(children)) {
		total += ticks(child, user, system)
	}
	return total * 10 // a tick is 10 ms
}

func ticks(pid string, fields ...int) (total float64) {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	all := strings.Fields(rest)
	for _, i := range fields {
		if i < len(all) {
			v, _ := strconv.ParseFloat(all[i], 64)
			total += v
		}
	}
	return total
}

func residentMB() int {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	pages, _ := strconv.Atoi(strings.Fields(string(text))[1])
	return pages * os.Getpagesize() >> 20
}

func round(x float64) float64 { return math.Round(x*100) / 100 }

// Turn is one turn of an invented history.
func Turn(i int) (question, answer string) {
	return fmt.Sprintf("Question %d: what was the revenue of region %d in month %d, and how does it compare?", i, i%7, i%12+1),
		fmt.Sprintf("Revenue of region %d in that month was %d.00, which is %d percent above the month before.", i%7, 1000+i, i%9)
}
