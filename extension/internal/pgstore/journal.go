package pgstore

import (
	"context"
	"encoding/json"
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

// idleRows is how many records are worth a statement of their own while the model is asked again: the main thread has nothing else
// to do then, and what it has written nobody waits for at the end.
const idleRows = 6

// journal writes one run: its records and decisions while the model thinks and as it ends, and its task row at the end. Of
// a run that ends otherwise the rollback of its transaction removes what was written.
type journal struct {
	host   Host
	store  *Store
	trail  *decision.Trail
	task   agent.Task
	buffer spi.CopyText // records
	same   spi.CopyText // the columns that are the same in all of them
}

// Measured beside INSERTs from a JSON array, from arrays for unnest, and one for each row: with COPY a whole call takes a
// seventh less CPU.
const recordsSQL = `COPY aidb_internal.action_log (
    id, sequence_id, action_type, request_payload, response_payload, status, error, created_at, completed_at,
    conversation_id, agent_id, task_id, role, initiated_by, caller, principal) FROM STDIN`

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
	j.same = spi.CopyText{}
	j.same.Plain(t.ConversationID.String())
	j.same.Plain(t.AgentID.String())
	j.same.Plain(t.ID.String())
	j.same.Text(t.Role)
	j.same.Text(t.Caller.SessionUser)
	j.same.Text(t.Caller.Role)
	j.same.Text(t.Caller.Principal)
	j.trail.Base.TaskID, j.trail.Base.ConversationID = t.ID.String(), t.ConversationID.String()
	if j.trail.MessageID == "" { // of the call, not of a delegate within it
		j.trail.MessageID = t.PromptID.String()
	}
	return nil
}

// Append implements agent.Journal.
func (j *journal) Append(ctx context.Context, records ...conversation.Record) error {
	for i := range records {
		j.add(&records[i])
	}
	idle := j.buffer.Rows() >= idleRows && records[len(records)-1].Type == conversation.ModelRequest
	if !idle && j.buffer.Len() < flushAt {
		return nil
	}
	return j.host.Write(ctx, j.logged()...)
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
	if j.buffer.Rows() > 0 {
		statements = append(statements, j.flush())
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

// flush returns the statement that writes what is buffered, and empties the buffer.
func (j *journal) flush() spi.Statement {
	s := spi.Statement{SQL: recordsSQL, Args: []any{j.buffer.Bytes()}}
	j.buffer = spi.CopyText{}
	return s
}

// add appends a record to the buffer.
func (j *journal) add(r *conversation.Record) {
	c := &j.buffer
	c.Plain(r.ID.String())
	if r.Sequence == uuid.Nil {
		c.Null()
	} else {
		c.Plain(r.Sequence.String())
	}
	c.Plain(string(r.Type))
	for _, payload := range [...]json.RawMessage{r.Request, r.Response} {
		if payload == nil {
			c.Null()
		} else {
			c.Raw(payload)
		}
	}
	c.Plain(r.Status)
	c.OrNull(conversation.Clean(r.Error))
	c.Plain(timestamp(r.CreatedAt))
	c.Plain(timestamp(r.CompletedAt))
	c.Columns(&j.same)
	c.EndRow()
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
