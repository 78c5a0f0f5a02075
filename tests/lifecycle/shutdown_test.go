package lifecycle

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// inFlight is how many calls hang when a server is stopped.
const inFlight = 10

// withCallsInFlight starts a server of its own with calls that hang in their model, and returns what becomes of them.
func withCallsInFlight(t *testing.T) (*servertest.Server, []<-chan answer) {
	t.Helper()
	s := servertest.Start(t, conf(false))
	s.Agent(t, s.Conn(t, "ann"), "hanging", nil, fakemodel.Reply{Hang: true})
	calls := make([]<-chan answer, inFlight)
	for i := range calls {
		calls[i] = ask(t.Context(), s.Conn(t, "ann"), "hanging", fmt.Sprintf("call %d", i))
	}
	require.NoError(t, s.Model.WaitFor(within(t), "all calls to hang", func() bool { return s.Model.InFlight("hanging") == inFlight }))
	return s, calls
}

func allGone(t *testing.T, calls []<-chan answer) {
	t.Helper()
	for i, call := range calls {
		select {
		case a := <-call:
			require.True(t, gone(a.err), "call %d ended with %v %v", i, a.outcome, a.err)
		case <-time.After(patience):
			require.Fail(t, "a client is still waiting", "call %d", i)
		}
	}
}

func TestStop_WithCallsInFlight(t *testing.T) {
	for _, mode := range []string{"fast", "immediate"} {
		t.Run(mode, func(t *testing.T) {
			s, calls := withCallsInFlight(t)
			start := time.Now()
			require.NoError(t, s.Stop(t.Context(), mode))
			t.Logf("stopped in %v", time.Since(start))
			require.Less(t, time.Since(start), 2*patience)
			allGone(t, calls)
			require.NoError(t, s.WaitGone(patience))
			require.Empty(t, s.Crashes())

			require.NoError(t, s.Cluster.Start(t.Context()), "the server starts again")
			s.Model.Script("hanging", fakemodel.Say("back"))
			require.Equal(t, "back", servertest.MustAsk(t, s.Conn(t, "ann"), "hanging", "hello").Message)
		})
	}
}

// No backend may outlive a postmaster that was killed: it would keep the data directory in use.
func TestPostmasterKilled_WithCallsInFlight(t *testing.T) {
	s, calls := withCallsInFlight(t)
	start := time.Now()
	require.NoError(t, s.Kill(syscall.SIGKILL))
	require.NoError(t, s.WaitGone(patience))
	t.Logf("every process gone after %v", time.Since(start))
	allGone(t, calls)

	require.NoError(t, s.Cluster.Start(t.Context()), "the server starts again")
	s.Model.Script("hanging", fakemodel.Say("back"))
	require.Equal(t, "back", servertest.MustAsk(t, s.Conn(t, "ann"), "hanging", "hello").Message)
}

// With the C library preloaded the postmaster has it, but never Go: no thread survives a fork.
func TestPreloaded_GoStaysOutOfThePostmaster(t *testing.T) {
	s := servertest.Start(t, conf(true))
	conn := s.Conn(t, "ann")
	s.Agent(t, conn, "plain", nil, fakemodel.Say("fine"))
	require.Equal(t, "fine", servertest.MustAsk(t, conn, "plain", "hello").Message)

	postmaster, err := s.PostmasterPID()
	require.NoError(t, err)
	require.Contains(t, maps(t, postmaster), "/aidb.so")
	require.NotContains(t, maps(t, postmaster), "aidb_go.so")
	require.Contains(t, maps(t, pid(conn)), "aidb_go.so")
	require.Equal(t, "1", servertest.Value(t, s.Admin(t), "SELECT 1"))
	unused := s.Conn(t, "ann")
	servertest.Exec(t, unused, "SELECT count(*) FROM aidb.agents")
	require.NotContains(t, maps(t, pid(unused)), "aidb_go.so", "a session that does not use Go does not load it")

	s.Agent(t, conn, "hung", nil, fakemodel.Reply{Hang: true})
	done := ask(t.Context(), conn, "hung", "think")
	require.NoError(t, thinking(within(t), s, "hung", "think"))
	servertest.Exec(t, s.Admin(t), "SELECT pg_cancel_backend($1)", pid(conn))
	require.Equal(t, "57014", servertest.State((<-done).err))

	require.NoError(t, s.Stop(context.WithoutCancel(t.Context()), "fast"))
	require.NoError(t, s.WaitGone(patience))
	require.Empty(t, s.Crashes())
}

func maps(t *testing.T, process int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", process))
	require.NoError(t, err)
	return string(text)
}

// What the wake-up tests depend on, seen directly: every thread but the backend's own has SIGURG blocked.
func TestGoThreads_TakeNoSignalOfTheBackend(t *testing.T) {
	conn := server.Admin(t)
	busy(t, conn)
	for _, id := range threads(t, pid(conn)) {
		if id == pid(conn) {
			continue
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/status", pid(conn), id))
		require.NoError(t, err)
		var blocked uint64
		for line := range strings.Lines(string(status)) {
			if hex, ok := strings.CutPrefix(line, "SigBlk:"); ok {
				_, err := fmt.Sscanf(strings.TrimSpace(hex), "%x", &blocked)
				require.NoError(t, err)
			}
		}
		for _, sig := range []syscall.Signal{syscall.SIGURG, syscall.SIGINT, syscall.SIGTERM, syscall.SIGALRM, syscall.SIGUSR1, syscall.SIGHUP, syscall.SIGQUIT} {
			require.NotZero(t, blocked&(1<<(sig-1)), "thread %d takes %v", id, sig)
		}
	}
}

func threads(t *testing.T, process int) []int {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", process))
	require.NoError(t, err)
	var ids []int
	for _, e := range entries {
		var id int
		_, err := fmt.Sscan(e.Name(), &id)
		require.NoError(t, err)
		ids = append(ids, id)
	}
	require.Greater(t, len(ids), 1, "Go has threads")
	return ids
}

func TestPanicInGo_IsAnErrorAndTheSessionLives(t *testing.T) {
	admin := server.Admin(t)
	backend := pid(admin)
	for range 20 {
		_, err := admin.Exec(t.Context(), "SELECT aidb_internal.test_go('panic', '')")
		require.NotEmpty(t, servertest.State(err), "an ERROR, not a lost connection: %v", err)
	}
	conn := server.Conn(t, "ann")
	server.Agent(t, conn, "after_panic", nil, fakemodel.Say("alive"))
	require.Equal(t, "alive", servertest.MustAsk(t, admin, "after_panic", "hello").Message, "Go in the same backend goes on")
	require.Equal(t, backend, pid(admin))
	require.Empty(t, server.Crashes())
}

// COPY TO PROGRAM forks a process that has Go's threads.
func TestCopyToProgram_AfterGoIsLoaded(t *testing.T) {
	admin := server.Admin(t)
	busy(t, admin)
	n := times(t, 200)
	for i := range n {
		_, err := admin.Exec(t.Context(), "COPY (SELECT 1) TO PROGRAM 'cat > /dev/null'")
		require.NoError(t, err, "%d", i)
	}
	require.Empty(t, server.Crashes())
}

// The debug functions of these tests are for superusers who switched them on.
func TestHooks_AreClosedToOthers(t *testing.T) {
	_, err := server.Conn(t, "ann").Exec(t.Context(), "SELECT aidb_internal.test_go('gc', '')")
	require.Equal(t, "42501", servertest.State(err), "%v", err)
	off := server.Admin(t)
	servertest.Exec(t, off, "SET aidb.test_hooks = off")
	_, err = off.Exec(t.Context(), "SELECT aidb_internal.test_go('gc', '')")
	require.NotEmpty(t, servertest.State(err))
}
