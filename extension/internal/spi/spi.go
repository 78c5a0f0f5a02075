// Package spi is the Go face of the server: what the backend's main thread does for a run.
//
// Host is what the rest of the code sees. Runs implements it with messages (mux.go); tests implement it in memory.
// Every method waits for the main thread. An error that came from the server is a *fault.Error with the server's
// SQLSTATE, message, detail and hint; ErrGone means that the run is over and nobody listens any more.
package spi

import (
	"context"
	"errors"
	"time"
)

// ErrGone is returned when the run was cancelled or its session has ended.
var ErrGone = errors.New("the run is gone")

// ErrOtherwise is returned for a tool call that was not made because something is not as it was expected.
var ErrOtherwise = errors.New("something is not as expected")

// Statement is one of our own statements. Args are texts (nil is NULL) that the SQL casts: $1::uuid. The one argument of
// a COPY … FROM STDIN is its rows, as CopyText makes them.
type Statement struct {
	SQL     string
	Args    []any
	MaxRows int
}

// Rows is a statement's result; nil values are NULL.
type Rows struct {
	Columns []string
	Values  [][]*string
}

// Querier runs our own SQL: with the rights of the extension's owner and a pinned search_path. A batch is one round
// trip and one subtransaction: all of it happens or none.
type Querier interface {
	Batch(ctx context.Context, statements ...Statement) ([]Rows, error)
}

// Writer runs our own SQL for its effect, as Querier does, without waiting for it. A statement that fails raises its
// error in the call that the run belongs to: what cannot be written must not be reported as done.
type Writer interface {
	Write(ctx context.Context, statements ...Statement) error
}

// Param is a bound value of a tool's statement: the name of its SQL type and its text, nil for NULL.
type Param struct {
	Type  string
	Value *string
	Name  string // of the argument that the value is, for the message when it is none of the type
}

// ToolRequest is one tool call, see docs/reference/security.md for what the sandbox does with it.
type ToolRequest struct {
	Role      string // what the purpose resolved to; "" is the caller
	RoleID    string // the oid that Role must have, "" for any
	Statement string // "" only asks whether the role may use Function
	Params    []Param
	ReadOnly  bool   // everything is rolled back after the rows were copied
	Trusted   bool   // our own text, which names functions of ours: analysed with the caller's rights
	Elevated  bool   // the purpose allows a superuser role and the like
	Function  string // regprocedure whose EXECUTE the role needs, "" for none

	Fingerprint bool // Print is made of the rows
	CheckOnly   bool // only whether the role may: the statement's privileges are looked at, and it is not run
	// OwnStatement: the statement is the tool's and no argument, so that its privileges may be looked at before the guards.
	OwnStatement bool

	MaxRows  int
	MaxBytes int64
	Timeout  time.Duration

	ConversationID string // what aidb.conversation_id() and aidb.agent_name() return inside
	Agent          string

	Guards     []Guard // temporal policies that must permit the call; all of them, in one subtransaction with its effect
	Tool       string  // what they are asked about
	ToolParams string  // its arguments, JSON
	Probe      bool    // nothing that the statement and the guards write is kept

	Expected *Expected // what must be so for the call to be made; nil: nothing. Otherwise the error is ErrOtherwise
}

// Expected is the row that a LOOKUP must give.
type Expected struct {
	Lookup string
	Args   []any
	Row    []*string
}

// Guard is one machine of a temporal policy that a call has to pass. Session is the conversation; "" is one that is not
// stored, whose State is given ("" is the initial one).
type Guard struct {
	Session string
	Policy  string
	State   string
}

// Guarded is what a machine did: it let the call through, from one state to another. Event is the row that says so, ""
// when nothing is stored; WouldDeny the refusal that a log_only policy did not make.
type Guarded struct {
	From, To  string
	Event     string
	WouldDeny string
}

// ToolResult is what a tool call gave. Rows are JSON objects, one text each.
type ToolResult struct {
	Tag         string // the command, such as SELECT
	ReturnsRows bool
	Truncated   bool
	Affected    int64
	Print       int64 // tells results apart, whatever the order of their rows; also of rows that were left out
	Rows        []string
	Guarded     []Guarded // as the request's Guards
}

// What Host.Scope does.
const (
	ScopeBegin = "begin"
	ScopeKeep  = "keep"
	ScopeUndo  = "undo"
)

// Turns is the part of the main thread that knows how many requests all processes of the server have under way.
type Turns interface {
	// Admit asks for a turn. wait is how long to wait before asking again, 0 when the turn was given; why is "paused",
	// "concurrent" or "rate". Who was told to wait and does not come back says so with Leave.
	Admit(ctx context.Context, t Turn) (wait time.Duration, why string, err error)
	// Leave gives the turn back: so many tokens were thought (NeverAdmitted: it was not given) and used (0: unknown).
	Leave(key string, thought, used int64)
	// Pause lets nobody enter for a time.
	Pause(key string, d time.Duration)
}

// NeverAdmitted is said instead of the tokens of a turn that was not given.
const NeverAdmitted = -1

// Turn is a request that is to be counted: of what Key names, which people know by Name, within limits (0: none), of about
// so many tokens.
type Turn struct {
	Key, Kind, Name      string
	Concurrent, Requests int
	Limit, Tokens        int64
}

// Spending is what a caller has used today. Since is from when on it was counted here.
type Spending struct {
	Calls, Tokens, Cost int64
	Since               time.Time
}

// Spender is the part of the main thread that counts what callers use, for all sessions.
type Spender interface {
	// Spend adds, and returns what the caller has used behind all principals, and behind this one. Amounts may be below zero.
	Spend(ctx context.Context, caller, principal string, day, calls, tokens, cost int64) (all, behind Spending, err error)
}

// Host is all that a run can ask of the main thread.
type Host interface {
	Querier
	Writer
	Turns
	Spender
	Tool(ctx context.Context, r ToolRequest) (ToolResult, error)
	// LockConversation waits until no other transaction runs a call of the conversation (lock_timeout applies).
	LockConversation(ctx context.Context, id string) error
	// Secret reads an environment variable of the server ("env"), or checks that a file's path is allowed and
	// returns it ("file").
	Secret(ctx context.Context, kind, name string) (string, error)
	// Scope begins a subtransaction around the requests that follow (ScopeBegin), and ends it: what they did stays
	// (ScopeKeep) or not (ScopeUndo). There is at most one at a time.
	Scope(ctx context.Context, what string) error
	// Notice sends a NOTICE, a WARNING or a LOG line ("notice", "warning", "log").
	Notice(level, text, hint string)
}
