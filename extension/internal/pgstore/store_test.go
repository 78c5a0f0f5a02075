package pgstore

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/policy"
	"aidb/extension/internal/spi"
	"aidb/extension/internal/tool"
)

// script is a host that answers batches in order and keeps what it was asked.
type script struct {
	answers [][]spi.Rows
	batches [][]spi.Statement
	locked  []string
	err     error
}

func (h *script) Batch(_ context.Context, statements ...spi.Statement) ([]spi.Rows, error) {
	h.batches = append(h.batches, statements)
	if h.err != nil {
		return nil, h.err
	}
	if len(h.answers) == 0 {
		return make([]spi.Rows, len(statements)), nil
	}
	a := h.answers[0]
	h.answers = h.answers[1:]
	return a, nil
}

func (h *script) Write(ctx context.Context, statements ...spi.Statement) error {
	_, err := h.Batch(ctx, statements...)
	return err
}

func (h *script) LockConversation(_ context.Context, id string) error {
	h.locked = append(h.locked, id)
	return h.err
}

// values makes a result row; nil is NULL.
func values(v ...any) []*string {
	row := make([]*string, len(v))
	for i := range v {
		if s, ok := v[i].(string); ok {
			row[i] = &s
		}
	}
	return row
}

const (
	someID    = "018f0000-0000-7000-8000-000000000001"
	sleepJSON = `{"name":"sleep","function":"aidb.sleep(numeric)","read_only":true,"description":"Waits.","params":[{"name":"seconds","type":"numeric","description":"how long","required":true}]}`
)

func agentRow(purpose, role any, retired string, source, credentials any) []*string {
	var deleted, oid any
	if retired == "t" {
		deleted = "2026-01-02T03:04:05+00:00"
	}
	if role != nil {
		oid = "16385"
	}
	return values(someID, "helper", "You help.", "gpt", purpose, `["other"]`, `["run_sql_query"]`, nil,
		nil, "200", "7", nil, "summarize", "16384", "t", "0.5", "900", nil, `{"threshold": 0.5, "pin": ["run_sql_query"]}`, nil, "direct", "f", "ann",
		role, oid, "f", deleted, "house", nil, nil, "house", nil,
		"openai_completions", `{"model":"x"}`, source, nil, nil, credentials, "00ff", "f", "f", "f", "on", "allow")
}

func TestStore_Agent(t *testing.T) {
	t.Parallel()
	ctx := context.Background()

	t.Run("comes with its model and the native tools in one round trip", func(t *testing.T) {
		h := &script{answers: [][]spi.Rows{{{Values: [][]*string{agentRow(nil, nil, "f", "stored", `{"api_key":"k"}`)}},
			{Values: [][]*string{values("[" + sleepJSON + "]")}}}}}
		s := New(h, new(Natives))
		d, err := s.Agent(ctx, "helper")
		require.NoError(t, err)
		seven, twoHundred, nineHundred := 7, 200, 900
		require.Equal(t, &agent.Definition{
			ID: uuid.MustParse(someID), Name: "helper", Instructions: "You help.", ModelName: "gpt",
			Model: &agent.ModelRef{
				Name: "gpt", Provider: "openai_completions", Config: json.RawMessage(`{"model":"x"}`),
				Credentials: json.RawMessage(`{"api_key":"k"}`),
			},
			Tools: []string{"run_sql_query"}, Delegates: []string{"other"},
			OutputTokenBudget: &twoHundred, MaxIterations: &seven, Strategy: "summarize", Enabled: true, Owner: "ann", Exposure: "direct",
			CostBudget: conversation.Units / 2, TreeTokenBudget: &nineHundred,
			Compaction: agent.CompactionSettings{Threshold: 0.5, Pin: []string{"run_sql_query"}},
			Policies:   []policy.State{{Name: "house", Registered: true}},
		}, d)

		// run_sql_query does not exist in this script.
		tools, err := s.Tools(ctx, []string{"run_sql_query", "sleep"})
		require.NoError(t, err)
		require.Len(t, h.batches, 2, "the agent with the native tools; whether run_sql_query is anybody's")
		require.Equal(t, []tool.Tool{{
			Name: "sleep", Description: "Waits.", Type: tool.Native, ReadOnly: true, Function: "aidb.sleep(numeric)",
			Params: []tool.Parameter{{Name: "seconds", Type: "numeric", Description: "how long", Required: true}},
		}}, tools)
	})

	purposes := []struct {
		name    string
		role    any
		retired string
		want    agent.PurposeState
	}{
		{"a live purpose", "reader", "f", agent.PurposeState{Name: "p", Registered: true, Role: "reader", RoleID: "16385"}},
		{"a retired purpose", "reader", "t", agent.PurposeState{Name: "p", Registered: true, Retired: true, Role: "reader", RoleID: "16385"}},
		{"a purpose whose row is gone", nil, "f", agent.PurposeState{Name: "p"}},
	}
	for _, c := range purposes {
		t.Run(c.name, func(t *testing.T) {
			h := &script{answers: [][]spi.Rows{{{Values: [][]*string{agentRow("p", c.role, c.retired, "none", nil)}}}}}
			d, err := New(h, new(Natives)).Agent(ctx, "helper")
			require.NoError(t, err)
			require.Equal(t, &c.want, d.Purpose)
		})
	}

	t.Run("that does not exist is nil without an error", func(t *testing.T) {
		d, err := New(&script{}, new(Natives)).Agent(ctx, "nobody")
		require.NoError(t, err)
		require.Nil(t, d)
	})

	t.Run("whose model lost its stored secret says so", func(t *testing.T) {
		h := &script{answers: [][]spi.Rows{{{Values: [][]*string{agentRow(nil, nil, "f", "stored", nil)}}}}}
		_, err := New(h, new(Natives)).Agent(ctx, "helper")
		require.EqualError(t, err, "model 'gpt' has no credentials in this database")
		require.Equal(t, fault.WrongState, fault.KindOf(err))
	})

	t.Run("of a shape that cannot be is an internal error", func(t *testing.T) {
		r := agentRow(nil, nil, "f", "none", nil)
		r[10] = values("seven")[0]
		_, err := New(&script{answers: [][]spi.Rows{{{Values: [][]*string{r}}}}}, new(Natives)).Agent(ctx, "helper")
		require.Equal(t, fault.Internal, fault.KindOf(err))
		_, err = New(&script{answers: [][]spi.Rows{{{Values: [][]*string{r[:3]}}}}}, new(Natives)).Agent(ctx, "helper")
		require.Equal(t, fault.Internal, fault.KindOf(err))
	})
}

func TestStore_Tools_AsksForWhatDidNotComeWithTheAgent(t *testing.T) {
	t.Parallel()
	h := &script{answers: [][]spi.Rows{{{Values: [][]*string{values("[" + sleepJSON + "]")}}}}}
	s := New(h, new(Natives))
	for range 2 {
		tools, err := s.Tools(context.Background(), []string{"ghost", "sleep"})
		require.NoError(t, err)
		require.Len(t, tools, 1)
	}
	require.Len(t, h.batches, 2, "the native tools, and whether ghost is a SQL tool: each once")
}

func TestStore_Model(t *testing.T) {
	t.Parallel()
	_, err := New(&script{}, new(Natives)).Model(context.Background(), "gpt")
	require.EqualError(t, err, "Model not found: gpt")
	require.Equal(t, fault.NotFound, fault.KindOf(err))

	h := &script{answers: [][]spi.Rows{{{Values: [][]*string{values("d", "dummy", "{}", "environment", "AIDB_KEY", nil, nil, nil, "f", "f")}}}}}
	ref, err := New(h, new(Natives)).Model(context.Background(), "d")
	require.NoError(t, err)
	require.Equal(t, agent.ModelRef{Name: "d", Provider: "dummy", Config: json.RawMessage("{}"), CredentialsEnv: "AIDB_KEY"}, ref)
}

func TestStore_Conversation(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	id := uuid.MustParse(someID)

	t.Run("is locked before it is read", func(t *testing.T) {
		h := &script{err: fault.New(fault.Busy, "canceling statement due to lock timeout")}
		_, err := New(h, new(Natives)).Conversation(ctx, id)
		require.Equal(t, fault.Busy, fault.KindOf(err))
		require.Equal(t, []string{someID}, h.locked)
		require.Empty(t, h.batches)
	})

	t.Run("that nobody used does not exist", func(t *testing.T) {
		c, err := New(&script{}, new(Natives)).Conversation(ctx, id)
		require.NoError(t, err)
		require.Equal(t, agent.Conversation{ID: id}, c)
	})

	t.Run("has its owner and what a model saw", func(t *testing.T) {
		h := &script{answers: [][]spi.Rows{{
			{Values: [][]*string{values("ann", "login", "user:1", "helper", nil, "f")}},
			{Values: [][]*string{
				values(someID, nil, "user_prompt", `{"contents": "hi", "user": "ann"}`, nil),
				values(someID, someID, "model_response", nil, `{"contents": "hello", "tool_calls": []}`),
			}},
		}}}
		c, err := New(h, new(Natives)).Conversation(ctx, id)
		require.NoError(t, err)
		require.True(t, c.Exists)
		require.Equal(t, []string{"ann", "login", "user:1", "helper"}, []string{c.Role, c.SessionUser, c.Principal, c.Agent})
		require.Equal(t, []conversation.Message{
			{ID: c.Records[0].ID, Role: conversation.User, Content: "hi"},
			{ID: c.Records[1].ID, Role: conversation.Assistant, Content: "hello"},
		}, conversation.Rebuild(c.Records))
	})
}

func someTask() agent.Task {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.FixedZone("x", 3600))
	return agent.Task{
		ID: uuid.MustParse(someID), AgentID: uuid.New(), ConversationID: uuid.New(), PromptID: uuid.New(),
		Caller: agent.Caller{Role: "ann", SessionUser: "login", Principal: "user:1"}, CreatedAt: at, TimeoutAt: at.Add(time.Minute),
	}
}
