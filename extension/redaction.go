package main

import (
	"context"
	"encoding/json"
	"errors"

	"aidb/extension/internal/fault"
	"aidb/extension/internal/redact"
	"aidb/extension/internal/spi"
)

// redaction is the one redactor of the process: all that is logged, shown, recorded, traced or raised goes through it. It
// is made anew when what is registered changes, which every call sees with the first row that it reads.
type redaction struct {
	off   bool // aidb.redaction
	rules string
	made  *redact.Redactor
}

// redactWith takes over the registered rules: {"columns": […], "patterns": […]}, nothing when there are none.
func (w *wiring) redactWith(rules json.RawMessage) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.redaction.made != nil && w.redaction.rules == string(rules) {
		return nil
	}
	var parsed redact.Rules
	if len(rules) > 0 {
		if err := json.Unmarshal(rules, &parsed); err != nil {
			return fault.Wrap(err, fault.Internal, "redactions cannot be read")
		}
	}
	made, err := redact.New(parsed)
	if err != nil {
		// Nothing is logged without the rules: that is what they are for.
		return fault.Wrap(err, fault.WrongState, "the registered redactions cannot be used: %s", fault.Cut(err.Error(), 500)).
			WithHint("Look at aidb.redactions and remove the one that is wrong.")
	}
	w.redaction.rules, w.redaction.made = string(rules), made
	return nil
}

// redact takes the secrets out of a text.
func (w *wiring) redact(text string) string {
	w.mu.Lock()
	r := w.redaction
	w.mu.Unlock()
	if r.off {
		return text
	}
	if r.made == nil {
		if err := w.redactWith(nil); err != nil {
			return redact.Mark
		}
		return w.redact(text)
	}
	return r.made.Text(text)
}

// redactError is an error as it may be raised.
func (w *wiring) redactError(err error) error {
	var e *fault.Error
	if err == nil || !errors.As(err, &e) {
		return err
	}
	c := *e
	c.Message, c.Detail, c.Hint, c.Err = w.redact(e.Error()), w.redact(e.Detail), w.redact(e.Hint), err
	return &c
}

// checkPattern says what is wrong with a pattern that is to be registered.
func (w *wiring) checkPattern(_ context.Context, _ spi.Host, s spi.Start) (int, [][]*string, error) {
	if _, err := redact.Pattern(stringArg(s, 0)); err != nil {
		problem := fault.Cut(err.Error(), 500)
		return 1, [][]*string{{&problem}}, nil
	}
	return 1, [][]*string{{nil}}, nil
}
