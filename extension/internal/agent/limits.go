package agent

// Budgets and limits: how much a run may use, and when it has used too much.

import (
	"time"

	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
)

// The budget strategies, labels of the SQL type aidb.budget_strategy.
const (
	StrategyIgnore          = "ignore"
	StrategyError           = "error"
	StrategySummarize       = "summarize"
	StrategyAttemptComplete = "attempt_complete"
)

const (
	// maxRounds is the ceiling no setting lifts: the backstop against a runaway agent.
	maxRounds = 25
	// graceRounds is how many rounds attempt_complete grants after a budget is exceeded.
	graceRounds = 3
	// graceAfter is the round limit of attempt_complete when none is set: the grace rounds and the round that
	// exceeds it then fit under the ceiling.
	graceAfter = maxRounds - graceRounds - 1
	// maxUnclassified is the number of model errors without a kind that ends a run.
	maxUnclassified = 3
	// maxRepeats is the number of rounds that ask for the same with the same result that ends a run.
	maxRepeats = 3
	// maxEmpty is the number of empty answers in a row that ends a run.
	maxEmpty = 3
	// maxRepairs is how often an answer that is not of the output type is sent back.
	maxRepairs = 2
	// maxParallel bounds the tool calls of one reply; what is beyond it is not run.
	maxParallel = 64
	// maxKept bounds the tool calls of one reply that are kept at all.
	maxKept = 4 * maxParallel
	// maxListed bounds a list of tool names in an error text, in bytes.
	maxListed = 2000
	// maxClosing is how often a closing report is asked for.
	maxClosing = 2
	// closingTime is what summarize adds to the time budget for its report, at most as much again as the budget.
	closingTime = 30 * time.Second
	// defaultTimeout is the time budget of an agent that has none.
	defaultTimeout = 300 * time.Second
	// bytesPerToken is the stated rule for what a provider does not say: one token for each four bytes of text.
	bytesPerToken = 4
)

// Limits are an agent's budgets. Zero means that there is none; Timeout always is one.
type Limits struct {
	Input    int64
	Output   int64
	Rounds   int
	Timeout  time.Duration
	Strategy string
}

// limitsOf reads an agent's budgets and fills in the defaults.
func limitsOf(d *Definition) Limits {
	l := Limits{
		Input:    int64(positive(d.InputTokenBudget)),
		Output:   int64(positive(d.OutputTokenBudget)),
		Rounds:   positive(d.MaxIterations),
		Timeout:  time.Duration(positive(d.TimeoutSeconds)) * time.Second,
		Strategy: d.Strategy,
	}
	if l.Timeout == 0 {
		l.Timeout = defaultTimeout
	}
	switch l.Strategy {
	case StrategyIgnore, StrategyError, StrategySummarize:
	default:
		l.Strategy = StrategyAttemptComplete
	}
	if l.Strategy == StrategyAttemptComplete && l.Rounds == 0 {
		l.Rounds = graceAfter
	}
	return l
}

// hardDeadline reports whether the time budget cuts model and tool calls short. Under ignore nothing does.
func (l Limits) hardDeadline() bool { return l.Strategy != StrategyIgnore }

func positive(n *int) int {
	if n == nil || *n < 0 {
		return 0
	}
	return *n
}

// spent is what a run has used so far.
type spent struct {
	input, output int64
	// reported sums only what the provider said.
	reported conversation.Usage
}

// add counts one reply. A count that the provider does not give, or that cannot be, is estimated from the text, so
// that a budget holds although a server is silent or lies.
func (s *spent) add(u conversation.Usage, sentBytes, receivedBytes int) {
	in, out := u.Input, u.Output
	if in != nil && out != nil && *in == 0 && *out == 0 {
		in, out = nil, nil
	}
	s.input = plus(s.input, counted(in, sentBytes))
	s.output = plus(s.output, counted(out, receivedBytes))
	sum(&s.reported.Input, u.Input)
	sum(&s.reported.Output, u.Output)
	sum(&s.reported.Cached, u.Cached)
	sum(&s.reported.Reasoning, u.Reasoning)
}

func counted(n *int64, bytes int) int64 {
	if n == nil || *n < 0 {
		return int64((bytes + bytesPerToken - 1) / bytesPerToken)
	}
	return *n
}

func sum(total **int64, n *int64) {
	if n == nil || *n < 0 {
		return
	}
	t := *n
	if *total != nil {
		t = plus(**total, t)
	}
	*total = &t
}

// plus adds two counts and stops at the largest.
func plus(a, b int64) int64 {
	if c := a + b; c >= a {
		return c
	}
	return 1<<63 - 1
}

// over returns the first budget that is exceeded at the start of a round, nil when none is.
func (s *State) over(at time.Time) *fault.Error {
	l, used := &s.cfg.Limits, &s.spent
	switch {
	case l.Rounds > 0 && s.round >= l.Rounds:
		return fault.New(fault.BudgetSpent, "iteration budget exceeded: %d of %d rounds used", s.round, l.Rounds)
	case l.Input > 0 && used.input > l.Input:
		return fault.New(fault.BudgetSpent, "input token budget exceeded: %d of %d tokens used", used.input, l.Input)
	case l.Output > 0 && used.output > l.Output:
		return fault.New(fault.BudgetSpent, "output token budget exceeded: %d of %d tokens used", used.output, l.Output)
	case s.late(at):
		return s.timeSpent()
	}
	return nil
}

func (s *State) late(at time.Time) bool { return !at.Before(s.cfg.Deadline) }

// borrowed reports whether the time that ends first is not the run's own but that of the run it works for.
func (s *State) borrowed() bool {
	return !s.cfg.Bound.IsZero() && (!s.cfg.Limits.hardDeadline() || s.cfg.Bound.Before(s.cfg.Deadline))
}

// cut reports whether it is so late that calls are cut short.
func (s *State) cut(at time.Time) bool {
	if s.borrowed() {
		return !at.Before(s.cfg.Bound)
	}
	return s.cfg.Limits.hardDeadline() && s.late(at)
}

func (s *State) timeSpent() *fault.Error {
	return fault.New(fault.Timeout, "time budget exceeded: the call took longer than %d seconds", int64(s.cfg.Limits.Timeout/time.Second))
}

// cutShort is why calls are cut short.
func (s *State) cutShort() *fault.Error {
	if s.borrowed() {
		return fault.New(fault.Timeout, "time budget exceeded: the agent that delegated this call has no time left")
	}
	return s.timeSpent()
}
