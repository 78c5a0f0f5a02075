package agent

// The guard against a model that turns in circles: it makes the same calls again although it has seen what they give.

import (
	"strings"

	"aidb/extension/internal/conversation"
)

// seen is one call with its result. Results are shared with the history, so a key costs no copy.
type seen struct {
	name, arguments, result string
	failed                  bool
}

// guard counts, for each call of the last round, how many rounds in a row asked for it and got the same result.
// Only a round that brings nothing new counts as a circle: a call repeated beside a new one is progress. Calls
// repeated within one reply count once, as their author had not seen a result yet.
type guard struct {
	last, now map[seen]int
}

// decisionMark begins the id of a decision record at the end of a refusal's text. Each refusal has its own, and is
// the same refusal all the same.
const decisionMark = " [decision_id="

func (g *guard) add(c conversation.ToolCall, result string, failed bool) {
	k := seen{name: c.Name, arguments: c.Arguments, result: result, failed: failed}
	if failed {
		k.result, _, _ = strings.Cut(result, decisionMark)
	}
	if g.now == nil {
		g.now = make(map[seen]int, 4)
	}
	g.now[k] = g.last[k] + 1
}

// verdict is what the guard finds at the end of a round.
type verdict int

const (
	goOn verdict = iota
	// circleOfSuccess: the same calls succeeded identically; the model has what it can get.
	circleOfSuccess
	// circleOfFailure: the same calls failed identically; trying again does not help.
	circleOfFailure
)

// judge ends a round.
func (g *guard) judge() verdict {
	v := circleOfSuccess
	if len(g.now) == 0 {
		v = goOn
	}
	for k, n := range g.now {
		if n < maxRepeats {
			v = goOn
			break
		}
		if k.failed {
			v = circleOfFailure
		}
	}
	g.last, g.now = g.now, nil
	return v
}
