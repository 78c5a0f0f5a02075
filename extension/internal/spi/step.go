package spi

import (
	"context"

	"aidb/extension/internal/seam"
)

// Steps is the host of a background task, whose transactions are steps: a tool call, what it logs and what the task does
// next. A step begins with Begin, or with the first tool call, and ends with End. Requests outside of one are
// transactions of their own, so that none is open while a model is waited for. It is for the one goroutine of its task.
type Steps struct {
	Host
	edges edges
	open  bool
}

// edges are the ends of a step; run implements them.
type edges interface {
	begin() error
	commit() error
}

// NewSteps returns the host of a background task, given that of its run.
func NewSteps(host Host) *Steps {
	e, ok := host.(edges)
	if !ok {
		e = single{} // a host in memory has no transactions
	}
	return &Steps{Host: host, edges: e}
}

type single struct{}

func (single) begin() error  { return nil }
func (single) commit() error { return nil }

func (r *run) begin() error { return r.tell(seam.ReqBegin, 0, &seam.Writer{}) }

func (r *run) commit() error {
	_, err := r.ask(seam.ReqCommit, &seam.Writer{})
	return err
}

// Begin begins a step, unless one is open.
func (s *Steps) Begin(context.Context) error {
	if s.open {
		return nil
	}
	if err := s.edges.begin(); err != nil {
		return err
	}
	s.open = true
	return nil
}

// Tool implements Host: the call is part of the step in hand. A request without a statement only asks, and leaves no
// step open: what is permitted by it may take long.
func (s *Steps) Tool(ctx context.Context, r ToolRequest) (ToolResult, error) {
	asks := (r.Statement == "" || r.CheckOnly) && !s.open
	if err := s.Begin(ctx); err != nil {
		return ToolResult{}, err
	}
	result, err := s.Host.Tool(ctx, r)
	if asks {
		if end := s.End(ctx); end != nil {
			return ToolResult{}, end
		}
	}
	return result, err
}

// Scope implements Host: it is a part of the step in hand.
func (s *Steps) Scope(ctx context.Context, what string) error {
	if err := s.Begin(ctx); err != nil {
		return err
	}
	return s.Host.Scope(ctx, what)
}

// Write implements Writer. Outside a step it waits: what nobody waits for could be lost.
func (s *Steps) Write(ctx context.Context, statements ...Statement) error {
	if s.open {
		return s.Host.Write(ctx, statements...)
	}
	_, err := s.Host.Batch(ctx, statements...)
	return err
}

// End commits the statements with the step in hand, or on their own. When it returns, they are there for good.
func (s *Steps) End(ctx context.Context, statements ...Statement) error {
	if !s.open {
		if len(statements) == 0 {
			return nil
		}
		return s.Write(ctx, statements...)
	}
	if len(statements) > 0 {
		if err := s.Host.Write(ctx, statements...); err != nil {
			return err
		}
	}
	s.open = false
	return s.edges.commit()
}

// LockConversation implements Host: a task is only begun when its conversation is free, and stays its only one.
func (s *Steps) LockConversation(context.Context, string) error { return nil }
