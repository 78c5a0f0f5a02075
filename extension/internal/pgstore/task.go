package pgstore

// Background tasks: their steps, and what is left of those that were cut off.

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/decision"
	"aidb/extension/internal/spi"
)

// StepHost is the host of a background task; see spi.Steps.
type StepHost interface {
	Host
	End(ctx context.Context, statements ...spi.Statement) error
}

// TaskHolder says who writes: the worker that has the task in hand. Top is the task that was submitted, the others are
// its delegates'. Ended is set when that one has ended; Parked when it waits, and no more is written.
type TaskHolder struct {
	Host   StepHost
	Worker string
	Top    uuid.UUID
	Ended  *bool
	Parked *bool
}

// taskJournal writes one run of a background task, each step in a transaction with what the step has done.
type taskJournal struct {
	journal
	holder   TaskHolder
	progress agent.Progress
	begun    bool
}

// TaskJournal returns a journal for one run of a background task.
func (s *Store) TaskJournal(t *decision.Trail, h TaskHolder) agent.Journal {
	return &taskJournal{journal: journal{host: s.host, store: s, trail: t}, holder: h}
}

// A delegate's task; that of the submitter was there before.
const beginTaskSQL = `
INSERT INTO aidb_internal.agent_task_queue (
    id, agent_id, conversation_id, request_message_id, role, initiated_by, status, blocking, timeout_at, created_at, started_at,
    caller, principal, parent_task_id, phase, phase_at, attempts)
VALUES ($1::uuid, $2::uuid, $3::uuid, $4::uuid, $5, $6, 'IN_PROGRESS', false, $7::timestamptz, $8::timestamptz, $8::timestamptz,
    $9, $10, $11::uuid, 'model', clock_timestamp(), 0)
ON CONFLICT (id) DO NOTHING`

const stepTaskSQL = `SELECT aidb_internal.step_task($1::uuid, $2::bigint, $3::uuid, $4, $5::integer, $6::bigint, $7::bigint, $8)`

const endTaskSQL = `
SELECT aidb_internal.end_task($1::uuid, $2::bigint, $3::uuid, $4::aidb.task_status, $5, $6::uuid, $7::uuid, $8::integer, $9::integer,
    $10::bigint, $11::bigint, $12::timestamptz, $13::timestamptz, $14, $15::numeric)`

const parkTaskSQL = `SELECT aidb_internal.park_task($1::uuid, $2::bigint, $3::uuid, $4::integer, $5::bigint, $6::bigint, $7,
    $8::timestamptz, $9::timestamptz)`

// Park implements agent.ProgressJournal: with what was proposed, in the step that is open.
func (j *taskJournal) Park(ctx context.Context, until, end time.Time) error {
	p, h := &j.progress, &j.holder
	if *h.Parked {
		return nil
	}
	*h.Parked = true
	var wake any
	if !until.IsZero() {
		wake = timestamp(until)
	}
	return h.Host.End(ctx, append(j.written(), spi.Statement{SQL: parkTaskSQL, Args: []any{
		h.Top.String(), h.Worker, j.task.ID.String(), p.Rounds, optionalNumber(p.Usage.Input), optionalNumber(p.Usage.Output), j.task.Role,
		wake, timestamp(end),
	}})...)
}

// Progress implements agent.ProgressJournal.
func (j *taskJournal) Progress(p agent.Progress) { j.progress = p }

// Append implements agent.Journal. The last step is written by Finish.
func (j *taskJournal) Append(ctx context.Context, records ...conversation.Record) error {
	for i := range records {
		j.steps.add(&records[i])
	}
	if j.progress.Final {
		return nil
	}
	p, h := &j.progress, &j.holder
	return h.Host.End(ctx, append(j.written(), spi.Statement{SQL: stepTaskSQL, Args: []any{
		h.Top.String(), h.Worker, j.task.ID.String(), p.Phase, p.Rounds, optionalNumber(p.Usage.Input), optionalNumber(p.Usage.Output),
		j.task.Role,
	}})...)
}

// Finish implements agent.Journal.
func (j *taskJournal) Finish(ctx context.Context, end agent.TaskEnd) error {
	h := &j.holder
	if j.task.ID == h.Top {
		*h.Ended = true
	}
	var cost any
	if end.Cost != nil {
		cost = conversation.Money(*end.Cost)
	}
	return h.Host.End(ctx, append(j.written(), spi.Statement{SQL: endTaskSQL, Args: []any{
		h.Top.String(), h.Worker, j.task.ID.String(), end.Status, optionalText(conversation.Clean(end.Error)),
		end.PromptID.String(), optionalText(idText(end.AnswerID)), end.BudgetConsumed, end.Rounds,
		optionalNumber(end.Usage.Input), optionalNumber(end.Usage.Output), timestamp(end.TimeoutAt), timestamp(end.CompletedAt),
		j.task.Role, cost,
	}})...)
}

// written is the statements that write what is buffered: the task, its records, its decisions.
func (j *taskJournal) written() []spi.Statement {
	var statements []spi.Statement
	t := &j.task
	if !j.begun && t.Parent != nil {
		statements = append(statements, spi.Statement{SQL: beginTaskSQL, Args: []any{
			t.ID.String(), t.AgentID.String(), t.ConversationID.String(), t.PromptID.String(), t.Role, t.Caller.SessionUser,
			timestamp(t.TimeoutAt), timestamp(t.CreatedAt), t.Caller.Role, t.Caller.Principal, t.Parent.String(),
		}})
	}
	j.begun = true
	return append(statements, j.logged()...)
}

const pastTaskSQL = `
SELECT t.status, t.error, t.conversation_id, (extract(epoch FROM coalesce(t.started_at, t.created_at)) * 1000000)::bigint,
       coalesce((extract(epoch FROM t.timeout_at) * 1000000)::bigint, 0), l.response_payload ->> 'contents'
FROM aidb_internal.agent_task_queue t
LEFT JOIN aidb_internal.action_log l ON l.task_id = t.id AND l.id = t.response_message_id
WHERE t.id = $1::uuid`

const pastRecordsSQL = `
SELECT l.id, l.sequence_id, l.action_type, l.request_payload, l.response_payload, l.status, l.error,
       (extract(epoch FROM l.created_at) * 1000000)::bigint, (extract(epoch FROM coalesce(l.completed_at, l.created_at)) * 1000000)::bigint
FROM aidb_internal.action_log l
WHERE l.task_id = $1::uuid AND l.action_type <> 'approval'
ORDER BY l.created_at, l.id`

// Past reads what was committed of a background task; nil when it was never begun.
func (s *Store) Past(ctx context.Context, task uuid.UUID) (*agent.Past, error) {
	id := task.String()
	rows, err := s.host.Batch(ctx, spi.Statement{SQL: pastTaskSQL, Args: []any{id}}, spi.Statement{SQL: pastRecordsSQL, Args: []any{id}})
	if err != nil {
		return nil, err
	}
	r, ok := firstRow(rows)
	if !ok {
		return nil, nil
	}
	p := &agent.Past{}
	status, failure := r.text(), r.optional()
	conversationID := r.id()
	p.Begun = agent.Task{ID: task, ConversationID: conversationID, CreatedAt: r.micros(), TimeoutAt: r.micros()}
	answer := r.optional()
	if r.err != nil {
		return nil, r.err
	}
	switch status {
	case "PENDING", "RECOVERY", "AWAIT_APPROVAL", conversation.StatusInProgress:
	case conversation.StatusSuccess:
		text := conversationID.String()
		p.End = &agent.Outcome{Message: answer, ConversationID: &text}
	case conversation.StatusDenied:
		if p.End = (&agent.Outcome{Error: failure}); answer != nil {
			text := conversationID.String()
			p.End = &agent.Outcome{Message: answer, ConversationID: &text}
			if failure != nil {
				p.Declined = *failure
			}
		}
	default:
		p.End = &agent.Outcome{Error: failure}
	}
	for _, values := range rows[1].Values {
		r := row{values: values}
		rec := conversation.Record{ID: r.id(), Sequence: r.id(), Type: conversation.ActionType(r.text())}
		rec.Request, rec.Response = r.raw(), r.raw()
		rec.Status, rec.Error, rec.CreatedAt, rec.CompletedAt = r.text(), r.text(), r.micros(), r.micros()
		if r.err != nil {
			return nil, r.err
		}
		p.Records = append(p.Records, rec)
	}
	return p, nil
}

// micros reads a time as microseconds since 1970: its text would depend on the session's settings.
func (r *row) micros() time.Time {
	var n json.Number
	r.json(&n)
	us, err := n.Int64()
	if err != nil && r.err == nil {
		r.fail("a time", err)
	}
	return time.UnixMicro(us).UTC()
}

// EndTask ends a task that could not be run at all.
func (s *Store) EndTask(ctx context.Context, h TaskHolder, why string) error {
	return h.Host.End(ctx, spi.Statement{SQL: `SELECT aidb_internal.refuse_task($1::uuid, $2::bigint, $3)`,
		Args: []any{h.Top.String(), h.Worker, conversation.Clean(why)}})
}

func optionalNumber(n *int64) any {
	if n == nil {
		return nil
	}
	return *n
}
