// Package main is the Go half of aidb: a C shared library that the extension's C half loads into a backend after
// the fork. It exports no Go function: the main thread talks to it through the queues of c_shim/bridge.h only.
//
// This file keeps the library alive: it reads messages and applies settings. What the functions do is wired in
// wire.go.
package main

import (
	"runtime"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"aidb/extension/internal/safego"
	"aidb/extension/internal/seam"
	"aidb/extension/internal/spi"
)

func main() {} // a c-shared library needs one; it is never called

// init starts the dispatcher. Nothing can call into the library to start it: that is the point of the seam.
func init() {
	// One backend has one run at a time. With one processor the runtime wakes no second thread to look for work that
	// is not there: a fifth less CPU for a conversation, and no caches for processors that never run.
	runtime.GOMAXPROCS(1)
	// The heap is small; collecting it half as often costs a few megabytes until the session is idle.
	debug.SetGCPercent(200)
	l := &library{ended: make(chan struct{}, 1), more: make(chan func())}
	l.wiring = newWiring()
	l.runs = spi.NewRuns(sendRequest, l.spawn, l.wiring.handle, l.configure)
	safego.Go(&l.group, "dispatcher", l.dispatch)
	safego.Go(&l.group, "memory", l.giveMemoryBack)
}

type library struct {
	group  safego.Group
	wiring *wiring
	runs   *spi.Runs
	active atomic.Int64
	more   chan func() // work for a goroutine that is idle
	ended  chan struct{}
}

// spawn runs f in a goroutine of its own: in one that has ended its work, if there is one, because its stack has grown to
// what a run needs already.
func (l *library) spawn(name string, f func()) {
	l.active.Add(1)
	work := func() {
		defer l.finished()
		f()
	}
	select {
	case l.more <- work:
	default:
		safego.Go(&l.group, name, func() {
			for {
				work()
				work = <-l.more
			}
		})
	}
}

func (l *library) finished() {
	l.active.Add(-1)
	select {
	case l.ended <- struct{}{}:
	default:
	}
}

// dispatch hands out the messages of the main thread for the life of the process.
func (l *library) dispatch() {
	var ready seam.Writer
	for function, statement := range prefetch {
		ready.Text(function)
		ready.Text(statement)
	}
	_ = sendRequest(seam.ReqReady, 0, 0, ready.Body()) // without it the main thread reports that Go did not start
	_ = onWakeUp(func() {                              // it never returns but for an eventfd that was closed
		for m, ok := nextMessage(); ok; m, ok = nextMessage() {
			// A message that cannot be handled must not end this loop: every later run would wait for ever.
			if err := safego.Call("dispatcher", func() { l.runs.Deliver(m) }); err != nil {
				_ = sendRequest(seam.ReqFail, m.Run, 0, spi.FailBody(err))
			}
		}
	})
}

// idleBeforeReturn is how long a session must have had no run before its spare memory goes back to the system.
const idleBeforeReturn = 500 * time.Millisecond

// giveMemoryBack returns what a run has left, once the session is idle: collecting after every run would cost more
// than the run.
func (l *library) giveMemoryBack() {
	for range l.ended {
		timer := time.NewTimer(idleBeforeReturn)
		for waiting := true; waiting; {
			select {
			case <-l.ended:
				timer.Reset(idleBeforeReturn)
			case <-timer.C:
				waiting = false
			}
		}
		if l.active.Load() == 0 {
			l.wiring.closeIdle()
			debug.FreeOSMemory()
			trimHeap()
		}
	}
}

// configure applies the settings that the server sends before a run.
func (l *library) configure(values map[string]string) {
	if mb, err := strconv.ParseInt(values["memory_limit_mb"], 10, 64); err == nil {
		debug.SetMemoryLimit(mb << 20)
	}
	l.wiring.configure(values)
}
