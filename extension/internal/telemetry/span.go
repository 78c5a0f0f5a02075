// Package telemetry turns what aidb records into OpenTelemetry spans: the same facts in another protocol's words. The
// attribute names are those of OpenTelemetry's GenAI conventions, and aidb's own where they have none.
package telemetry

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"aidb/extension/internal/decision"
	"aidb/extension/internal/fault"
)

// Client is where spans go (aidb.otel_client).
type Client string

// Clients.
const (
	Noop     Client = "noop"
	Database Client = "database"
	Log      Client = "log"
)

// Resource is what is the same in every span of a process.
type Resource struct {
	Version      string
	DatabaseName string
	DatabaseOID  string
	SessionID    string // <start time>.<pid> in hexadecimal
}

// Span is one span as it is stored: its OTLP export request and the columns that queries filter by.
type Span struct {
	Payload        json.RawMessage
	TraceID        string
	SpanID         string
	ParentSpanID   string
	SessionID      string
	ConversationID string
	MCPSession     string
	DecisionStatus string
}

// Trace makes the spans of one run.
type Trace struct {
	resource Resource
	id       string
	root     string
}

// NewTrace begins the trace of a run.
func NewTrace(r Resource) *Trace {
	return &Trace{resource: r, id: id(16), root: id(8)}
}

// id returns random bytes in hexadecimal. The source cannot fail: it ends the process instead.
func id(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}

// Run is how a run of an agent is described by its root span.
type Run struct {
	Agent, AgentID, Model, Purpose string
	ConversationID, TaskID         string
	MessageID                      string // of the prompt
	Status, Error                  string
	ReadOnly                       bool
	ToolCalls                      int // that were decided on
	Start, End                     time.Time
}

// Root is the span of the whole run.
func (t *Trace) Root(r Run) (Span, error) {
	a := attributes{}
	a.text("gen_ai.operation.name", "invoke_agent")
	a.text("gen_ai.agent.name", r.Agent)
	a.text("gen_ai.agent.id", r.AgentID)
	a.text("gen_ai.conversation.id", r.ConversationID)
	a.text("aidb.agent.model", r.Model)
	a.text("aidb.agent.purpose", r.Purpose)
	a.text("aidb.agent.status", r.Status)
	a.text("aidb.agent.task.id", r.TaskID)
	a.text("aidb.agent.message.id", r.MessageID)
	a.text("error.type", r.Error)
	a.text("db.postgresql.session_id", t.resource.SessionID)
	a.list = append(a.list, attribute{Key: "aidb.tool.call_count", Value: map[string]any{"intValue": strconv.Itoa(r.ToolCalls)}})
	a.list = append(a.list, attribute{Key: "aidb.read_only", Value: map[string]any{"boolValue": r.ReadOnly}})
	s, err := t.span("invoke_agent", t.root, "", r.Start, r.End, a)
	s.SessionID, s.ConversationID = t.resource.SessionID, r.ConversationID
	return s, err
}

// Decision is the span of a decision, named purpose_decision.
func (t *Trace) Decision(r decision.Record) (Span, error) {
	a := attributes{}
	a.text("aidb.agent.decision.decision_id", r.ID.String())
	a.text("aidb.agent.decision.action_status", r.Status)
	a.text("aidb.agent.decision.interaction_point", r.Point)
	a.text("aidb.agent.decision.principal", r.Caller)
	a.text("aidb.agent.decision.agent_role", r.Role)
	a.text("aidb.agent.decision.denial_reason", r.Reason)
	a.text("aidb.agent.purpose", r.Purpose)
	a.text("aidb.agent.task.id", r.TaskID)
	a.text("gen_ai.agent.name", r.Agent)
	a.text("gen_ai.tool.name", r.Tool)
	a.text("gen_ai.conversation.id", r.ConversationID)
	switch r.Point {
	case decision.MCPCall:
		a.text("aidb.mcp.server_name", r.Object)
		a.text("aidb.mcp.url", r.Remote.URL)
		a.text("aidb.mcp.transport", r.Remote.Transport)
		a.text("mcp.session.id", r.Remote.Session)
	case decision.ModelCall:
		a.text("aidb.model.name", r.Object)
	}
	a.text("db.query.text", r.Text())
	a.text("db.response.status_code", r.SQLState)
	s, err := t.span("purpose_decision", id(8), t.root, r.At, r.At.Add(r.Duration), a)
	s.ConversationID, s.DecisionStatus, s.MCPSession = r.ConversationID, r.Status, r.Remote.Session
	return s, err
}

type attribute struct {
	Key   string         `json:"key"`
	Value map[string]any `json:"value"`
}

type attributes struct{ list []attribute }

// text adds an attribute; one that is empty is left out.
func (a *attributes) text(key, value string) {
	if value != "" {
		a.list = append(a.list, attribute{Key: key, Value: map[string]any{"stringValue": value}})
	}
}

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

// span builds the export request: one resource, one scope, one span.
func (t *Trace) span(name, spanID, parent string, start, end time.Time, a attributes) (Span, error) {
	resource := attributes{}
	resource.text("service.name", "aidb")
	resource.text("service.version", t.resource.Version)
	resource.text("aidb.database.name", t.resource.DatabaseName)
	resource.text("aidb.database.oid", t.resource.DatabaseOID)
	one := map[string]any{
		"traceId": t.id, "spanId": spanID, "name": name, "kind": 1,
		"startTimeUnixNano": nanos(start), "endTimeUnixNano": nanos(end), "attributes": a.list,
	}
	if parent != "" {
		one["parentSpanId"] = parent
	}
	payload, err := json.Marshal(map[string]any{"resourceSpans": []any{map[string]any{
		"resource": map[string]any{"attributes": resource.list},
		"scopeSpans": []any{map[string]any{
			"scope": map[string]any{"name": "aidb", "version": t.resource.Version},
			"spans": []any{one},
		}},
	}}})
	if err != nil {
		return Span{}, fault.Wrap(err, fault.Internal, "span cannot be written as JSON")
	}
	return Span{Payload: payload, TraceID: t.id, SpanID: spanID, ParentSpanID: parent}, nil
}
