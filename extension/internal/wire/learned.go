package wire

import (
	"slices"
	"sync"
)

// Learned is what a model's run has learned about its server: S is how the server wants requests to be spelt, K what it wants
// back of a reply. The zero value is ready for use, also concurrent use.
type Learned[S, K any] struct {
	mu    sync.Mutex
	spelt S
	kept  []K
}

// Spelling is the newest one.
func (l *Learned[S, K]) Spelling() S {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.spelt
}

// Spell remembers a spelling.
func (l *Learned[S, K]) Spell(s S) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spelt = s
}

// Kept is what there is so far.
func (l *Learned[S, K]) Kept() []K {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept
}

// Keep remembers something of a reply.
func (l *Learned[S, K]) Keep(k K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// A request that is being written reads the old slice.
	l.kept = append(slices.Clip(l.kept), k)
}
