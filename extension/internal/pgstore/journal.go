package pgstore

import (
	"context"
	"encoding/json"
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

// journal writes one run: its records as it ends, in one statement, and its task row beside them. Nothing of a run
// that ends otherwise is written, but for what was flushed early, which the rollback of its transaction removes.
type journal struct {
	host    Host
	store   *Store
	trail   *decision.Trail
	task    agent.Task
	buffer  []byte // a JSON array of records, not closed yet
	records int
}

// The payloads are part of the array as JSON, so they are parsed once and never quoted. Measured beside arrays for
// unnest and one INSERT a row: the same within the noise, at a third of the code.
const recordsSQL = `
INSERT INTO aidb_internal.action_log (
    id, conversation_id, agent_id, task_id, sequence_id, action_type, request_payload, response_payload,
    status, error, role, initiated_by, created_at, completed_at, caller, principal)
SELECT r.i, $2::uuid, $3::uuid, $4::uuid, r.s, r.t, r.q, r.p, r.st, r.e, $5, $6, r.c, r.d, $7, $8
FROM jsonb_to_recordset($1::jsonb) r (
    i uuid, s uuid, t aidb.action_type, q jsonb, p jsonb, st aidb.task_status, e text, c timestamptz, d timestamptz)`

const taskSQL = `
INSERT INTO aidb_internal.agent_task_queue (
    id, agent_id, conversation_id, request_message_id, response_message_id, role, initiated_by, status,
    budget_consumed, rounds, input_tokens, output_tokens, timeout_at, error, created_at, completed_at, caller, principal,
    decisions, parent_task_id)
VALUES (
    $1::uuid, $2::uuid, $3::uuid, $4::uuid, $5::uuid, $6, $7, $8::aidb.task_status,
    $9::integer, $10::integer, $11::bigint, $12::bigint, $13::timestamptz, $14, $15::timestamptz, $16::timestamptz, $17, $18,
    $19::integer, $20::uuid)`

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
	if len(j.buffer) < flushAt {
		return nil
	}
	return j.host.Write(ctx, j.flush())
}

// Finish implements agent.Journal.
func (j *journal) Finish(ctx context.Context, end agent.TaskEnd) error {
	if end.ID != j.task.ID {
		return fault.New(fault.Internal, "task %s ends as %s", j.task.ID, end.ID)
	}
	t := &j.task
	statements := []spi.Statement{{SQL: taskSQL, Args: []any{
		t.ID.String(), t.AgentID.String(), t.ConversationID.String(), end.PromptID.String(), optionalID(end.AnswerID),
		t.Role, t.Caller.SessionUser, end.Status,
		end.BudgetConsumed, end.Rounds, optionalCount(end.Usage.Input), optionalCount(end.Usage.Output),
		timestamp(end.TimeoutAt), optionalText(conversation.Clean(end.Error)), timestamp(t.CreatedAt), timestamp(end.CompletedAt),
		t.Caller.Role, t.Caller.Principal, j.trail.Count(), optionalID(t.Parent),
	}}}
	if j.records > 0 {
		statements = append(statements, j.flush())
	}
	decisions, ok, err := j.store.decisions(j.trail)
	if err != nil {
		return err
	}
	if ok {
		statements = append(statements, decisions)
	}
	return j.host.Write(ctx, statements...)
}

// flush returns the statement that writes what is buffered, and empties the buffer.
func (j *journal) flush() spi.Statement {
	t := &j.task
	s := spi.Statement{SQL: recordsSQL, Args: []any{
		append(j.buffer, ']'), t.ConversationID.String(), t.AgentID.String(), t.ID.String(),
		t.Role, t.Caller.SessionUser, t.Caller.Role, t.Caller.Principal,
	}}
	j.buffer, j.records = nil, 0
	return s
}

// add appends a record to the buffer as a JSON object whose members are those that recordsSQL names.
func (j *journal) add(r *conversation.Record) {
	b := j.buffer
	if j.records == 0 {
		b = append(b, '[')
	} else {
		b = append(b, ',')
	}
	j.records++
	b = append(append(b, `{"i":"`...), r.ID.String()...)
	if r.Sequence != uuid.Nil {
		b = append(append(b, `","s":"`...), r.Sequence.String()...)
	}
	b = append(append(b, `","t":"`...), r.Type...)
	b = append(append(b, `","st":"`...), r.Status...)
	b = append(append(b, `","c":"`...), timestamp(r.CreatedAt)...)
	b = append(append(b, `","d":"`...), timestamp(r.CompletedAt)...)
	b = append(b, '"')
	if r.Request != nil {
		b = append(append(b, `,"q":`...), r.Request...)
	}
	if r.Response != nil {
		b = append(append(b, `,"p":`...), r.Response...)
	}
	if r.Error != "" {
		text, err := json.Marshal(conversation.Clean(r.Error))
		if err == nil { // a string always marshals
			b = append(append(b, `,"e":`...), text...)
		}
	}
	j.buffer = append(b, '}')
}

func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999999Z07:00") }

func optionalCount(n *int64) any {
	if n == nil {
		return nil
	}
	return *n
}

func optionalText(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func optionalID(id *uuid.UUID) any {
	if id == nil {
		return nil
	}
	return id.String()
}
