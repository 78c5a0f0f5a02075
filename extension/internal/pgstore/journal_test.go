package pgstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/decision"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/spi"
)

func TestJournal_WritesTheRunInOneBatch(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h := &script{}
	j := New(h, new(Natives)).Journal(nil)
	task := someTask()
	require.NoError(t, j.Begin(ctx, task))
	require.NoError(t, j.Append(ctx, conversation.Record{
		ID: task.PromptID, Type: conversation.UserPrompt, Request: conversation.UserPromptPayload("hi \"you\"", "ann"),
		Status: conversation.StatusSuccess, CreatedAt: task.CreatedAt, CompletedAt: task.CreatedAt,
	}))
	failed, round := uuid.New(), uuid.New()
	require.NoError(t, j.Append(ctx, conversation.Record{
		ID: failed, Sequence: round, Type: conversation.Failure, Response: conversation.ErrorPayload("no \x00 answer"),
		Status: conversation.StatusError, Error: "no \x00 \"answer\"",
		CreatedAt: task.CreatedAt.Add(time.Microsecond), CompletedAt: task.CreatedAt.Add(3 * time.Microsecond),
	}))
	require.Empty(t, h.batches, "nothing is written before the end")

	input := int64(12)
	require.NoError(t, j.Finish(ctx, agent.TaskEnd{
		ID: task.ID, Status: conversation.StatusError, Error: "no \x00answer", PromptID: task.PromptID, BudgetConsumed: 20,
		Usage: conversation.Usage{Input: &input}, Rounds: 1, CompletedAt: task.CreatedAt, TimeoutAt: task.TimeoutAt,
	}))
	require.Len(t, h.batches, 1)
	require.Len(t, h.batches[0], 2)

	row := h.batches[0][0]
	require.Equal(t, taskSQL, row.SQL)
	require.Equal(t, []map[string]any{{
		"id": someID, "agent_id": task.AgentID.String(), "conversation_id": task.ConversationID.String(),
		"request_message_id": task.PromptID.String(), "response_message_id": nil, "role": "ann", "initiated_by": "login",
		"status": "ERROR", "blocking": "t", "budget_consumed": "20", "rounds": "1", "input_tokens": "12", "output_tokens": nil,
		"timeout_at": "2026-01-02T02:05:05.678901Z", "error": "no answer", "created_at": "2026-01-02T02:04:05.678901Z",
		"completed_at": "2026-01-02T02:04:05.678901Z", "caller": "ann", "principal": "user:1", "decisions": "0", "parent_task_id": nil, "cost": nil,
	}}, copied(t, row))

	log := h.batches[0][1]
	require.Equal(t, stepsSQL, log.SQL)
	rows := copied(t, log)
	require.Len(t, rows, 1)
	require.Subset(t, rows[0], map[string]any{
		"conversation_id": task.ConversationID.String(), "agent_id": task.AgentID.String(), "task_id": someID,
		"role": nil, "initiated_by": "login", "caller": "ann", "principal": "user:1", // NULL: as caller
		"created_at": "2026-01-02T02:04:05.678901Z", "prompt_id": task.PromptID.String(), "answer_id": nil,
	})
	require.JSONEq(t, fmt.Sprintf(`[
		{"id": %q, "type": "user_prompt", "at": 0, "took": 0, "request": {"contents": "hi \"you\"", "user": "ann"}},
		{"id": %q, "round": %q, "type": "error", "at": 1, "took": 2, "response": {"error": "no  answer"}, "status": "ERROR", "error": "no  \"answer\""}
	]`, task.PromptID, failed, round), rows[0]["steps"].(string))
}

// A row has at most one prompt, one answer, and one step beyond its size.
func TestJournal_DividesStepsIntoRows(t *testing.T) {
	t.Parallel()
	at := someTask().CreatedAt
	step := func(kind conversation.ActionType, size int) conversation.Record {
		return conversation.Record{ID: uuid.New(), Type: kind, Status: conversation.StatusSuccess, CreatedAt: at, CompletedAt: at,
			Response: conversation.ContentsPayload(strings.Repeat("x", size))}
	}
	for name, c := range map[string]struct {
		records []conversation.Record
		rows    []int // how many steps each has
	}{
		"one of each":         {[]conversation.Record{step(conversation.UserPrompt, 1), step(conversation.ModelResponse, 1), step(conversation.Answer, 1)}, []int{3}},
		"two prompts":         {[]conversation.Record{step(conversation.UserPrompt, 1), step(conversation.ModelResponse, 1), step(conversation.UserPrompt, 1)}, []int{2, 1}},
		"two answers":         {[]conversation.Record{step(conversation.Answer, 1), step(conversation.Answer, 1)}, []int{1, 1}},
		"up to the size":      {[]conversation.Record{step(conversation.ToolResponse, stepsSize-500), step(conversation.ToolResponse, 1)}, []int{2}},
		"above it":            {[]conversation.Record{step(conversation.ToolResponse, stepsSize), step(conversation.ToolResponse, 1)}, []int{1, 1}},
		"one step far beyond": {[]conversation.Record{step(conversation.ModelResponse, 1), step(conversation.ToolResponse, 3*stepsSize)}, []int{2}},
	} {
		task := someTask()
		var s steps
		s.begin(&task)
		for i := range c.records {
			s.add(&c.records[i])
		}
		require.Equal(t, len(c.records), s.count, name)
		var rows []int
		seen := 0
		for _, row := range copied(t, s.take()) {
			var list []map[string]any
			require.NoError(t, json.Unmarshal([]byte(row["steps"].(string)), &list), name)
			for _, step := range list {
				require.Equal(t, c.records[seen].ID.String(), step["id"], name)
				seen++
			}
			rows = append(rows, len(list))
		}
		require.Equal(t, c.rows, rows, name)
		require.Zero(t, s.count, name)
		require.Zero(t, s.size(), name)
	}
}

// copied is the rows of a COPY by their columns' names.
func copied(t *testing.T, s spi.Statement) []map[string]any {
	t.Helper()
	_, list, _ := strings.Cut(s.SQL, "(")
	list, _, _ = strings.Cut(list, ")")
	names := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' })
	var rows []map[string]any
	for line := range strings.Lines(string(s.Args[0].([]byte))) {
		values := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		require.Len(t, values, len(names))
		row := map[string]any{}
		for i, v := range values {
			row[names[i]] = nil
			if v != `\N` {
				row[names[i]] = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\r`, "\r").Replace(v)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func TestJournal_FlushesALongRunEarly(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h := &script{}
	j := New(h, new(Natives)).Journal(nil)
	task := someTask()
	require.NoError(t, j.Begin(ctx, task))
	big := conversation.Record{ID: uuid.New(), Type: conversation.ToolResponse, Status: conversation.StatusSuccess,
		Response: conversation.ContentsPayload(strings.Repeat("x", 300<<10)), CreatedAt: task.CreatedAt, CompletedAt: task.CreatedAt}
	for range 5 {
		require.NoError(t, j.Append(ctx, big))
	}
	require.Len(t, h.batches, 1)
	require.NoError(t, j.Finish(ctx, agent.TaskEnd{ID: task.ID, Status: conversation.StatusSuccess}))
	require.Len(t, h.batches, 2)
	for _, s := range []spi.Statement{h.batches[0][0], h.batches[1][1]} {
		for _, r := range copied(t, s) {
			require.True(t, json.Valid([]byte(r["steps"].(string))))
		}
	}
}

// What a round has come to is written while the model is asked again, with its decisions; the end writes the rest.
func TestJournal_WritesWhileTheModelThinks(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h := &script{}
	trail := &decision.Trail{NewID: uuid.New}
	j := New(h, new(Natives)).Journal(trail)
	task := someTask()
	require.NoError(t, j.Begin(ctx, task))
	write := func(types ...conversation.ActionType) {
		for _, kind := range types {
			require.NoError(t, j.Append(ctx, conversation.Record{ID: uuid.New(), Type: kind, Status: conversation.StatusSuccess, CreatedAt: task.CreatedAt, CompletedAt: task.CreatedAt}))
		}
	}
	write(conversation.UserPrompt, conversation.ModelRequest, conversation.ModelResponse, conversation.ToolCalled)
	trail.Add(decision.Record{Tool: "run_sql_query", Status: decision.Allowed})
	write(conversation.ToolResponse)
	require.Empty(t, h.batches)
	write(conversation.ModelRequest)
	require.Len(t, h.batches, 1, "decisions at once, a row of the log when it is worth it")
	require.Len(t, h.batches[0], 1)
	require.Equal(t, decisionsSQL, h.batches[0][0].SQL)
	require.Len(t, copied(t, h.batches[0][0]), 1)
	write(conversation.ModelResponse, conversation.ToolCalled, conversation.ToolResponse, conversation.ModelRequest)
	require.Len(t, h.batches, 2)
	require.Len(t, h.batches[1], 1)
	require.Equal(t, 10, loggedSteps(t, h.batches[1][0]))
	write(conversation.ModelResponse, conversation.Answer)
	require.NoError(t, j.Finish(ctx, agent.TaskEnd{ID: task.ID, Status: conversation.StatusSuccess}))
	require.Len(t, h.batches, 3)
	require.Len(t, h.batches[2], 2, "the task and what was logged since")
	require.Equal(t, 2, loggedSteps(t, h.batches[2][1]))
}

// loggedSteps is how many steps the one row of a statement has.
func loggedSteps(t *testing.T, s spi.Statement) int {
	t.Helper()
	rows := copied(t, s)
	require.Len(t, rows, 1)
	var list []any
	require.NoError(t, json.Unmarshal([]byte(rows[0]["steps"].(string)), &list))
	return len(list)
}

func TestJournal_PassesTheEnginesErrorOn(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	j := New(&script{err: gone}, new(Natives)).Journal(nil)
	require.NoError(t, j.Begin(context.Background(), someTask()))
	require.ErrorIs(t, j.Finish(context.Background(), agent.TaskEnd{ID: uuid.MustParse(someID)}), gone)
	require.Equal(t, fault.Internal, fault.KindOf(j.Finish(context.Background(), agent.TaskEnd{ID: uuid.New()})))
}
