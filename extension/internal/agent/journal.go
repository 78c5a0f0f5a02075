package agent

// What a run writes down.

import (
	"context"
	"time"

	"github.com/google/uuid"

	"aidb/extension/internal/conversation"
)

// log turns a step into a record, and into a debug line as it happens.
func (r *run) log(l Log) {
	if l.Line != "" {
		r.service.Tracer.Notice(l.Line)
	}
	if r.journal == nil {
		return
	}
	now := r.service.Clock.Now()
	rec := conversation.Record{
		ID:          r.task.PromptID,
		Type:        l.Type,
		Request:     l.Request,
		Response:    l.Response,
		Status:      l.Status,
		Error:       l.Error,
		CreatedAt:   r.created(now),
		CompletedAt: stamp(now),
	}
	if l.Timed {
		rec.CreatedAt = r.created(r.sent)
	}
	if rec.CompletedAt.Before(rec.CreatedAt) {
		rec.CompletedAt = rec.CreatedAt
	}
	r.last = rec.CreatedAt
	if l.Type != conversation.UserPrompt {
		rec.ID = r.service.IDs.New()
	}
	if l.Type == conversation.Answer {
		id := rec.ID
		r.answer = &id
	}
	if r.sequence == uuid.Nil || l.Round != r.round {
		r.sequence, r.round = rec.ID, l.Round // a round goes by its first step: one id less to make and to keep
	}
	rec.Sequence = r.sequence
	r.state.Logged(l, rec.ID)
	r.records = append(r.records, rec)
}

// created is a time after that of the record before: the order of the log is the order of its times.
func (r *run) created(t time.Time) time.Time {
	if t = stamp(t); t.After(r.last) {
		return t
	}
	return r.last.Add(time.Microsecond)
}

// append hands the records of a step to the journal.
func (r *run) append(ctx context.Context) error {
	if len(r.records) == 0 {
		return nil
	}
	err := r.journal.Append(ctx, r.records...)
	r.records = r.records[:0]
	if err != nil {
		return raised(ctx, err)
	}
	return nil
}
