package wire

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"aidb/extension/internal/fault"
)

// Limits bound the requests to one model, from all sessions together. Zero is no limit.
type Limits struct {
	Concurrent int   // requests at a time
	Requests   int   // requests a minute
	Tokens     int64 // tokens a minute, input and output
}

// Gate makes the requests of all sessions wait for their turn.
type Gate interface {
	// Needed reports whether a request with these limits has to enter: when there are any, or for a reason of the gate's own.
	Needed(l Limits) bool
	// Enter waits until a request of about that many tokens may be sent to what key names. leave, called once, ends the
	// request; its argument is the number of tokens that were used, 0 when it is not known.
	Enter(ctx context.Context, key string, l Limits, tokens int64) (leave func(used int64), err error)
	// Pause makes everybody who is to enter wait so long.
	Pause(key string, d time.Duration)
}

// gateKey names what limits hold for: an address, a model there, and the account that pays. Nothing can be read from it.
func gateKey(url, model, auth string) string {
	sum := sha256.Sum256([]byte(url + "\x00" + model + "\x00" + auth))
	return hex.EncodeToString(sum[:16])
}

// LimitsOf makes limits of what a config says; nil is no limit. A limit that is not above zero is kept, for Check, as one
// below it.
func LimitsOf(concurrent, requests *int, tokens *int64) Limits {
	var l Limits
	if concurrent != nil {
		l.Concurrent = atLeastMinusOne(*concurrent)
	}
	if requests != nil {
		l.Requests = atLeastMinusOne(*requests)
	}
	if tokens != nil {
		l.Tokens = int64(atLeastMinusOne(int(*tokens)))
	}
	return l
}

func atLeastMinusOne(n int) int {
	if n <= 0 {
		return -1
	}
	return n
}

// ReadAtMost is how many bytes of an answer of so many tokens are read, 0 for any number: generous, as it is for servers that do
// not heed the bound they were given.
func ReadAtMost(tokens int64) int64 {
	const bytesOfLongTokens = 16
	return min(tokens, 1<<50) * bytesOfLongTokens
}

// or is the limits with those of d where there are none.
func (l Limits) or(d Limits) Limits {
	if l.Concurrent == 0 {
		l.Concurrent = d.Concurrent
	}
	if l.Requests == 0 {
		l.Requests = d.Requests
	}
	if l.Tokens == 0 {
		l.Tokens = d.Tokens
	}
	return l
}

// Check says what is wrong with limits of a config.
func (l Limits) Check() error {
	for _, n := range []struct {
		name  string
		value int64
	}{{"max_concurrent_requests", int64(l.Concurrent)}, {"requests_per_minute", int64(l.Requests)}, {"tokens_per_minute", l.Tokens}} {
		if n.value < 0 {
			return fault.New(fault.InvalidArgument, "%s must be above zero", n.name)
		}
	}
	return nil
}
