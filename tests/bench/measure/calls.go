package measure

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// Calls is the command line of a benchmark of agent calls, so many of each kind: run, which is told how many, after the other
// flags were read.
func Calls(name string, calls int, run func(ctx context.Context, calls int) error) {
	flag.IntVar(&calls, "calls", calls, "measured agent calls of each kind")
	quick := flag.Bool("quick", false, "a quarter of the agent calls")
	flag.Parse()
	if *quick {
		calls /= 4
	}
	if err := run(context.Background(), calls); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Ask times one call of an agent. A call that ends with an error is none to be measured.
func Ask(ctx context.Context, conn *pgx.Conn, agent string) (took time.Duration, conversation string, err error) {
	start := time.Now()
	var message, id, problem *string
	err = conn.QueryRow(ctx, "SELECT * FROM aidb.agent_converse($1, 'go')", agent).Scan(&message, &id, &problem)
	took = time.Since(start)
	switch {
	case err != nil:
		return 0, "", err
	case problem != nil:
		return 0, "", fmt.Errorf("agent %s: %s", agent, *problem)
	}
	return took, *id, nil
}

// Timed is something that says how long it took.
type Timed func() (time.Duration, error)

// InTurn times both again and again, one after the other, so that what else the machine does falls on both; the first
// warm times do not count.
func InTurn(warm, times int, one, other Timed) (first, second []time.Duration, err error) {
	for i := range warm + times {
		a, err := one()
		if err != nil {
			return nil, nil, err
		}
		b, err := other()
		if err != nil {
			return nil, nil, err
		}
		if i >= warm {
			first, second = append(first, a), append(second, b)
		}
	}
	return first, second, nil
}

// Median is the median of the times.
func Median(list []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

// Micros writes a time in microseconds with so many decimals.
func Micros(d time.Duration, decimals int) string {
	return fmt.Sprintf("%.*f µs", decimals, float64(d.Nanoseconds())/1000)
}
