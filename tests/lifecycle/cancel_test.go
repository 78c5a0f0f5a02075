package lifecycle

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"aidb/tests/cluster"
	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

func TestCancel_WhileTheModelThinks(t *testing.T) {
	n := times(t, 1000)
	setup := server.Conn(t, "ann")
	server.Agent(t, setup, "thinker", nil, fakemodel.Reply{Hang: true})
	conns, admins := pairs(t)
	before := server.Model.Abandoned("thinker")

	var c tally
	share(n, func(s, i int) {
		ctx := within(t)
		prompt := fmt.Sprintf("cancel %d", i)
		done := ask(ctx, conns[s], "thinker", prompt)
		if err := thinking(ctx, server, "thinker", prompt); err != nil {
			c.lost("%d: %v", i, err)
			return
		}
		sent := time.Now()
		if _, err := admins[s].Exec(ctx, "SELECT pg_cancel_backend($1)", pid(conns[s])); err != nil {
			c.lost("%d: sending the cancel: %v", i, err)
			return
		}
		a := <-done
		if servertest.State(a.err) != "57014" {
			c.lost("%d: %v %v", i, a.outcome, a.err)
			return
		}
		c.ok(a.at.Sub(sent))
	})
	c.settle(t, server, n)

	// The call is over for the database; it must be over for the model's server too.
	require.NoError(t, server.Model.WaitFor(within(t), "all requests to be abandoned", func() bool {
		return server.Model.InFlight("thinker") == 0
	}))
	require.Equal(t, n, server.Model.Abandoned("thinker")-before, "requests whose connection was closed")
	for _, conn := range conns {
		require.Equal(t, "1", servertest.Value(t, conn, "SELECT 1"), "the session goes on")
	}
}

func TestStatementTimeout_InATool(t *testing.T) {
	n := times(t, 1000)
	lockedTable(t, "public.held_s")
	setup := server.Conn(t, "ann")
	server.Agent(t, setup, "waiter_s", []string{"run_sql_query"}, fakemodel.Query("SELECT * FROM public.held_s"))
	conns := each(t, "ann", "statement_timeout=40ms")

	var c tally
	share(n, func(s, i int) {
		// The time may be over before the tool runs (the first call of a session loads Go): such a call does not count, and
		// is made again. The model answers at once, so a call that it has seen spent its time in the tool.
		for attempt := range 20 {
			prompt := fmt.Sprintf("wait %d.%d", i, attempt)
			start := time.Now()
			o, err := servertest.Ask(within(t), conns[s], "waiter_s", prompt)
			if servertest.State(err) != "57014" {
				c.lost("%d: %v %v", i, o, err)
				return
			}
			if server.Model.Saw("waiter_s", prompt) {
				c.ok(time.Since(start))
				return
			}
		}
		c.lost("%d: the tool was never reached", i)
	})
	c.settle(t, server, n)
}

func TestLockTimeout_InATool(t *testing.T) {
	n := times(t, 1000)
	lockedTable(t, "public.held_l")
	setup := server.Conn(t, "ann")
	server.RegisterModel(t, setup, "waiter_l", server.Model.URL())
	servertest.Exec(t, setup, `SELECT * FROM aidb.create_agent('waiter_l', 'You are a test.', 'waiter_l', tools => '{run_sql_query}')`)
	// The model sees the tool's error and answers with it: the call went on.
	server.Model.Answer("waiter_l", func(r fakemodel.Request) fakemodel.Reply {
		if turn := r.Turn(); len(turn) > 0 {
			return fakemodel.Say("saw: " + turn[0].Result)
		}
		return fakemodel.Query("SELECT * FROM public.held_l")
	})
	// Long enough for the short locks that storing the run takes beside others, which it is not about.
	conns := each(t, "ann", "lock_timeout=60ms")

	var c tally
	share(n, func(s, i int) {
		start := time.Now()
		o, err := servertest.Ask(within(t), conns[s], "waiter_l", "wait")
		if err != nil || o.Error != "" || !contains(o.Message, "Tool error: ", "lock timeout") {
			c.lost("%d: %+v %v %s", i, o, err, where(err))
			return
		}
		c.ok(time.Since(start))
	})
	c.settle(t, server, n)
}

func TestTerminate_MidCall(t *testing.T) {
	n := times(t, 200)
	setup := server.Conn(t, "ann")
	server.Agent(t, setup, "victim", nil, fakemodel.Reply{Hang: true})
	_, admins := pairs(t)

	var c tally
	share(n, func(s, i int) {
		ctx := within(t)
		conn, err := server.Connect(ctx, "ann", servertest.Database)
		if err != nil {
			c.lost("%d: connecting: %v", i, err)
			return
		}
		prompt := fmt.Sprintf("terminate %d", i)
		done := ask(ctx, conn, "victim", prompt)
		if err := thinking(ctx, server, "victim", prompt); err != nil {
			c.lost("%d: %v", i, err)
			return
		}
		sent := time.Now()
		if _, err := admins[s].Exec(ctx, "SELECT pg_terminate_backend($1)", pid(conn)); err != nil {
			c.lost("%d: terminating: %v", i, err)
			return
		}
		if a := <-done; !gone(a.err) {
			c.lost("%d: %v %v", i, a.outcome, a.err)
			return
		}
		if !cluster.Wait(patience, func() bool { return !cluster.Alive(pid(conn)) }) {
			c.lost("%d: backend %d is still there", i, pid(conn))
			return
		}
		c.ok(time.Since(sent))
	})
	c.settle(t, server, n)
}

// The client goes without a word in the middle of a call. Nobody cancels; the backend has to notice by itself.
func TestDisconnect_MidCall(t *testing.T) {
	n := times(t, 200)
	setup := server.Conn(t, "ann")
	server.Agent(t, setup, "deserted", nil, fakemodel.Reply{Hang: true})

	var c tally
	share(n, func(_, i int) {
		ctx := within(t)
		conn, err := server.Connect(ctx, "ann", servertest.Database)
		if err != nil {
			c.lost("%d: connecting: %v", i, err)
			return
		}
		prompt := fmt.Sprintf("disconnect %d", i)
		done := ask(ctx, conn, "deserted", prompt)
		if err := thinking(ctx, server, "deserted", prompt); err != nil {
			c.lost("%d: %v", i, err)
			return
		}
		left := time.Now()
		if err := conn.PgConn().Conn().Close(); err != nil {
			c.lost("%d: closing: %v", i, err)
			return
		}
		<-done
		if !cluster.Wait(patience, func() bool { return !cluster.Alive(pid(conn)) }) {
			c.lost("%d: backend %d is still there", i, pid(conn))
			_ = syscall.Kill(pid(conn), syscall.SIGTERM)
			return
		}
		c.ok(time.Since(left))
	})
	c.settle(t, server, n)
	require.NoError(t, server.Model.WaitFor(within(t), "all requests to be abandoned", func() bool {
		return server.Model.InFlight("deserted") == 0
	}))
}

// each opens one connection a session.
func each(t *testing.T, role string, settings ...string) []*pgx.Conn {
	t.Helper()
	conns := make([]*pgx.Conn, sessions)
	for i := range conns {
		conns[i] = server.Conn(t, role, settings...)
	}
	return conns
}

// pairs opens, for each session, one connection that calls and one that acts on it.
func pairs(t *testing.T) (conns, admins []*pgx.Conn) {
	t.Helper()
	return each(t, "ann"), each(t, "postgres")
}

// lockedTable makes a table that nobody can read before the test ends.
func lockedTable(t *testing.T, name string) {
	t.Helper()
	admin := server.Admin(t)
	servertest.Exec(t, admin, "CREATE TABLE "+name+" (n int)")
	servertest.Exec(t, admin, "GRANT SELECT ON "+name+" TO ann")
	servertest.Exec(t, admin, "BEGIN")
	servertest.Exec(t, admin, "LOCK TABLE "+name)
}

// where is the context that the server gave with an error.
func where(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Where
	}
	return ""
}

// contains says whether a text has all of these parts.
func contains(text string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}
