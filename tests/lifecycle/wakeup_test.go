package lifecycle

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/cluster"
	"aidb/tests/servertest"
)

// The wake-up of a backend that waits for a lock is a latch set by another process: a SIGURG that some Go thread would
// swallow if it did not have it blocked. Two backends, both with a Go runtime that allocates and collects all the time,
// pass a lock back and forth.
func TestWakeUp_OfALockWaiterWhileGoIsBusy(t *testing.T) {
	n := times(t, 2000)
	players := []*pgx.Conn{server.Admin(t), server.Admin(t)}
	watcher := server.Admin(t)
	var c tally
	_, err := players[0].Exec(t.Context(), "SELECT pg_advisory_lock(4711)")
	require.NoError(t, err)
	holder := 0
	for i := range n {
		if i%500 == 0 { // the busy goroutines stop by themselves after a minute
			for _, p := range players {
				busy(t, p)
			}
		}
		waiter := 1 - holder
		got := make(chan error, 1)
		ctx := within(t)
		go func() {
			_, err := players[waiter].Exec(ctx, "SELECT pg_advisory_lock(4711)")
			got <- err
		}()
		waiting := func() bool {
			return servertest.Value(t, watcher, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND pid = $1", pid(players[waiter])) == "1"
		}
		require.True(t, cluster.Wait(patience, waiting), "%d: the lock is not waited for", i)
		sent := time.Now()
		_, err := players[holder].Exec(ctx, "SELECT pg_advisory_unlock(4711)")
		require.NoError(t, err)
		if err := <-got; err != nil {
			c.lost("%d: %v", i, err)
			break
		}
		c.ok(time.Since(sent))
		holder = waiter
	}
	c.settle(t, server, n)
}

// A notification wakes an idle backend by another way, SIGUSR1 to its main thread.
func TestWakeUp_OfAListenerWhileGoIsBusy(t *testing.T) {
	n := times(t, 2000)
	listener, sender := server.Admin(t), server.Admin(t)
	servertest.Exec(t, listener, "LISTEN wake")

	var c tally
	for i := range n {
		if i%500 == 0 {
			busy(t, listener)
		}
		ctx := within(t)
		got := make(chan error, 1)
		go func() {
			note, err := listener.WaitForNotification(ctx)
			if err == nil && note.Payload != fmt.Sprint(i) {
				err = fmt.Errorf("got %s instead of %d", note.Payload, i)
			}
			got <- err
		}()
		sent := time.Now()
		_, err := sender.Exec(ctx, "SELECT pg_notify('wake', $1)", fmt.Sprint(i))
		require.NoError(t, err)
		if err := <-got; err != nil {
			c.lost("%d: %v", i, err)
			break
		}
		c.ok(time.Since(sent))
	}
	c.settle(t, server, n)
}
