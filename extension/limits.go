package main

import (
	"context"
	"math/rand/v2"
	"time"

	"aidb/extension/internal/fault"
	"aidb/extension/internal/mcp"
	"aidb/extension/internal/spi"
	"aidb/extension/internal/wire"
)

// gate implements wire.Gate with the server's shared table of turns.
type gate struct {
	host       spi.Turns
	kind, name string // what it is before, for people
	// settled waits until what was decided so far is on record, before something leaves the server; nil: nobody waits for that.
	settled func(context.Context) error
}

// Needed implements wire.Gate.
func (g gate) Needed(l wire.Limits) bool { return g.settled != nil || l != (wire.Limits{}) }

// What is waited for ends at some moment that nobody announces, so it is asked for again and again, less and less often.
const (
	firstPoll = 5 * time.Millisecond
	lastPoll  = 200 * time.Millisecond
)

// Enter implements wire.Gate. Waiting for a minute to pass, or for a pause to end, is refused at once where the run has not
// so much time left.
func (g gate) Enter(ctx context.Context, key string, l wire.Limits, tokens int64) (func(int64), error) {
	if g.settled != nil {
		if err := g.settled(ctx); err != nil {
			return nil, err
		}
		if l == (wire.Limits{}) {
			return func(int64) {}, nil
		}
	}
	for poll := firstPoll; ; poll = min(2*poll, lastPoll) {
		wait, why, err := g.host.Admit(ctx, spi.Turn{
			Key: key, Kind: g.kind, Name: g.name, Concurrent: l.Concurrent, Requests: l.Requests, Limit: l.Tokens, Tokens: tokens,
		})
		if err != nil {
			return nil, err
		}
		if wait == 0 {
			return func(used int64) { g.host.Leave(key, tokens, used) }, nil
		}
		deadline, bounded := ctx.Deadline()
		if why != "concurrent" {
			if bounded && wait > time.Until(deadline) {
				g.host.Leave(key, spi.NeverAdmitted, 0)
				return nil, tooLate(why, wait)
			}
		} else {
			wait = poll
		}
		// Some chance keeps those who wait from coming back together.
		wait = min(wait, time.Second)
		timer := time.NewTimer(wait/2 + rand.N(wait/2+1))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			g.host.Leave(key, spi.NeverAdmitted, 0)
			return nil, ctx.Err()
		}
	}
}

func tooLate(why string, wait time.Duration) error {
	hint := "The next turn would be in %s, which is longer than this run may wait."
	if why == "paused" {
		return fault.New(fault.ModelRateLimited, "the model's provider limits the rate of requests and has asked another session to wait").
			WithHint(hint, wait.Round(time.Second))
	}
	return fault.New(fault.ModelRateLimited, "the model's limit of requests or tokens a minute is reached").
		WithHint(hint, wait.Round(time.Second))
}

// Pause implements wire.Gate.
func (g gate) Pause(key string, d time.Duration) { g.host.Pause(key, d) }

// Take implements mcp.Turns: the same table, with no other limit.
func (g gate) Take(ctx context.Context, key string, limit int) (func(), error) {
	leave, err := g.Enter(ctx, key, wire.Limits{Concurrent: limit}, 0)
	if err != nil {
		return nil, err
	}
	return func() { leave(0) }, nil
}

var (
	_ wire.Gate = gate{}
	_ mcp.Turns = gate{}
)
