package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/decision"
	"aidb/extension/internal/egress"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/model/dummy"
	"aidb/extension/internal/model/replay"
	"aidb/extension/internal/pgstore"
	"aidb/extension/internal/secretfile"
	"aidb/extension/internal/spi"
	"aidb/extension/internal/wire"
)

// models opens registered models: it finds the provider and the secret. A secret is looked up each time, never kept.
type models struct {
	wiring *wiring
	host   spi.Host
	store  *pgstore.Store
	trail  *decision.Trail
	// scripts is where the scripts of dummy models stand: in a session, or in a background task.
	scripts *dummy.Provider
	who     spi.Start
	// probing: nothing is run, and whoever registers a model is not who called the function.
	probing bool
	// settled: see gate.
	settled func(context.Context) error
	// metered counts for the quotas; nil while there are none.
	metered *agent.Meter
}

// Open implements agent.Models. That a run may send to a model is one decision, made here and not at each request.
func (m *models) Open(ctx context.Context, ref agent.ModelRef) (agent.Model, error) {
	opened, err := m.openRecorded(ctx, ref)
	if err != nil {
		return nil, err
	}
	return m.withFallback(ctx, ref, opened)
}

func (m *models) openRecorded(ctx context.Context, ref agent.ModelRef) (agent.Model, error) {
	opened, err := m.open(ctx, ref)
	if err == nil && ref.Metered {
		meter, err := m.meter(ctx)
		if err != nil {
			return nil, err
		}
		opened = meter.Model(opened, ref.Name, ref.Price)
	}
	d := decision.Record{At: time.Now(), Point: decision.ModelCall, Status: decision.Allowed, Object: ref.Name}
	switch {
	case errors.Is(err, egress.ErrDenied):
		d.Status, d.Reason, d.SQLState = decision.Denied, decision.EgressDenied, fault.SQLState(err)
	case fault.Is(err, fault.Privilege):
		d.Status, d.Reason, d.SQLState = decision.Denied, decision.PreExecutionRejected, fault.SQLState(err)
	}
	m.trail.Add(d)
	return opened, err
}

func (m *models) open(ctx context.Context, ref agent.ModelRef) (agent.Model, error) {
	var open func(agent.ModelRef, wire.Credentials, wire.Gate) (agent.Model, error)
	switch ref.Provider {
	case "dummy":
		return m.scripts.Open(ref)
	case "openai_completions", "completions": // an older name of it
		open = m.wiring.openai.Open
	case "openai_responses":
		open = m.wiring.responses.Open
	case "anthropic_messages":
		open = m.wiring.anthropic.Open
	case "replay":
		return m.replay(ctx, ref)
	default:
		return nil, fault.New(fault.Unsupported, "Model provider with name %q not found", ref.Provider)
	}
	credentials, err := m.credentials(ctx, ref)
	if err != nil {
		return nil, err
	}
	return open(ref, credentials, gate{m.host, "model", ref.Name, m.settled})
}

// replay opens a recording, which only its owner may replay: its replies are what was said in it.
func (m *models) replay(ctx context.Context, ref agent.ModelRef) (agent.Model, error) {
	id, err := replay.Config(ref.Config)
	if err != nil {
		return nil, err
	}
	records, own, err := m.store.Recording(ctx, id, m.who.Caller, m.who.Principal)
	switch {
	case err != nil:
		return nil, err
	case !own && !m.probing:
		return nil, fault.New(fault.Privilege, "conversation %s, which the model replays, belongs to another caller", fault.Name(id))
	}
	return replay.Open(records, replay.Options{ID: id, Redact: m.wiring.redact}), nil
}

// OpenByName opens a model with options of one call laid over its config.
func (m *models) OpenByName(ctx context.Context, name string, options json.RawMessage) (agent.Model, error) {
	ref, err := m.store.Model(ctx, name)
	if err != nil {
		return nil, err
	}
	if len(options) > 0 && string(options) != "null" {
		if ref.Config, err = overlay(ref.Config, options); err != nil {
			return nil, err
		}
	}
	return m.Open(ctx, ref)
}

// OpenNamed opens a model by its name, with its price.
func (m *models) OpenNamed(ctx context.Context, name string) (agent.Model, *agent.Price, error) {
	ref, err := m.store.Model(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	opened, err := m.Open(ctx, ref)
	return opened, ref.Price, err
}

// overlay returns config with the members of options in place of its own. Where the model is and how it is reached
// are not options.
func overlay(config, options json.RawMessage) (json.RawMessage, error) {
	var base, over map[string]json.RawMessage
	if err := json.Unmarshal(options, &over); err != nil || over == nil {
		return nil, fault.New(fault.InvalidArgument, "inference_config must be a JSON object")
	}
	if err := json.Unmarshal(config, &base); err != nil || base == nil {
		base = map[string]json.RawMessage{}
	}
	for k, v := range over {
		switch k {
		case "url", "tls_config", "api_key", "basic_auth":
			return nil, fault.New(fault.InvalidArgument, "inference_config must not contain %s", fault.Name(k))
		}
		base[k] = v
	}
	merged, err := json.Marshal(base)
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "inference_config cannot be merged")
	}
	return merged, nil
}

// credentials reads a model's secret from where it is.
func (m *models) credentials(ctx context.Context, ref agent.ModelRef) (wire.Credentials, error) {
	switch {
	case ref.CredentialsEnv != "":
		value, err := m.host.Secret(ctx, "env", ref.CredentialsEnv)
		if err != nil {
			return wire.Credentials{}, err
		}
		return wire.ParseCredentials(value)
	case ref.CredentialsFile != "":
		path, err := m.host.Secret(ctx, "file", ref.CredentialsFile)
		if err != nil {
			return wire.Credentials{}, err
		}
		secret, err := secretfile.Read(path)
		if err != nil {
			return wire.Credentials{}, err
		}
		return wire.ParseCredentials(secret)
	case len(ref.Credentials) > 0:
		return wire.ParseCredentials(string(ref.Credentials))
	}
	return wire.Credentials{}, nil
}
