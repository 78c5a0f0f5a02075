package agent_test

import (
	"context"
	"fmt"
	"testing"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/testkit"
)

type constModel struct{ n int }

func (m *constModel) Open(context.Context, agent.ModelRef) (agent.Model, error) { return m, nil }

func (m *constModel) Complete(context.Context, agent.Request) (agent.Reply, error) {
	if m.n++; m.n%2 == 1 {
		return agent.Reply{ToolCalls: []conversation.ToolCall{{ID: "call_1", Name: "run_sql_query", Arguments: `{"query":"SELECT count(*) FROM orders"}`}}}, nil
	}
	return agent.Reply{Content: "There are 4,213 orders."}, nil
}

// What the loop itself costs: a conversation of two rounds, without model, tool and database.
func BenchmarkConverse_TwoRounds(b *testing.B) {
	w := testkit.NewWorld(map[string]testkit.ToolFunc{"run_sql_query": testkit.Returns(`[{"count": 4213}]`)}, nil)
	w.Service.Models = &constModel{}
	w.Service.IDs, w.Service.Clock = agent.UUIDv7{}, agent.SystemClock{}
	w.Service.NewJournal = func() agent.Journal { return nullJournal{} }
	b.ReportAllocs()
	for b.Loop() {
		if out, err := w.Ask("How many orders are there?"); err != nil || out.Error != nil {
			b.Fatal(err, out)
		}
	}
}

type nullJournal struct{}

func (nullJournal) Begin(context.Context, agent.Task) error              { return nil }
func (nullJournal) Append(context.Context, ...conversation.Record) error { return nil }
func (nullJournal) Finish(context.Context, agent.TaskEnd) error          { return nil }

// What a long conversation costs before its first round.
func BenchmarkRebuild_400Records(b *testing.B) {
	var log []conversation.Record
	for i := range 200 {
		log = append(log,
			conversation.Record{Type: conversation.UserPrompt, Request: conversation.UserPromptPayload(
				fmt.Sprintf("Question %d: what was the revenue of region %d in month %d, and how does it compare?", i, i%7, i%12+1), "ann")},
			conversation.Record{Type: conversation.ModelResponse, Response: conversation.ModelResponsePayload(
				fmt.Sprintf("Revenue of region %d in that month was %d.00, which is %d percent above the month before.", i%7, 1000+i, i%9),
				nil, "stop", "m", conversation.Usage{})})
	}
	b.ReportAllocs()
	for b.Loop() {
		conversation.Rebuild(log)
	}
}
