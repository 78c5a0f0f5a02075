package main

import (
	"context"
	"time"

	"aidb/extension/internal/agent"
)

// meter is the meter of a call, made when a model is opened while there are quotas.
func (m *models) meter(ctx context.Context) (*agent.Meter, error) {
	if m.metered != nil {
		return m.metered, nil
	}
	w, who := m.wiring, m.who
	quotas, err := m.store.Quotas(ctx, who.Caller, who.Principal, w.session())
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tally.Turn(time.Now())
	for i := range quotas {
		own := w.tally.Of(who.Caller, who.Principal, quotas[i].Each)
		quotas[i].Used.Calls += own.Calls
		quotas[i].Used.Tokens += own.Tokens
		quotas[i].Used.Cost += own.Cost
	}
	m.metered = &agent.Meter{Quotas: quotas}
	return m.metered, nil
}

// account notes what the call used, if anybody wants to know: in the tally of this process whatever becomes of the
// transaction, and in the table where that can be written.
func (p *parts) account(ctx context.Context, write bool) error {
	meter := p.models.metered
	if meter == nil || meter.Used == (agent.Usage{}) {
		return nil
	}
	w := p.models.wiring
	used := meter.Used
	meter.Used = agent.Usage{}
	w.mu.Lock()
	w.tally.Add(time.Now(), p.start.Caller, p.start.Principal, used)
	w.mu.Unlock()
	if !write || p.start.InRecovery || p.start.ReadOnly {
		return nil
	}
	return p.store.WriteUsage(ctx, p.start.Caller, p.start.Principal, w.session(), used)
}

// session names this session among all that there were.
func (w *wiring) session() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.about.SessionID
}
