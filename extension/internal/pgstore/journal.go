package pgstore

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/decision"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/spi"
)

// flushAt is how much is buffered before records are written ahead of the end, so that a long run does not hold its
// whole log in memory.
const flushAt = 1 << 20

// idleSteps is how many records are written while the model is asked again: the main thread has nothing else to do then, and what it
// has written nobody waits for at the end. Fewer would divide a short call among rows that have most of their columns in common.
const idleSteps = 10

// journal writes one run: its records and decisions while the model thinks and as it ends, and its task row at the end. Of
// a run that ends otherwise the rollback of its transaction removes what was written.
type journal struct {
	host  Host
	store *Store
	trail *decision.Trail
	task  agent.Task
	steps steps
}

// Measured beside INSERTs from a JSON array, from arrays for unnest, and one for each row: with COPY a whole call takes a
// seventh less CPU.
const taskSQL = `COPY aidb_internal.agent_task_queue (
    id, agent_id, conversation_id, request_message_id, response_message_id, role, initiated_by, status, blocking,
    budget_consumed, rounds, input_tokens, output_tokens, timeout_at, error, created_at, completed_at, caller, principal,
    decisions, parent_task_id, cost) FROM STDIN`

// Journal returns a journal for one run, which also writes the decisions of the call so far.
func (s *Store) Journal(t *decision.Trail) agent.Journal {
	if t == nil {
		t = &decision.Trail{}
	}
	return &journal{host: s.host, store: s, trail: t}
}

// Begin implements agent.Journal.
func (j *journal) Begin(_ context.Context, t agent.Task) error {
	if t.Role == "" {
		t.Role = t.Caller.Role
	}
	j.task = t
	j.steps.begin(&j.task)
	j.trail.Base.TaskID, j.trail.Base.ConversationID = t.ID.String(), t.ConversationID.String()
	if j.trail.MessageID == "" { // of the call, not of a delegate within it
		j.trail.MessageID = t.PromptID.String()
	}
	return nil
}

// Append implements agent.Journal.
func (j *journal) Append(ctx context.Context, records ...conversation.Record) error {
	for i := range records {
		j.steps.add(&records[i])
	}
	idle := records[len(records)-1].Type == conversation.ModelRequest
	switch {
	case idle && j.steps.count >= idleSteps, j.steps.size() >= flushAt:
		return j.host.Write(ctx, j.logged()...)
	case idle:
		if decisions, ok := j.store.decisions(j.trail); ok {
			return j.host.Write(ctx, decisions)
		}
	}
	return nil
}

// Finish implements agent.Journal.
func (j *journal) Finish(ctx context.Context, end agent.TaskEnd) error {
	if end.ID != j.task.ID {
		return fault.New(fault.Internal, "task %s ends as %s", j.task.ID, end.ID)
	}
	return j.host.Write(ctx, append([]spi.Statement{j.taskRow(end)}, j.logged()...)...)
}

// logged is the statements that write the records and the decisions that have not been written.
func (j *journal) logged() []spi.Statement {
	var statements []spi.Statement
	if j.steps.count > 0 {
		statements = append(statements, j.steps.take())
	}
	if decisions, ok := j.store.decisions(j.trail); ok {
		statements = append(statements, decisions)
	}
	return statements
}

// taskRow returns the statement that writes the task.
func (j *journal) taskRow(end agent.TaskEnd) spi.Statement {
	t := &j.task
	var c spi.CopyText
	c.Plain(t.ID.String())
	c.Plain(t.AgentID.String())
	c.Plain(t.ConversationID.String())
	c.Plain(end.PromptID.String())
	c.OrNull(idText(end.AnswerID))
	c.Text(t.Role)
	c.Text(t.Caller.SessionUser)
	c.Plain(end.Status)
	c.Plain("t")
	c.Plain(strconv.FormatInt(end.BudgetConsumed, 10))
	c.Plain(strconv.Itoa(end.Rounds))
	c.OrNull(countText(end.Usage.Input))
	c.OrNull(countText(end.Usage.Output))
	c.Plain(timestamp(end.TimeoutAt))
	c.OrNull(conversation.Clean(end.Error))
	c.Plain(timestamp(t.CreatedAt))
	c.Plain(timestamp(end.CompletedAt))
	c.Text(t.Caller.Role)
	c.Text(t.Caller.Principal)
	c.Plain(strconv.Itoa(j.trail.Count()))
	c.OrNull(idText(t.Parent))
	if end.Cost == nil {
		c.Null()
	} else {
		c.Plain(conversation.Money(*end.Cost))
	}
	c.EndRow()
	return spi.Statement{SQL: taskSQL, Args: []any{c.Bytes()}}
}

func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999999Z07:00") }

func countText(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

func optionalText(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func idText(id *uuid.UUID) string {
	if id == nil {
		return ""
	}
	return id.String()
}
