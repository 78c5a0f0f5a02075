package main

import (
	"context"
	"time"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/decision"
	"aidb/extension/internal/pgstore"
	"aidb/extension/internal/telemetry"
)

// export hands the spans of a run to where aidb.otel_client says, which is read anew for every call. Nothing that goes
// wrong here fails the call: it is said in the server's log.
func (w *wiring) export(ctx context.Context, p *parts, call agent.Call, out agent.Outcome) {
	w.mu.Lock()
	client, about := w.spans, w.about
	w.mu.Unlock()
	if client == telemetry.Noop || client == "" {
		return
	}
	spans, err := w.spansOf(ctx, p, about, call, out)
	switch {
	case err != nil:
	case client == telemetry.Log || p.start.InRecovery || p.start.ReadOnly:
		for _, s := range spans {
			p.host.Notice("log", "aidb span: "+string(s.Payload), "")
		}
	default:
		err = p.store.WriteSpans(ctx, stored(spans))
	}
	if err != nil {
		p.host.Notice("log", "aidb telemetry could not be written: "+err.Error(), "")
	}
}

func (w *wiring) spansOf(ctx context.Context, p *parts, about telemetry.Resource, call agent.Call, out agent.Outcome) ([]telemetry.Span, error) {
	var err error
	if about.Version, err = p.store.Version(ctx); err != nil {
		return nil, err
	}
	trace := telemetry.NewTrace(about)
	run := telemetry.Run{
		Agent: call.Agent, Purpose: p.trail.Base.Purpose, ConversationID: p.trail.Base.ConversationID,
		TaskID: p.trail.Base.TaskID, MessageID: p.trail.MessageID, Status: conversation.StatusSuccess, Start: p.began, End: time.Now(),
		ReadOnly: p.trail.Base.TaskID == "",
	}
	// the row that the run began with, where it has one: nothing is asked for a second time
	if d, err := p.store.Agent(ctx, call.Agent); err == nil && d != nil {
		run.AgentID, run.Model = d.ID.String(), d.ModelName
	}
	for _, r := range p.trail.Records() {
		if r.Tool != "" && (r.Point == decision.SQLExec || r.Point == decision.MCPCall) {
			run.ToolCalls++
		}
	}
	if out.Error != nil {
		run.Status, run.Error = conversation.StatusError, "agent_error"
	}
	root, err := trace.Root(run)
	if err != nil {
		return nil, err
	}
	spans := []telemetry.Span{root}
	for _, r := range p.trail.Records() {
		s, err := trace.Decision(r)
		if err != nil {
			return nil, err
		}
		spans = append(spans, s)
	}
	return spans, nil
}

func stored(spans []telemetry.Span) []pgstore.Span {
	list := make([]pgstore.Span, 0, len(spans))
	for _, s := range spans {
		list = append(list, pgstore.Span{
			Payload: string(s.Payload), TraceID: s.TraceID, SpanID: s.SpanID, ParentSpanID: s.ParentSpanID,
			SessionID: s.SessionID, ConversationID: s.ConversationID, MCPSession: s.MCPSession, DecisionStatus: s.DecisionStatus,
		})
	}
	return list
}
