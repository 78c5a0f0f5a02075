package testkit

import (
	"context"
	"slices"
	"sync"

	"aidb/extension/internal/agent"
)

// Tracer keeps what was said to the session.
type Tracer struct {
	mu       sync.Mutex
	notices  []string
	warnings []string
}

// Notice implements agent.Tracer.
func (t *Tracer) Notice(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notices = append(t.notices, text)
}

// Warning implements agent.Tracer.
func (t *Tracer) Warning(text, _ string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.warnings = append(t.warnings, text)
}

// Notices returns the notices so far.
func (t *Tracer) Notices() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.notices)
}

// Warnings returns the warnings so far.
func (t *Tracer) Warnings() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.warnings)
}

// World is everything an agent.Service needs, and one agent named "helper".
type World struct {
	Clock     *Clock
	IDs       *IDs
	Tracer    *Tracer
	Store     *Store
	Toolboxes *Toolboxes
	Model     *Model
	Service   *agent.Service
}

// Ann is the caller of World.Ask.
var Ann = agent.Caller{Role: "ann", SessionUser: "ann"}

// NewWorld returns a world whose agent has the tools and whose model has the script. Change makes further settings
// of the agent; it may be nil.
func NewWorld(tools map[string]ToolFunc, change func(*agent.Definition), turns ...Turn) *World {
	w := &World{
		Clock:     &Clock{},
		IDs:       &IDs{},
		Tracer:    &Tracer{},
		Store:     &Store{},
		Toolboxes: &Toolboxes{Tools: tools},
		Model:     NewModel(turns...),
	}
	d := agent.Definition{
		ID:           ID(1 << 40),
		Name:         "helper",
		Instructions: "You help.",
		ModelName:    "m",
		Model:        &agent.ModelRef{Name: "m", Provider: "scripted"},
		Strategy:     agent.StrategyAttemptComplete,
		Enabled:      true,
		Owner:        "ann",
	}
	for name := range tools {
		d.Tools = append(d.Tools, name)
	}
	slices.Sort(d.Tools)
	if change != nil {
		change(&d)
	}
	w.Store.Define(d)
	w.Service = &agent.Service{
		Store:      w.Store,
		Models:     Models{Model: w.Model},
		Toolboxes:  w.Toolboxes,
		NewJournal: w.Store.NewJournal,
		Clock:      w.Clock,
		IDs:        w.IDs,
		Tracer:     w.Tracer,
	}
	return w
}

// Ask runs one call of Ann's with the agent.
func (w *World) Ask(prompt string) (agent.Outcome, error) {
	return w.Service.Converse(context.Background(), agent.Call{Agent: "helper", Prompt: prompt, Caller: Ann})
}
