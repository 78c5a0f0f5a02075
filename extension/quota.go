package main

import (
	"context"
	"time"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/spi"
)

// meter is the meter of a call, made when a model is opened while there are quotas. What is used counts at once, for all
// sessions and whatever becomes of the transaction (c_shim/spent.c); what that count does not know, because it is from before
// the server's start, is in the table.
func (m *models) meter(ctx context.Context) (*agent.Meter, error) {
	if m.metered != nil {
		return m.metered, nil
	}
	who := m.who
	all, behind, err := m.spend(ctx, agent.Usage{})
	if err != nil {
		return nil, err
	}
	quotas, err := m.store.Quotas(ctx, who.Caller, who.Principal, all.Since, behind.Since)
	if err != nil {
		return nil, err
	}
	meter := &agent.Meter{Quotas: quotas}
	before := make([]agent.Usage, len(quotas))
	for i := range quotas {
		before[i] = quotas[i].Used
	}
	meter.Share = func(ctx context.Context, u agent.Usage) error {
		all, behind, err := m.spend(ctx, u)
		if err != nil {
			return err
		}
		for i := range meter.Quotas {
			q, now := &meter.Quotas[i], all
			if q.Each {
				now = behind
			}
			q.Used = before[i]
			q.Used.Calls += now.Calls
			q.Used.Tokens += now.Tokens
			q.Used.Cost += now.Cost
		}
		return nil
	}
	m.metered = meter
	return meter, nil
}

func (m *models) spend(ctx context.Context, u agent.Usage) (all, behind spi.Spending, err error) {
	day := time.Now().Unix() / (24 * 60 * 60)
	return m.host.Spend(ctx, m.who.Caller, m.who.Principal, day, u.Calls, u.Tokens, u.Cost)
}

// account writes down what the call used, if anybody wants to know.
func (p *parts) account(ctx context.Context, write bool) error {
	meter := p.models.metered
	if meter == nil || meter.Used == (agent.Usage{}) {
		return nil
	}
	used := meter.Used
	meter.Used = agent.Usage{}
	if !write || p.start.InRecovery || p.start.ReadOnly {
		return nil
	}
	return p.store.WriteUsage(ctx, p.start.Caller, p.start.Principal, used)
}
