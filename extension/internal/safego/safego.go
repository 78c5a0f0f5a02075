// Package safego starts goroutines. It is the only place in the tree with a go statement (a test says so): a panic in
// a goroutine of the library would end the whole backend process, and a goroutine that nobody waits for would
// outlive the call, the transaction or the library's user.
//
// So every goroutine has an owner, a Group, that waits for it and gets its panic as an error.
package safego

import (
	"fmt"
	"runtime/debug"
	"sync"

	"aidb/extension/internal/fault"
)

// Group owns goroutines. The zero value is ready for use; it must not be copied.
type Group struct {
	wait sync.WaitGroup

	mu  sync.Mutex
	err error
}

// Go runs f in a goroutine of the owner's. The name says in an error text what it was.
func Go(owner *Group, name string, f func()) {
	owner.wait.Add(1)
	go func() {
		defer owner.wait.Done()
		catch(name, f, owner.fail)
	}()
}

// Wait waits until every goroutine of the group has ended and returns the first panic among them, as an error.
func (g *Group) Wait() error {
	g.wait.Wait()
	return g.Err()
}

// Err returns the first panic so far, without waiting.
func (g *Group) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

func (g *Group) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil {
		g.err = err
	}
}

// Call runs f here and returns its panic, if any, as an error of kind Internal. The stack is in the detail, which is
// for the server's log.
func Call(name string, f func()) (err error) {
	catch(name, f, func(e error) { err = e })
	return err
}

// catch runs f and hands what ended it early to sink.
func catch(name string, f func(), sink func(error)) {
	returned := false
	defer func() {
		if returned {
			return
		}
		// A nil value without a panic is runtime.Goexit: the goroutine ends all the same, and the owner should know.
		text := "goroutine ended itself"
		if p := recover(); p != nil {
			text = fmt.Sprint(p)
		}
		sink(fault.New(fault.Internal, "internal error in %s: %s", name, fault.Cut(text, 500)).
			WithDetail("%s", debug.Stack()))
	}()
	f()
	returned = true
}
