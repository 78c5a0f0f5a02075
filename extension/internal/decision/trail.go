package decision

import (
	"time"

	"github.com/google/uuid"
)

// Trail collects the decisions of one call, in the one order in which they were made. A call may hold runs within the
// run (an agent that delegates to another): Base is then that of the run in hand. It is not for concurrent use: a call
// does one thing at a time.
type Trail struct {
	// Base has what is the same in every record of the run in hand: who asked, for which agent.
	Base Record
	// NewID makes the records' ids.
	NewID func() uuid.UUID
	// Redact takes secrets out of statements; nil: nothing does.
	Redact func(string) string
	// MessageID is the call's prompt in the log, "" where none is kept.
	MessageID string
	// Made is told of each record at once; nil: nobody is.
	Made func()

	records []Record
	taken   int
	own     int // records of the run in hand
}

// Enter begins a run of an agent within the run in hand: who asked stays the same, the rest of Base is the new run's
// to fill in. What it returns ends it.
func (t *Trail) Enter(agent string) (leave func()) {
	outer, own := t.Base, t.own
	t.Base.Agent, t.own = agent, 0
	t.Base.Purpose, t.Base.TaskID, t.Base.ConversationID = "", "", ""
	return func() { t.Base, t.own = outer, own }
}

// Add completes a record with what the run in hand has in common, keeps it and returns its id.
func (t *Trail) Add(r Record) uuid.UUID {
	b := t.Base
	r.ID = t.NewID()
	r.ConversationID, r.TaskID, r.Agent, r.Purpose = b.ConversationID, b.TaskID, b.Agent, b.Purpose
	r.Principal, r.Caller, r.SessionUser = b.Principal, b.Caller, b.SessionUser
	if r.Role == "" {
		r.Role = b.Role
	}
	if t.Redact != nil && r.Query != "" {
		r.Hashed = r.QueryHash()
		r.Query, r.Object = t.Redact(r.Query), t.Redact(r.Object)
	}
	r.At = r.At.Truncate(time.Microsecond)
	// The order of a call's records is that of their times.
	if n := len(t.records); n > 0 && !r.At.After(t.records[n-1].At) {
		r.At = t.records[n-1].At.Add(time.Microsecond)
	}
	t.records = append(t.records, r)
	t.own++
	if t.Made != nil {
		t.Made()
	}
	return r.ID
}

// Take returns the records that were not taken before.
func (t *Trail) Take() []Record {
	fresh := t.records[t.taken:]
	t.taken = len(t.records)
	return fresh
}

// Records returns all records of the call so far.
func (t *Trail) Records() []Record { return t.records }

// Pending reports whether there are records that were not taken.
func (t *Trail) Pending() bool { return t.taken < len(t.records) }

// Count is how many records the run in hand has made so far, those of runs within it apart.
func (t *Trail) Count() int { return t.own }
