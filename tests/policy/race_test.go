package policy

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/cluster"
	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// interleavings is how many times two backends race for one refund.
const interleavings = 200

var errChanged = errors.New("the client changed its mind")

// Two backends, one session, both refund, each in a transaction that does other things before, between and after: exactly
// one refund is made and logged, unless the one that had it gave it back.
func TestRace_OneSessionOneRefund(t *testing.T) {
	admin := server.Admin(t)
	servertest.Exec(t, admin, "SELECT aidb.create_policy('race', "+orders+"); CREATE TABLE public.race (session uuid, who int); GRANT ALL ON public.race TO ann")
	conns := [2]*pgx.Conn{server.Conn(t, "ann"), server.Conn(t, "ann")}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for round := range interleavings {
		id := session(t, conns[0], "race")
		allow(t, conns[0], id, "lookup_order")
		var won [2]bool
		var group sync.WaitGroup
		for who, conn := range conns {
			before, between, after := random.IntN(4), random.IntN(4), random.IntN(4)
			givesBack := random.IntN(5) == 0
			level := []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable}[random.IntN(3)]
			group.Go(func() {
				err := pgx.BeginTxFunc(t.Context(), conn, pgx.TxOptions{IsoLevel: level}, func(tx pgx.Tx) error {
					pause(t.Context(), tx, before)
					if _, err := tx.Exec(t.Context(), "SELECT aidb.authorize_tool_call($1, 'refund_order', jsonb_build_object('who', $2::int))", id, who); err != nil {
						return err
					}
					pause(t.Context(), tx, between)
					if _, err := tx.Exec(t.Context(), "INSERT INTO public.race VALUES ($1, $2)", id, who); err != nil {
						return err
					}
					pause(t.Context(), tx, after)
					if givesBack {
						return errChanged
					}
					return nil
				})
				won[who] = err == nil
				if err != nil && !errors.Is(err, errChanged) && servertest.State(err) != "42501" && servertest.State(err) != "40001" {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		group.Wait()
		require.False(t, won[0] && won[1], "round %d: both won", round)
		refunds := "0"
		want := "lookup_order:start>order_loaded"
		if won[0] || won[1] {
			refunds, want = "1", want+" refund_order:order_loaded>refunded"
		}
		require.Equal(t, refunds, servertest.Value(t, admin, "SELECT count(*) FROM public.race WHERE session = $1::uuid", id), "round %d", round)
		require.Equal(t, want, events(t, id), "round %d", round)
	}
}

// pause gives the other side time, by statements and not by the clock.
func pause(ctx context.Context, tx pgx.Tx, n int) {
	for range n {
		_, _ = tx.Exec(ctx, "SELECT count(*) FROM generate_series(1, 2000)")
	}
}

// A principal's limit holds across conversations that run at the same time.
func TestRace_APrincipalsLimit(t *testing.T) {
	admin := server.Admin(t)
	servertest.Exec(t, admin, `SELECT aidb.create_policy('plimit', ARRAY[aidb.transition('start', 'refund_order', NULL, 'aidb.principal_event_count(principal, ''refund_order'') < 3')])`)
	const sessions = 6
	var group sync.WaitGroup
	var mu sync.Mutex
	let := 0
	for range sessions {
		conn := server.Conn(t, "ann")
		id := servertest.Value(t, conn, "SELECT aidb.start_policy_session('plimit', 'customer 9')")
		group.Go(func() {
			for range 2 {
				_, err := conn.Exec(t.Context(), "SELECT aidb.authorize_tool_call($1, 'refund_order')", id)
				mu.Lock()
				if err == nil {
					let++
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	require.Equal(t, 3, let)
}

// So it does where a function counts, of which the text of the condition says nothing.
func TestRace_APrincipalsLimitInAFunction(t *testing.T) {
	admin, first, second := server.Admin(t), server.Conn(t, "ann"), server.Conn(t, "ann")
	servertest.Exec(t, admin, `CREATE FUNCTION public.within_limit(who text) RETURNS boolean LANGUAGE sql STABLE AS $$SELECT aidb.principal_event_count($1, 'refund_order') < 1$$;
		SELECT aidb.create_policy('hidden', ARRAY[aidb.transition('start', 'refund_order', NULL, 'public.within_limit(principal)')])`)
	one, two := servertest.Value(t, first, "SELECT aidb.start_policy_session('hidden', 'customer 11')"),
		servertest.Value(t, second, "SELECT aidb.start_policy_session('hidden', 'customer 11')")
	servertest.Exec(t, first, "BEGIN")
	allow(t, first, one, "refund_order")
	servertest.Exec(t, second, "SET lock_timeout = '100ms'")
	_, err := authorize(t, second, two, "refund_order")
	require.Equal(t, "55P03", servertest.State(err), "it waits for the first one to end")
	servertest.Exec(t, first, "COMMIT")
	refuse(t, second, "is false", two, "refund_order")
}

// Who holds a transaction of one snapshot open neither uses up a limit anew nor keeps a rule that has been taken away.
func TestRace_AnOldSnapshot(t *testing.T) {
	admin, ann, other := server.Admin(t), server.Conn(t, "ann"), server.Conn(t, "ann")
	servertest.Exec(t, admin, `SELECT aidb.create_policy('snapshot', ARRAY[aidb.transition('start', 'look', NULL),
		aidb.transition('start', 'refund_order', NULL, 'aidb.principal_event_count(principal, ''refund_order'') < 1
			AND aidb.principal_event_sum(principal, ''refund_order'', ''amount'', ''1 hour'') < 1')])`)
	for _, level := range []string{"REPEATABLE READ", "SERIALIZABLE"} {
		first, second := servertest.Value(t, ann, "SELECT aidb.start_policy_session('snapshot', $1)", level),
			servertest.Value(t, other, "SELECT aidb.start_policy_session('snapshot', $1)", level)
		servertest.Exec(t, ann, "BEGIN ISOLATION LEVEL "+level+"; SELECT")
		allow(t, other, second, "refund_order", `{"amount": 1}`)
		refuse(t, ann, "is false", first, "refund_order", `{"amount": 1}`)
		servertest.Exec(t, ann, "ROLLBACK")

		servertest.Exec(t, ann, "BEGIN ISOLATION LEVEL "+level+"; SELECT")
		servertest.Exec(t, admin, "SELECT aidb.remove_transition('snapshot', 'start', 'look')")
		refuse(t, ann, "DENY: look", first, "look")
		servertest.Exec(t, ann, "ROLLBACK")
		servertest.Exec(t, admin, "SELECT aidb.add_transition('snapshot', 'start', 'look', NULL)")
	}
}

// Whoever waits for a session waits as the caller says.
func TestGuard_HonoursLockTimeout(t *testing.T) {
	admin := server.Admin(t)
	servertest.Exec(t, admin, "SELECT aidb.create_policy('wait', "+orders+")")
	one, two := server.Conn(t, "ann"), server.Conn(t, "ann", "lock_timeout=50ms")
	id := session(t, one, "wait")
	tx, err := one.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "SELECT aidb.authorize_tool_call($1, 'lookup_order')", id)
	require.NoError(t, err)
	_, err = authorize(t, two, id, "lookup_order")
	require.Equal(t, "55P03", servertest.State(err))
	require.NoError(t, tx.Rollback(t.Context()))
	allow(t, two, id, "lookup_order")
}

// A server process that dies between the guard and the effect leaves neither.
func TestCrash_BetweenGuardAndEffect(t *testing.T) {
	s := servertest.Start(t, cluster.Options{})
	admin := s.Admin(t)
	servertest.Exec(t, admin, "SELECT aidb.create_policy('crash', "+orders+"); CREATE TABLE public.crash (n int); GRANT ALL ON public.crash TO ann; "+
		"SELECT aidb.create_sql_tool('refund_order', '', 'INSERT INTO public.crash SELECT 1 FROM pg_sleep(60)', '[]', read_only => false)")
	ann := s.Conn(t, "ann")
	id := servertest.Value(t, ann, "SELECT aidb.start_policy_session('crash')")
	_, err := ann.Exec(t.Context(), "SELECT aidb.authorize_tool_call($1, 'lookup_order')", id)
	require.NoError(t, err)

	tx, err := ann.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "SELECT aidb.authorize_tool_call($1, 'refund_order')", id)
	require.NoError(t, err)
	kill(t, s, int(ann.PgConn().PID()))
	_, err = tx.Exec(t.Context(), "INSERT INTO public.crash VALUES (1)")
	require.Error(t, err)
	admin = again(t, s)
	require.Equal(t, "1 order_loaded", servertest.Value(t, admin, `SELECT count(*) || ' ' || max(s.state) FROM aidb.session_events e JOIN aidb.policy_sessions s ON s.id = e.session_id`))
	require.Equal(t, "0", servertest.Value(t, admin, "SELECT count(*) FROM public.crash"))

	// The same in an agent, in the middle of its tool.
	ann = s.Conn(t, "ann")
	s.Agent(t, ann, "crash", []string{"refund_order"}, fakemodel.Call("refund_order", map[string]any{}), fakemodel.Say("done"))
	servertest.Exec(t, admin, "SELECT aidb.add_transition('crash', 'start', 'refund_order', 'refunded')")
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('crash', policy => 'crash')")
	ended := make(chan error, 1)
	go func() {
		_, err := servertest.Ask(t.Context(), ann, "crash", "go")
		ended <- err
	}()
	require.Eventually(t, func() bool {
		return servertest.Value(t, admin, "SELECT count(*) FROM pg_stat_activity WHERE pid = "+strconv.Itoa(int(ann.PgConn().PID()))+" AND wait_event = 'PgSleep'") == "1"
	}, time.Minute, 10*time.Millisecond)
	kill(t, s, int(ann.PgConn().PID()))
	require.Error(t, <-ended)
	admin = again(t, s)
	require.Equal(t, "1 1 0", servertest.Value(t, admin, `SELECT (SELECT count(*) FROM aidb.session_events) || ' ' || (SELECT count(*) FROM aidb.policy_sessions) || ' ' || (SELECT count(*) FROM public.crash)`))
}

func kill(t *testing.T, s *servertest.Server, pid int) {
	t.Helper()
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
}

// again is a connection to the server after its recovery.
func again(t *testing.T, s *servertest.Server) *pgx.Conn {
	t.Helper()
	var conn *pgx.Conn
	require.Eventually(t, func() bool {
		c, err := s.Connect(t.Context(), "postgres", servertest.Database)
		conn = c
		return err == nil
	}, time.Minute, 20*time.Millisecond)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}
