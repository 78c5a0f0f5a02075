package wire

import (
	"context"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Retry says how often and how soon a request is sent again. A library would do the growing delay; what is left
// is the point here: the waits that servers ask for in four different places, to the millisecond, and giving up
// at once when such a wait is longer than the run may take.
type Retry struct {
	// Tries is how many more times a request is sent after the first (0: three; negative: none).
	Tries int
	// Base is the delay before the second try (0: half a second); it doubles up to Max (0: 20 seconds).
	Base time.Duration
	Max  time.Duration
	// MaxWait bounds a wait that the server asks for when the run has no deadline (0: one minute).
	MaxWait time.Duration
}

func (r Retry) withDefaults() Retry {
	if r.Tries == 0 {
		r.Tries = 3
	}
	if r.Base <= 0 {
		r.Base = 500 * time.Millisecond
	}
	if r.Max <= 0 {
		r.Max = 20 * time.Second
	}
	if r.MaxWait <= 0 {
		r.MaxWait = time.Minute
	}
	return r
}

// delay is how long to wait after the n-th failed try, n from 1; random is in [0, 1) and spreads those who were
// turned away together. ok is false when the wait cannot end in time.
func (r Retry) delay(n int, asked time.Duration, random float64, left time.Duration) (wait time.Duration, ok bool) {
	wait = asked
	if wait <= 0 {
		wait = min(r.Base<<min(n-1, 20), r.Max)
		wait = wait/2 + time.Duration(random*float64(wait/2))
	}
	return wait, wait < left
}

// sleep waits, or ends with the context.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// headerWait reads the wait that headers ask for, 0 for none.
func headerWait(get func(string) string, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e12 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	if after := strings.TrimSpace(get("Retry-After")); after != "" {
		if w := parseWait(after); w > 0 {
			return w
		}
		if at, err := http.ParseTime(after); err == nil && at.After(now) {
			return at.Sub(now)
		}
		return 0
	}
	for _, what := range []string{"Requests", "Tokens"} {
		if get("X-Ratelimit-Remaining-"+what) == "0" {
			if w := parseWait(get("X-Ratelimit-Reset-" + what)); w > 0 {
				return w
			}
		}
	}
	// A moment, in seconds or milliseconds since 1970.
	if at, err := strconv.ParseInt(get("X-Ratelimit-Reset"), 10, 64); err == nil && at > 1e9 {
		moment := time.Unix(at, 0)
		if at > 1e11 {
			moment = time.UnixMilli(at)
		}
		return max(0, moment.Sub(now))
	}
	return 0
}

// parseWait reads "350ms", "6m0s", "1.5" (seconds); 0 when it is something else or no wait at all.
func parseWait(s string) time.Duration {
	s = strings.TrimSpace(s)
	if sec, err := strconv.ParseFloat(s, 64); err == nil && sec > 0 && sec < 1e9 {
		return time.Duration(sec * float64(time.Second))
	}
	if d, err := time.ParseDuration(s); err == nil {
		return max(0, d)
	}
	return 0
}

var waitPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:try again|retry|wait|available again|resets?)(?:\s+(?:in|after|for|at least|about|approximately|another))*[:\s]+` +
		`((?:\d+h)?(?:\d+m)?\d+(?:\.\d+)?(?:ms|s)\b|\d+(?:\.\d+)?)\s*(milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|h)?\b`)
})

// textWait finds the wait that an error text asks for, lower case; 0 for none.
func textWait(s string) time.Duration {
	m := waitPattern().FindStringSubmatch(s)
	if m == nil {
		return 0
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return parseWait(m[1])
	}
	unit := time.Duration(0)
	switch {
	case strings.HasPrefix(m[2], "ms"), strings.HasPrefix(m[2], "milli"):
		unit = time.Millisecond
	case strings.HasPrefix(m[2], "s"):
		unit = time.Second
	case strings.HasPrefix(m[2], "m"):
		unit = time.Minute
	case strings.HasPrefix(m[2], "h"):
		unit = time.Hour
	}
	if n <= 0 || n > 1e6 {
		return 0
	}
	return time.Duration(n * float64(unit))
}
