package main

import (
	"context"

	"github.com/google/uuid"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/model/dummy"
	"aidb/extension/internal/pgstore"
	"aidb/extension/internal/spi"
)

// runTask runs one background task, which the worker's main thread has claimed (worker/tasks.c). Its arguments: the
// worker's number; the task's id, agent, conversation, prompt, read_only, output type; whether it was begun before. An
// error gives the task back, to be taken up again from its last step.
func (w *wiring) runTask(ctx context.Context, host spi.Host, s spi.Start) (int, [][]*string, error) {
	steps := spi.NewSteps(host)
	p, err := w.parts(steps, s)
	if err != nil {
		return 0, nil, err
	}
	id, err := uuid.Parse(stringArg(s, 1))
	if err != nil {
		return 0, nil, fault.Wrap(err, fault.Internal, "the worker gave a task without an id")
	}
	holder := pgstore.TaskHolder{Host: steps, Worker: stringArg(s, 0), Top: id, Ended: new(bool), Parked: new(bool)}
	// a task is to its scripts what a session is: they begin with it
	p.models.scripts = dummy.NewProvider()
	resumed := boolArg(s, 7)
	boxes := w.toolboxes(p)
	boxes.Steps = steps
	service := &agent.Service{
		Store: p.store, Models: p.models, Toolboxes: boxes,
		NewJournal: func() agent.Journal { return p.store.TaskJournal(p.trail, holder) },
		Clock:      agent.SystemClock{}, IDs: agent.UUIDv7{}, Tracer: tracer{steps, w.redact}, Decisions: p.trail, Narrowest: w.delegatesNarrow(),
		OpenModel: p.models.OpenNamed, Redact: w.redact,
		Background: &agent.Background{Task: id, Resumed: resumed != nil && *resumed, Past: p.store.Past},
	}
	call := agent.Call{
		Agent: stringArg(s, 2), ConversationID: arg(s, 3), Prompt: stringArg(s, 4), ReadOnly: boolArg(s, 5), OutputType: rawArg(s, 6),
		Caller: agent.Caller{Role: s.Caller, SessionUser: s.SessionUser, Principal: s.Principal, Superuser: s.Superuser},
	}
	p.trail.Base.Agent = call.Agent
	out, err := service.Converse(ctx, call)
	if counted := p.account(ctx, err == nil); err == nil {
		err = counted
	}
	if err != nil {
		return 0, nil, err
	}
	if out.Error != nil && !*holder.Ended { // it could not even begin
		if err := p.store.EndTask(ctx, holder, *out.Error); err != nil {
			return 0, nil, err
		}
	}
	if err := p.record(ctx); err != nil {
		return 0, nil, err
	}
	w.export(ctx, p, call, out)
	return 0, nil, nil
}
