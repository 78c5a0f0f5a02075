package testkit

import (
	"encoding/binary"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Clock is a clock that moves a millisecond with each look at it, and as far as it is told to. The zero value is
// ready for use.
type Clock struct {
	mu    sync.Mutex
	moved time.Duration
}

// Epoch is when every Clock starts.
var Epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Now returns the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moved += time.Millisecond
	return Epoch.Add(c.moved)
}

// Advance moves the clock.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moved += d
}

// IDs counts: 00000000-0000-7000-8000-000000000001 and so on. The zero value is ready for use.
type IDs struct {
	mu sync.Mutex
	n  uint64
}

// New returns the next id.
func (i *IDs) New() uuid.UUID {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.n++
	return ID(i.n)
}

// ID is the n-th id of an IDs.
func ID(n uint64) uuid.UUID {
	u := uuid.UUID{6: 0x70}
	binary.BigEndian.PutUint64(u[8:], n)
	u[8] |= 0x80
	return u
}
