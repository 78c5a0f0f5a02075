package agent

// Quotas: what a caller may use in a day, whatever it is used for. They are compared before each request to a model, so
// that nothing that asks one (an agent, its delegates, a summary, generate_text) goes by them.

import (
	"context"
	"time"

	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
)

// Quota is a limit that holds for a call, and what others used of it today. Nil: no limit.
type Quota struct {
	Of     string // whose it is, for the error
	Each   bool   // of one principal; otherwise of all principals of the caller
	Tokens *int64
	Cost   *int64
	Calls  *int64
	Used   Usage
}

// Usage is what was used.
type Usage struct {
	Calls int64
	Used
}

func (u *Usage) add(more Usage) {
	u.Calls = plus(u.Calls, more.Calls)
	u.Used.add(more.Used)
}

// Tally is what this process used today, committed or not. The zero value is ready for use; it is not for concurrent use.
type Tally struct {
	day  string
	used map[[2]string]Usage // by caller and principal
}

// Of returns what a caller used: behind the principal, or behind all of them.
func (t *Tally) Of(caller, principal string, each bool) (all Usage) {
	for key, u := range t.used {
		if key[0] == caller && (!each || key[1] == principal) {
			all.add(u)
		}
	}
	return all
}

// maxTally bounds the people that a process counts for; it begins anew beyond it.
const maxTally = 10000

// Add counts; a new day begins at nothing.
func (t *Tally) Add(at time.Time, caller, principal string, u Usage) {
	t.Turn(at)
	key := [2]string{caller, principal}
	sum := t.used[key]
	sum.add(u)
	if len(t.used) >= maxTally {
		clear(t.used)
	}
	t.used[key] = sum
}

// Turn begins a new day where there is one.
func (t *Tally) Turn(at time.Time) {
	if day := at.UTC().Format(time.DateOnly); day != t.day || t.used == nil {
		t.day, t.used = day, map[[2]string]Usage{}
	}
}

// Meter counts what a call uses, and stops it at its quotas.
type Meter struct {
	Quotas []Quota
	Used   Usage
}

// Check returns the error of the first quota that is used up.
func (m *Meter) Check() error {
	for i := range m.Quotas {
		q := &m.Quotas[i]
		used := q.Used
		used.add(m.Used)
		switch {
		case q.Tokens != nil && used.Tokens >= *q.Tokens:
			return fault.New(fault.BudgetSpent, "quota exceeded: %s used %d of %d tokens today", q.Of, used.Tokens, *q.Tokens)
		case q.Cost != nil && used.Cost >= *q.Cost:
			return fault.New(fault.BudgetSpent, "quota exceeded: %s used %s of %s today", q.Of, conversation.Money(used.Cost), conversation.Money(*q.Cost))
		case q.Calls != nil && used.Calls > *q.Calls:
			return fault.New(fault.BudgetSpent, "quota exceeded: %s made %d of %d calls today", q.Of, q.Used.Calls, *q.Calls)
		}
	}
	return nil
}

// Model returns the model with the meter before it.
func (m *Meter) Model(model Model, name string, price *Price) Model {
	return metered{Model: model, meter: m, name: name, price: price}
}

type metered struct {
	Model
	meter *Meter
	name  string
	price *Price
}

// Unmetered is the model behind a meter, with whatever else it can do.
func Unmetered(m Model) Model {
	if behind, ok := m.(metered); ok {
		return behind.Model
	}
	return m
}

// Complete implements Model.
func (m metered) Complete(ctx context.Context, r Request) (Reply, error) {
	if m.meter.Used.Calls == 0 {
		m.meter.Used.Calls = 1
	}
	if err := m.meter.Check(); err != nil {
		return Reply{}, err
	}
	for i := range m.meter.Quotas {
		if m.meter.Quotas[i].Cost != nil && m.price == nil {
			return Reply{}, fault.New(fault.InvalidArgument, "the cost of %s is limited, but model %s has no price",
				m.meter.Quotas[i].Of, fault.Name(m.name)).WithHint(`Give the model's config a "price".`)
		}
	}
	reply, err := m.Model.Complete(ctx, r)
	if err != nil {
		return reply, err
	}
	sent := 0
	for i := range r.Messages {
		sent += r.Messages[i].Size()
	}
	for i := range r.Tools {
		sent += len(r.Tools[i].Name) + len(r.Tools[i].Description) + len(r.Tools[i].Parameters)
	}
	var s spent
	s.add(reply.Usage, m.price, sent, conversation.Message{Content: reply.Content, ToolCalls: reply.ToolCalls}.Size())
	m.meter.Used.Used.add(s.own())
	return reply, nil
}
