package main

import (
	"context"
	"encoding/json"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
)

// maxFallbacks bounds the list in a config.
const maxFallbacks = 5

// withFallback returns a model that asks others where it fails itself, as its config names them; opened itself otherwise.
// They are opened with it: once a run is under way there may be no transaction to look them up in.
func (m *models) withFallback(ctx context.Context, ref agent.ModelRef, opened agent.Model) (agent.Model, error) {
	var c struct {
		Fallback []string `json:"fallback"`
	}
	if json.Unmarshal(ref.Config, &c) != nil || len(c.Fallback) == 0 {
		return opened, nil
	}
	f := &fallback{models: []agent.Model{opened}}
	for _, name := range c.Fallback[:min(len(c.Fallback), maxFallbacks)] {
		other, err := m.store.Model(ctx, name)
		if err == nil {
			var next agent.Model
			if next, err = m.openRecorded(ctx, other); err == nil {
				f.models = append(f.models, next)
				continue
			}
		}
		if fault.Engine(err) {
			return nil, err
		}
		return nil, fault.Wrap(err, fault.KindOf(err), "fallback of model %s: %s", fault.Name(ref.Name), err)
	}
	return f, nil
}

// fallback is a model with others behind it. Who has answered goes on with the run: what a provider wants back with the
// next request only it understands.
type fallback struct{ models []agent.Model }

// Complete implements agent.Model.
func (f *fallback) Complete(ctx context.Context, r agent.Request) (agent.Reply, error) {
	var before []conversation.Retry
	for {
		reply, err := f.models[0].Complete(ctx, r)
		if err == nil {
			reply.Retries = append(before, reply.Retries...)
			return reply, nil
		}
		if len(f.models) == 1 || ctx.Err() != nil ||
			!fault.Is(err, fault.ModelUnavailable, fault.ModelRateLimited, fault.ModelQuota, fault.ModelAuth, fault.ModelProtocol) {
			return agent.Reply{}, err
		}
		before = append(before, conversation.Retry{Error: err.Error()})
		f.models = f.models[1:]
	}
}

// Validate finds out whether the first can be reached.
func (f *fallback) Validate(ctx context.Context) error {
	if v, ok := f.models[0].(interface{ Validate(context.Context) error }); ok {
		return v.Validate(ctx)
	}
	return nil
}
