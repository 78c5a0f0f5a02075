package pgtool

// The tool sleep: in a session a timer, in the background a task that is put aside until a time.

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/tool"
)

// Longest sleep that a tool call may ask for; the agent's time budget usually ends it before.
const maxSleep = 3600

// sleep needs no grant: it touches nothing.
func (r *Runner) sleep(ctx context.Context, arg json.RawMessage) (string, error) {
	seconds, err := sleepSeconds(arg)
	if err != nil {
		return "", err
	}
	timer := time.NewTimer(time.Duration(seconds * float64(time.Second)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return sleptFor(seconds), nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func sleepSeconds(arg json.RawMessage) (float64, error) {
	seconds, err := strconv.ParseFloat(string(arg), 64)
	if err != nil || !(seconds >= 0 && seconds <= maxSleep) {
		return 0, fault.New(fault.InvalidArgument, "argument 'seconds' must be between 0 and %d", maxSleep)
	}
	return seconds, nil
}

func sleptFor(seconds float64) string {
	return `{"slept": ` + strconv.FormatFloat(seconds, 'f', -1, 64) + `}`
}

// shortest is what a background task sleeps where it is: to be put aside and taken up again costs more.
const shortest = 50 * time.Millisecond

// rest is what a call of sleep that began at a time is now, in the background: over, or to be waited for. nil: it is to be
// made as in a session, because it is wrong, short, or has no time left.
func rest(t tool.Tool, arguments string, began, now, end time.Time) *agent.Result {
	args, err := tool.CheckArguments(t, arguments)
	if err != nil {
		return nil
	}
	seconds, err := sleepSeconds(args["seconds"])
	if err != nil {
		return nil
	}
	until := began.Add(time.Duration(seconds * float64(time.Second)))
	if began != now && !until.After(now) {
		return &agent.Result{Contents: sleptFor(seconds)}
	}
	if !end.IsZero() && end.Before(until) {
		until = end
	}
	if until.Sub(now) < shortest {
		return nil
	}
	return &agent.Result{Waits: true, Until: until}
}
