package agent

// What a run has used, and the limits that are not its agent's own: those of the run that it works for, and quotas.

import (
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
)

// Price is what a model's tokens cost, in units of account (conversation.Units) a token. Cached is for those of the input
// that the provider had seen before.
type Price struct{ Input, Output, Cached int64 }

// of is the price of a call; tokens are what was counted, cached what the provider said of them.
func (p *Price) of(input, output int64, cached *int64) *int64 {
	if p == nil {
		return nil
	}
	known := int64(0)
	if cached != nil {
		known = max(0, min(*cached, input))
	}
	n := plus(plus(times(input-known, p.Input), times(known, p.Cached)), times(output, p.Output))
	return &n
}

// Used is what a run and the runs in it used.
type Used struct{ Tokens, Cost int64 }

func (u *Used) add(more Used) {
	u.Tokens, u.Cost = plus(u.Tokens, more.Tokens), plus(u.Cost, more.Cost)
}

// Allowance is what is left to a run by somebody else. Exceeding it ends the run whatever its agent's strategy is, as
// what is used up is not the agent's.
type Allowance struct {
	Tokens, Cost *int64 // nil: no limit
	// Spent is the error of a run that has used it up.
	Spent *fault.Error
}

func (a *Allowance) spent(u Used) bool {
	return (a.Tokens != nil && u.Tokens >= *a.Tokens) || (a.Cost != nil && u.Cost >= *a.Cost)
}

// less is the allowance after something was used.
func (a Allowance) less(u Used) Allowance {
	rest := func(n *int64, used int64) *int64 {
		if n == nil {
			return nil
		}
		left := max(0, *n-used)
		return &left
	}
	a.Tokens, a.Cost = rest(a.Tokens, u.Tokens), rest(a.Cost, u.Cost)
	return a
}

// spent is what a run has used so far.
type spent struct {
	input, output, cost int64
	// below is what the runs used that this one delegated.
	below Used
	// reported sums only what the provider said.
	reported conversation.Usage
}

// add counts one reply. A count that the provider does not give, or that cannot be, is estimated from the text, so
// that a budget holds although a server is silent or lies.
func (s *spent) add(u conversation.Usage, price *Price, sentBytes, receivedBytes int) conversation.Cost {
	in, out := u.Input, u.Output
	if in != nil && out != nil && *in == 0 && *out == 0 {
		in, out = nil, nil
	}
	c := conversation.Cost{Usage: u, Input: counted(in, sentBytes), Output: counted(out, receivedBytes)}
	c.Price = price.of(c.Input, c.Output, u.Cached)
	s.input = plus(s.input, c.Input)
	s.output = plus(s.output, c.Output)
	if c.Price != nil {
		s.cost = plus(s.cost, *c.Price)
	}
	sum(&s.reported.Input, u.Input)
	sum(&s.reported.Output, u.Output)
	sum(&s.reported.Cached, u.Cached)
	sum(&s.reported.Reasoning, u.Reasoning)
	return c
}

// own is what the run itself used, all what it used with the runs below it.
func (s *spent) own() Used { return Used{Tokens: plus(s.input, s.output), Cost: s.cost} }

func (s *spent) all() Used {
	u := s.own()
	u.add(s.below)
	return u
}

// tokens is an estimate: the stated rule for what a provider does not say.
func tokens(bytes int) int64 { return int64((bytes + bytesPerToken - 1) / bytesPerToken) }

func counted(n *int64, bytes int) int64 {
	if n == nil || *n < 0 {
		return tokens(bytes)
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

const maxCount = 1<<63 - 1

// plus adds two counts and stops at the largest.
func plus(a, b int64) int64 {
	if c := a + b; c >= a {
		return c
	}
	return maxCount
}

// times multiplies two counts and stops at the largest.
func times(a, b int64) int64 {
	if a > 0 && b > maxCount/a {
		return maxCount
	}
	return a * b
}

// Limited reports whether money is limited, by the agent or by somebody else.
func (c *Config) limitsCost() bool {
	if c.Limits.Cost > 0 || c.Limits.TreeCost > 0 {
		return true
	}
	for i := range c.Allowances {
		if c.Allowances[i].Cost != nil {
			return true
		}
	}
	return false
}

// exhausted returns the error of the first allowance that is used up.
func (s *State) exhausted() *fault.Error {
	for i := range s.cfg.Allowances {
		if a := &s.cfg.Allowances[i]; a.spent(s.spent.all()) {
			return a.Spent
		}
	}
	return nil
}

// handDown is what is left to a run that this one delegates.
func (s *State) handDown() []Allowance {
	used, l := s.spent.all(), &s.cfg.Limits
	left := make([]Allowance, 0, len(s.cfg.Allowances)+1)
	for _, a := range s.cfg.Allowances {
		left = append(left, a.less(used))
	}
	if l.TreeTokens > 0 || l.TreeCost > 0 {
		a := Allowance{Spent: fault.New(fault.BudgetSpent,
			"tree budget exceeded: the budget of agent %s and all that it delegates is used up", fault.Name(s.cfg.Agent))}
		if l.TreeTokens > 0 {
			a.Tokens = &l.TreeTokens
		}
		if l.TreeCost > 0 {
			a.Cost = &l.TreeCost
		}
		left = append(left, a.less(used))
	}
	return left
}
