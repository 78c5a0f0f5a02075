package decision

import (
	"time"

	"github.com/google/uuid"
)

// Trail collects the decisions of one run. It is not for concurrent use: a run does one thing at a time.
type Trail struct {
	// Base has what is the same in every record of the run: who asked, for which agent.
	Base Record
	// NewID makes the records' ids.
	NewID func() uuid.UUID

	records []Record
	taken   int
}

// Add completes a record with what the run has in common, keeps it and returns its id.
func (t *Trail) Add(r Record) uuid.UUID {
	b := t.Base
	r.ID = t.NewID()
	r.ConversationID, r.TaskID, r.Agent, r.Purpose = b.ConversationID, b.TaskID, b.Agent, b.Purpose
	r.Principal, r.Caller, r.SessionUser = b.Principal, b.Caller, b.SessionUser
	if r.Role == "" {
		r.Role = b.Role
	}
	r.At = r.At.Truncate(time.Microsecond)
	// The order of a run's records is that of their times.
	if n := len(t.records); n > 0 && !r.At.After(t.records[n-1].At) {
		r.At = t.records[n-1].At.Add(time.Microsecond)
	}
	t.records = append(t.records, r)
	return r.ID
}

// Take returns the records that were not taken before.
func (t *Trail) Take() []Record {
	fresh := t.records[t.taken:]
	t.taken = len(t.records)
	return fresh
}

// Records returns all records of the run so far.
func (t *Trail) Records() []Record { return t.records }

// Pending reports whether there are records that were not taken.
func (t *Trail) Pending() bool { return t.taken < len(t.records) }

// Count is how many records the run has made so far.
func (t *Trail) Count() int { return len(t.records) }
