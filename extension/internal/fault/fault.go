// Package fault is the vocabulary of failure: every error that leaves a package of the core is one of a few
// kinds, carries the parts of a PostgreSQL error message (primary text, detail, hint) and has exactly one
// SQLSTATE. Callers branch on the kind, never on the text.
//
// Two things are not errors of this package: a tool that failed (the model sees that as a result, see
// agent.Result) and an agent that reached a limit (the caller sees that as a row with its error column set).
package fault

import (
	"errors"
	"fmt"
)

// Error is one failure, in the shape in which PostgreSQL reports it.
//
// Message is one line without a full stop; Detail and Hint are whole sentences. None of them holds a secret, a
// prompt or row data: whoever makes the error keeps them out.
type Error struct {
	Kind    Kind
	Message string
	Detail  string
	Hint    string
	// SQLState is the one that the server itself gave; "" means that the kind's own one applies.
	SQLState string
	// Err is the cause, for errors.Is and errors.As only: its text is not shown unless Message is empty.
	Err error
}

// New returns an error of the kind with a primary message.
func New(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// Wrap returns an error of the kind with a primary message, keeping the cause for errors.Is and errors.As.
func Wrap(err error, kind Kind, format string, args ...any) *Error {
	e := New(kind, format, args...)
	e.Err = err
	return e
}

// Error returns the primary message.
func (e *Error) Error() string {
	if e.Message == "" && e.Err != nil {
		return e.Err.Error()
	}
	return e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// WithDetail returns a copy of the error with a detail sentence.
func (e *Error) WithDetail(format string, args ...any) *Error {
	c := *e
	c.Detail = New(e.Kind, format, args...).Message
	return &c
}

// WithHint returns a copy of the error with a hint sentence.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = New(e.Kind, format, args...).Message
	return &c
}

// WithState returns a copy of the error with the SQLSTATE that the server gave.
func (e *Error) WithState(state string) *Error {
	c := *e
	c.SQLState = state
	return &c
}

// KindOf returns the kind of the first *Error in the chain, Unclassified when there is none.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Unclassified
}

// Is reports whether the error is of one of the kinds.
func Is(err error, kinds ...Kind) bool {
	k := KindOf(err)
	for _, want := range kinds {
		if k == want {
			return true
		}
	}
	return false
}

// SQLState returns the SQLSTATE to report: the server's own when the error came from it, else the kind's.
func SQLState(err error) string {
	var e *Error
	if !errors.As(err, &e) {
		return Unclassified.SQLState()
	}
	if len(e.SQLState) == 5 {
		return e.SQLState
	}
	return e.Kind.SQLState()
}
