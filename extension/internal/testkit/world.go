package testkit

import (
	"context"
	"slices"
	"sync"

	"github.com/google/uuid"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/decision"
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
	Trail     *decision.Trail
	Service   *agent.Service

	models Models
	others uint64
}

// AddAgent defines another agent, with a model of its own that has the script, and returns the model. Change makes
// further settings of the agent; it may be nil.
func (w *World) AddAgent(name string, change func(*agent.Definition), turns ...Turn) *Model {
	m := NewModel(turns...)
	w.others++
	d := agent.Definition{
		ID: ID(1<<40 + w.others), Name: name, Instructions: "You are " + name + ".", ModelName: name + "_model",
		Model: &agent.ModelRef{Name: name + "_model", Provider: "scripted"}, Strategy: agent.StrategyAttemptComplete, Enabled: true, Owner: "ann",
	}
	if change != nil {
		change(&d)
	}
	w.models.Named[d.ModelName] = m
	w.Store.Define(d)
	return m
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
	w.Trail = &decision.Trail{NewID: uuid.New, Base: decision.Record{Agent: "helper", Caller: Ann.Role, Role: Ann.Role}}
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
	w.models = Models{Model: w.Model, Named: map[string]agent.Model{}}
	w.Service = &agent.Service{
		Store:      w.Store,
		Models:     w.models,
		Toolboxes:  w.Toolboxes,
		NewJournal: w.Store.NewJournal,
		Clock:      w.Clock,
		IDs:        w.IDs,
		Tracer:     w.Tracer,
		Decisions:  w.Trail,
	}
	return w
}

// Ask runs one call of Ann's with the agent.
func (w *World) Ask(prompt string) (agent.Outcome, error) {
	return w.Service.Converse(context.Background(), agent.Call{Agent: "helper", Prompt: prompt, Caller: Ann})
}
