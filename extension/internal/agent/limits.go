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

// Limits are an agent's budgets. Zero means that there is none; Timeout always is one. Costs are in units of account
// (conversation.Units). Those of the tree are for the run and all that is delegated in it.
type Limits struct {
	Input      int64
	Output     int64
	Cost       int64
	TreeTokens int64
	TreeCost   int64

	Rounds   int
	Timeout  time.Duration
	Strategy string
}

// limitsOf reads an agent's budgets and fills in the defaults.
func limitsOf(d *Definition) Limits {
	l := Limits{
		Input:  int64(positive(d.InputTokenBudget)),
		Output: int64(positive(d.OutputTokenBudget)),
		Cost:   d.CostBudget, TreeTokens: int64(positive(d.TreeTokenBudget)), TreeCost: d.TreeCostBudget,
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

// over returns the first budget that is exceeded at the start of a round, nil when none is.
func (s *State) over(at time.Time) *fault.Error {
	l, used, all := &s.cfg.Limits, &s.spent, s.spent.all()
	switch {
	case l.Rounds > 0 && s.round >= l.Rounds:
		return fault.New(fault.BudgetSpent, "iteration budget exceeded: %d of %d rounds used", s.round, l.Rounds)
	case l.Input > 0 && used.input > l.Input:
		return fault.New(fault.BudgetSpent, "input token budget exceeded: %d of %d tokens used", used.input, l.Input)
	case l.Output > 0 && used.output > l.Output:
		return fault.New(fault.BudgetSpent, "output token budget exceeded: %d of %d tokens used", used.output, l.Output)
	case l.Cost > 0 && used.cost > l.Cost:
		return fault.New(fault.BudgetSpent, "cost budget exceeded: %s of %s used", conversation.Money(used.cost), conversation.Money(l.Cost))
	case l.TreeTokens > 0 && all.Tokens > l.TreeTokens:
		return fault.New(fault.BudgetSpent, "tree token budget exceeded: %d of %d tokens used, delegates included", all.Tokens, l.TreeTokens)
	case l.TreeCost > 0 && all.Cost > l.TreeCost:
		return fault.New(fault.BudgetSpent, "tree cost budget exceeded: %s of %s used, delegates included",
			conversation.Money(all.Cost), conversation.Money(l.TreeCost))
	case s.late(at):
		return s.timeSpent()
	}
	return nil
}

// outputLeft is how many tokens a reply may have before it exceeds a budget, and one more, with which it does; 0: any number.
// What the request itself costs is not known yet, so it is a bound from above.
func (s *State) outputLeft() int64 {
	left := int64(maxCount)
	tokens := func(limit, used int64) {
		left = min(left, max(0, limit-used))
	}
	cost := func(limit, used int64) {
		if p := s.cfg.Price; p != nil && p.Output > 0 {
			tokens(max(0, limit-used)/p.Output, 0)
		}
	}
	all := s.spent.all()
	for _, a := range s.cfg.Allowances {
		if a.Tokens != nil {
			tokens(*a.Tokens, all.Tokens)
		}
		if a.Cost != nil {
			cost(*a.Cost, all.Cost)
		}
	}
	// The rounds that are granted beyond a budget are not bounded by it, nor is a closing report.
	if l := &s.cfg.Limits; l.Strategy != StrategyIgnore && s.overBudget == nil && s.closing == nil {
		if l.Output > 0 {
			tokens(l.Output, s.spent.output)
		}
		if l.Cost > 0 {
			cost(l.Cost, s.spent.cost)
		}
		if l.TreeTokens > 0 {
			tokens(l.TreeTokens, all.Tokens)
		}
		if l.TreeCost > 0 {
			cost(l.TreeCost, all.Cost)
		}
	}
	if left == maxCount {
		return 0
	}
	return left + 1
}

// cutByBudget reports whether a reply that was cut off ended where a budget did: then it is not the answer, but what the
// budget's strategy is for.
func (s *State) cutByBudget(r Reply) bool {
	if r.Finish != FinishLength || s.bounded == 0 {
		return false
	}
	l, all := &s.cfg.Limits, s.spent.all()
	own := l.Strategy != StrategyIgnore && s.overBudget == nil && s.closing == nil
	return s.exhausted() != nil || own && (l.Output > 0 && s.spent.output > l.Output || l.Cost > 0 && s.spent.cost > l.Cost ||
		l.TreeTokens > 0 && all.Tokens > l.TreeTokens || l.TreeCost > 0 && all.Cost > l.TreeCost)
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
