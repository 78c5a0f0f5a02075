package main

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"aidb/extension/internal/fault"
	"aidb/extension/internal/safego"
	"aidb/extension/internal/spi"
)

// Faults that the tests of the seam ask for (aidb_internal.test_go, superusers only, with aidb.test_hooks on): the
// promises about panics and about signals under load can be shown only from inside.

var busy atomic.Int64 // generation of the busy goroutines; a new one stops the old

func (w *wiring) testHook(_ context.Context, _ spi.Host, s spi.Start) (int, [][]*string, error) {
	answer := "ok"
	switch stringArg(s, 0) {
	case "panic":
		var nothing *wiring
		nothing.limits.Rows++ // a nil dereference: the kind of fault that real code has
	case "busy":
		generation := busy.Add(1)
		for range 3 {
			safego.Go(&w.group, "busy", func() { churn(generation) })
		}
	case "stop":
		busy.Add(1)
	case "gc":
		runtime.GC()
	default:
		return 0, nil, fault.New(fault.InvalidArgument, "no such test hook")
	}
	return 1, [][]*string{{&answer}}, nil
}

// churn allocates and drops memory, so that the runtime collects all the time, for at most a minute.
func churn(generation int64) {
	var keep [64][]byte
	for end := time.Now().Add(time.Minute); busy.Load() == generation && time.Now().Before(end); {
		for i := range keep {
			keep[i] = make([]byte, 16<<10)
		}
		runtime.Gosched()
	}
}
