package agent

// Quotas: what a caller may use in a day, whatever it is used for. They are compared before each request to a model, so
// that nothing that asks one (an agent, its delegates, a summary, generate_text) goes by them.

import (
	"context"

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

// Meter counts what a call uses, and stops it at its quotas.
type Meter struct {
	Quotas []Quota
	// Used is what the call used.
	Used Usage
	// Share adds to the count that all sessions share, and brings Used of the quotas up to date with it: that then has what this
	// call used, too. nil: the call counts for itself.
	Share func(ctx context.Context, u Usage) error
}

// count notes what the call uses.
func (m *Meter) count(ctx context.Context, u Usage) error {
	m.Used.add(u)
	if m.Share == nil {
		return nil
	}
	return m.Share(ctx, u)
}

// Check returns the error of the first quota that is used up.
func (m *Meter) Check() error {
	for i := range m.Quotas {
		q := &m.Quotas[i]
		used := q.Used
		if m.Share == nil {
			used.add(m.Used)
		}
		switch {
		case q.Tokens != nil && used.Tokens >= *q.Tokens:
			return fault.New(fault.BudgetSpent, "quota exceeded: %s used %d of %d tokens today", q.Of, used.Tokens, *q.Tokens)
		case q.Cost != nil && used.Cost >= *q.Cost:
			return fault.New(fault.BudgetSpent, "quota exceeded: %s used %s of %s today", q.Of, conversation.Money(used.Cost), conversation.Money(*q.Cost))
		case q.Calls != nil && used.Calls > *q.Calls:
			return fault.New(fault.BudgetSpent, "quota exceeded: %s made %d of %d calls today", q.Of, used.Calls-m.Used.Calls, *q.Calls)
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
	for i := range m.meter.Quotas {
		if m.meter.Quotas[i].Cost != nil && m.price == nil {
			return Reply{}, fault.New(fault.InvalidArgument, "the cost of %s is limited, but model %s has no price",
				m.meter.Quotas[i].Of, fault.Name(m.name)).WithHint(`Give the model's config a "price".`)
		}
	}
	// Counted before it is looked at, so that of two at the same time only one is the last.
	begins := Usage{Calls: 1 - m.meter.Used.Calls}
	if err := m.meter.count(ctx, begins); err != nil {
		return Reply{}, err
	}
	if err := m.meter.Check(); err != nil {
		if begins.Calls > 0 { // a call that is refused is none
			m.meter.Used.Calls = 0
			if m.meter.Share != nil {
				if gone := m.meter.Share(ctx, Usage{Calls: -1}); gone != nil {
					return Reply{}, gone
				}
			}
		}
		return Reply{}, err
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
	return reply, m.meter.count(ctx, Usage{Used: s.own()})
}
