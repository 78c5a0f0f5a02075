package pgtool

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"

	"aidb/extension/internal/approval"
	"aidb/extension/internal/decision"
)

// Reply implements agent.Actions: the next prompt of a conversation in which actions wait.
func (p *Approvals) Reply(ctx context.Context, conversation uuid.UUID, prompt string, confirms bool) (string, error) {
	open, err := p.Store.OpenActions(ctx, conversation)
	if err != nil || len(open) == 0 {
		return "", err
	}
	yes := false
	if confirms {
		words, err := p.Store.Words(ctx)
		if err != nil {
			return "", err
		}
		yes = approval.Affirms(prompt, words)
	}
	now := p.Runner.now()
	var notes []string
	var told []uuid.UUID
	for _, a := range open {
		if a.Status == approval.Pending {
			if err := p.answer(ctx, a, now, confirms, &yes); err != nil {
				return "", err
			}
		}
		if a.Status != approval.Pending {
			notes, told = append(notes, approval.Note(a)), append(told, a.ID)
		}
	}
	if len(told) == 0 {
		return "", nil
	}
	return strings.Join(notes, "\n"), p.Store.Told(ctx, told)
}

// answer decides one action that waits. A yes that stopped half way does not reach those behind it.
func (p *Approvals) answer(ctx context.Context, a *approval.Action, now time.Time, confirms bool, yes *bool) error {
	switch {
	case !now.Before(a.ExpiresAt):
		return p.expire(ctx, a)
	case !confirms || len(a.Approvers) > 0:
		return nil // it is answered elsewhere, perhaps by somebody else
	}
	defer p.enter(a)()
	if !*yes || approval.MayConfirm(a, p.Person, false, a.Token, now) != nil {
		a.Status = approval.Rejected
		return p.decided(ctx, a, approval.WasRejected, decision.ActionRejected)
	}
	if err := p.confirm(ctx, a); err != nil {
		return err
	}
	*yes = a.Status == approval.Done
	return nil
}
