package main

import (
	"context"
	"time"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/decision"
	"aidb/extension/internal/pgstore"
	"aidb/extension/internal/pgtool"
	"aidb/extension/internal/spi"
)

// parts are the adapters of one call.
type parts struct {
	host   spi.Host
	start  spi.Start
	store  *pgstore.Store
	models *models
	runner *pgtool.Runner
	remote *remote
	trail  *decision.Trail
	began  time.Time
	// durable: decisions are handed over as they are made, and unkept is why one could not be.
	durable bool
	unkept  error
}

// record writes the decisions that no journal has written. Where nothing can be written, in a read-only transaction
// or on a standby, they go to the server's log.
func (p *parts) record(ctx context.Context) error {
	if p.unkept != nil {
		return p.unkept
	}
	if !p.start.InRecovery && !p.start.ReadOnly {
		return p.store.WriteDecisions(ctx, p.trail)
	}
	p.log()
	return nil
}

// log puts the decisions that were not written into the server's log. They go there, too, where an error is raised: what
// was written would go with the statement.
func (p *parts) log() {
	for _, r := range p.trail.Take() {
		line := r.Line()
		if p.durable {
			line = r.JSON()
		}
		p.host.Notice("log", "aidb decision: "+line, "")
	}
}

func (w *wiring) parts(host spi.Host, s spi.Start) (*parts, error) {
	limits, err := w.current()
	if err != nil {
		return nil, err
	}
	store := pgstore.New(host, &w.natives)
	store.Redactions = w.redactWith
	if s.Prefetched != nil {
		store.Prefetched(stringArg(s, 0), *s.Prefetched)
	}
	trail := &decision.Trail{
		NewID: agent.UUIDv7{}.New, Redact: w.redact,
		Base: decision.Record{Principal: s.Principal, Caller: s.Caller, SessionUser: s.SessionUser, Role: s.Caller},
	}
	m := &models{wiring: w, host: host, store: store, trail: trail, scripts: w.dummy, who: s}
	outside := &remote{wiring: w, host: host, store: store, start: s, limits: limits}
	p := &parts{
		host: host, start: s, store: store, models: m, remote: outside, trail: trail, began: time.Now(),
		runner: &pgtool.Runner{Host: host, Catalog: store, Models: m, Remote: outside, Limits: limits, Decisions: trail},
	}
	w.mu.Lock()
	p.durable = w.durable
	w.mu.Unlock()
	// a standby has no worker, and a background task is one: each of its steps commits on its own
	if to, ok := host.(spi.Auditor); ok && p.durable {
		if !s.InRecovery {
			settled := func(ctx context.Context) error {
				err := to.Settled(ctx)
				if err != nil && p.unkept == nil {
					p.unkept = err
				}
				return err
			}
			m.settled, outside.settled = settled, settled
		}
		trail.Made = func() {
			if s.InRecovery {
				p.log()
			} else if err := store.HandOver(context.Background(), trail, to); err != nil && p.unkept == nil {
				p.unkept = err
			}
		}
	}
	return p, nil
}
