package telemetry

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"aidb/extension/internal/decision"
)

func attributesOf(t *testing.T, s Span) (name string, found map[string]string) {
	t.Helper()
	var p struct {
		ResourceSpans []struct {
			ScopeSpans []struct {
				Spans []struct {
					Name       string
					TraceID    string `json:"traceId"`
					Attributes []struct {
						Key   string
						Value struct{ StringValue string }
					}
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal(s.Payload, &p))
	span := p.ResourceSpans[0].ScopeSpans[0].Spans[0]
	require.Equal(t, s.TraceID, span.TraceID)
	found = map[string]string{}
	for _, a := range span.Attributes {
		found[a.Key] = a.Value.StringValue
	}
	return span.Name, found
}

func TestTrace_ADecisionHasTheDocumentedAttributes(t *testing.T) {
	t.Parallel()
	trace := NewTrace(Resource{Version: "1", DatabaseName: "shop", DatabaseOID: "5", SessionID: "a.b"})
	id := uuid.New()
	s, err := trace.Decision(decision.Record{
		ID: id, At: time.Now(), Status: decision.Denied, Point: decision.SQLExec, Caller: "ann", Role: "r",
		Reason: decision.NotRoleMember, Query: "SELECT 1", ConversationID: "c",
	})
	require.NoError(t, err)
	require.Len(t, s.TraceID, 32)
	require.Len(t, s.SpanID, 16)
	require.Equal(t, "denied", s.DecisionStatus)
	name, a := attributesOf(t, s)
	require.Equal(t, "purpose_decision", name)
	require.Equal(t, id.String(), a["aidb.agent.decision.decision_id"])
	require.Equal(t, "denied", a["aidb.agent.decision.action_status"])
	require.Equal(t, "sql_exec", a["aidb.agent.decision.interaction_point"])
	require.Equal(t, "ann", a["aidb.agent.decision.principal"])
	require.Equal(t, "r", a["aidb.agent.decision.agent_role"])
	require.Equal(t, "not_role_member", a["aidb.agent.decision.denial_reason"])
	require.Equal(t, "SELECT 1", a["db.query.text"])

	allowed, err := trace.Decision(decision.Record{ID: id, Status: decision.Allowed})
	require.NoError(t, err)
	require.Equal(t, s.TraceID, allowed.TraceID, "one run, one trace")
	require.Equal(t, s.ParentSpanID, allowed.ParentSpanID)
	_, a = attributesOf(t, allowed)
	require.NotContains(t, a, "aidb.agent.decision.denial_reason")
}

func TestTrace_TheRootKnowsTheSession(t *testing.T) {
	t.Parallel()
	trace := NewTrace(Resource{SessionID: "5f.2a"})
	s, err := trace.Root(Run{Agent: "a", ConversationID: "c", Status: "SUCCESS"})
	require.NoError(t, err)
	require.Equal(t, "5f.2a", s.SessionID)
	require.Empty(t, s.ParentSpanID)
	name, a := attributesOf(t, s)
	require.Equal(t, "invoke_agent", name)
	require.Equal(t, "5f.2a", a["db.postgresql.session_id"])
}
