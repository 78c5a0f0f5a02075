// Package lifecycle proves that a Go runtime inside a backend costs the backend nothing of what PostgreSQL promises: no
// wake-up, cancel, timeout, terminate, disconnect or shutdown is lost, nothing crashes and no process is left behind.
//
// Each test repeats one event many times and counts losses. A *loss* is an event whose effect did not show within
// `patience`, which is far more than any of them takes. Events are sent when a state has been reached (the fake model
// holds the request, the lock is waited for), never after a pause.
package lifecycle

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"aidb/tests/cluster"
	"aidb/tests/servertest"
)

// patience is how long an event may take before it counts as lost.
const patience = 5 * time.Second

// sessions is how many connections share the repetitions of a test.
const sessions = 8

var server *servertest.Server

func TestMain(m *testing.M) { servertest.Main(m, conf(false), &server) }

// conf is the configuration of every server here. deadlock_timeout is out of the way: its timer would wake a backend that
// waits for a lock, and so hide a lost wake-up.
func conf(preload bool) cluster.Options {
	return cluster.Options{Preload: preload, Conf: []string{"aidb.test_hooks = on", "deadlock_timeout = 10min", "autovacuum = off"}}
}

// times is how often an event is repeated: the full count, or what LIFECYCLE_PERCENT of it says (for a quick look).
func times(t testing.TB, full int) int {
	percent, err := strconv.Atoi(os.Getenv("LIFECYCLE_PERCENT"))
	if err != nil {
		return full
	}
	t.Logf("LIFECYCLE_PERCENT: %d percent of %d", percent, full)
	return max(sessions, full*percent/100)
}

// tally counts what became of the events of one test.
type tally struct {
	mu     sync.Mutex
	took   []time.Duration
	losses []string
}

func (c *tally) ok(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.took = append(c.took, d)
}

func (c *tally) lost(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.losses = append(c.losses, fmt.Sprintf(format, args...))
}

// settle fails the test unless every one of n events had its effect and the server is sound.
func (c *tally) settle(t *testing.T, s *servertest.Server, n int) {
	t.Helper()
	slices.Sort(c.took)
	if len(c.took) > 0 {
		t.Logf("%d events, %d lost; p50 %v, p99 %v, max %v", n, n-len(c.took),
			c.took[len(c.took)/2], c.took[len(c.took)*99/100], c.took[len(c.took)-1])
	}
	require.Empty(t, c.losses[:min(len(c.losses), 10)], "%d events were lost", len(c.losses))
	require.Len(t, c.took, n, "events that had their effect")
	require.Empty(t, s.Crashes(), "crashes in the log")
}

// share runs body n times, spread over the sessions; body is given the session's number and the repetition's.
func share(n int, body func(session, i int)) {
	var wg sync.WaitGroup
	for s := range sessions {
		wg.Go(func() {
			for i := s; i < n; i += sessions {
				body(s, i)
			}
		})
	}
	wg.Wait()
}

// within is a context that ends when an event counts as lost.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// busy makes the Go runtime of a connection's backend allocate and collect for as long as the test runs.
func busy(t testing.TB, admin *pgx.Conn) {
	t.Helper()
	_, err := admin.Exec(t.Context(), `SELECT aidb_internal.test_go('busy', '{"goroutines": 3, "seconds": 600}')`)
	require.NoError(t, err)
}

// answer is what became of a call that ran in the background.
type answer struct {
	outcome servertest.Outcome
	err     error
	at      time.Time
}

// ask starts a call in the background.
func ask(ctx context.Context, conn *pgx.Conn, agent, prompt string) <-chan answer {
	done := make(chan answer, 1)
	go func() {
		o, err := servertest.Ask(ctx, conn, agent, prompt)
		done <- answer{o, err, time.Now()}
	}()
	return done
}

// thinking waits until the fake model holds the request with this prompt.
func thinking(ctx context.Context, s *servertest.Server, model, prompt string) error {
	return s.Model.WaitFor(ctx, "the request of "+prompt, func() bool { return s.Model.Holds(model, prompt) })
}

// pid is the backend of a connection.
func pid(conn *pgx.Conn) int { return int(conn.PgConn().PID()) }

// gone says whether an error is the server's farewell or the connection's end.
func gone(err error) bool {
	if err == nil {
		return false
	}
	state := servertest.State(err)
	return state == "57P01" || state == "57P02" || state == "57P03" || state == "" && !pgconn.Timeout(err)
}
