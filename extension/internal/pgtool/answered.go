package pgtool

// What became of a call for which a background task was put aside.

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/approval"
	"aidb/extension/internal/conversation"
)

// actionID is the id of the action that the call in hand becomes. In the background it is made of the task's and of the
// number of the call, so that whoever takes the task up again finds it.
func (b *box) actionID() uuid.UUID {
	if b.opener.Steps == nil {
		return b.opener.IDs.New()
	}
	return uuid.NewSHA1(b.request.TaskID, []byte("action "+strconv.Itoa(b.number)))
}

// Answered implements agent.Waiter. It opens the step in which the answer is logged, and closes it where there is none.
func (b *box) Answered(ctx context.Context, call conversation.ToolCall, n int, began, end time.Time) (*agent.Result, error) {
	b.number = n
	if b.opener.Steps == nil {
		return nil, nil
	}
	if call.Name == sleepTool {
		return rest(b.tools[sleepTool], call.Arguments, began, b.runner.now(), end), nil
	}
	if err := b.opener.Steps.Begin(ctx); err != nil {
		return nil, err
	}
	a, busy, err := b.opener.Actions.AwaitedAction(ctx, b.actionID())
	switch {
	case err != nil:
		return nil, err
	case busy:
		return &agent.Result{Waits: true}, nil
	case a == nil:
		return nil, b.opener.Steps.End(ctx)
	}
	if a.Status == approval.Pending {
		now := b.runner.now()
		if now.Before(a.ExpiresAt) {
			return &agent.Result{Waits: true}, nil
		}
		p := &Approvals{Store: b.opener.Actions, Runner: b.runner, Person: a.Requester}
		if err := p.expire(ctx, a); err != nil {
			return nil, err
		}
	}
	if err := b.opener.Actions.Told(ctx, []uuid.UUID{a.ID}); err != nil {
		return nil, err
	}
	contents := asJSON(struct {
		Status approval.Status    `json:"status"`
		Note   string             `json:"note"`
		Steps  []approval.Outcome `json:"steps,omitempty"`
	}{a.Status, "The action " + a.Fate(), a.Outcomes})
	return &agent.Result{Contents: approval.Scrub(contents), Action: a.ID.String(), Declined: a.Declined()}, nil
}
