package testkit

import (
	"context"
	"slices"
	"sync"

	"github.com/google/uuid"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
)

// Store keeps agents and conversations in memory. What its journals write can be read back through it, as from
// the tables.
type Store struct {
	// Fail, when set, is asked before each operation ("agent", "conversation",
	// "delegates", "narrower", "begin", "append", "finish").
	Fail func(operation string) error
	// Members has the members of roles.
	Members map[string][]string

	mu     sync.Mutex
	agents map[string]*agent.Definition
	tasks  []*StoredTask
}

// StoredTask is a task with its records; End is nil while it is not finished.
type StoredTask struct {
	agent.Task
	Records []conversation.Record
	End     *agent.TaskEnd
}

// Define adds an agent.
func (s *Store) Define(d agent.Definition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.agents == nil {
		s.agents = make(map[string]*agent.Definition)
	}
	s.agents[d.Name] = &d
}

// Delete removes an agent.
func (s *Store) Delete(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.agents, name)
}

// Tasks returns the tasks so far.
func (s *Store) Tasks() []*StoredTask {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.tasks)
}

// Records returns the log of a conversation.
func (s *Store) Records(id uuid.UUID) []conversation.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []conversation.Record
	for _, t := range s.tasks {
		if t.ConversationID == id {
			all = append(all, t.Records...)
		}
	}
	return all
}

func (s *Store) fail(operation string) error {
	if s.Fail == nil {
		return nil
	}
	return s.Fail(operation)
}

// Agent implements agent.Store.
func (s *Store) Agent(_ context.Context, name string) (*agent.Definition, error) {
	if err := s.fail("agent"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.agents[name]
	if d == nil {
		return nil, nil
	}
	c := *d
	return &c, nil
}

// Conversation implements agent.Store.
func (s *Store) Conversation(_ context.Context, id uuid.UUID) (agent.Conversation, error) {
	if err := s.fail("conversation"); err != nil {
		return agent.Conversation{}, err
	}
	c := agent.Conversation{ID: id, Records: s.Records(id)}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tasks {
		if t.ConversationID == id {
			c.Exists, c.Agent = true, t.Agent
			c.Role, c.SessionUser, c.Principal = t.Caller.Role, t.Caller.SessionUser, t.Caller.Principal
			break
		}
	}
	return c, nil
}

// Delegates implements agent.Store.
func (s *Store) Delegates(_ context.Context, names []string) ([]agent.Delegate, error) {
	if err := s.fail("delegates"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []agent.Delegate
	for _, name := range names {
		if d := s.agents[name]; d != nil && d.Enabled {
			found = append(found, agent.Delegate{Name: name, Instructions: d.Instructions})
		}
	}
	return found, nil
}

// Narrower implements agent.Store: by Members.
func (s *Store) Narrower(_ context.Context, purposeRole, role string) (bool, error) {
	return slices.Contains(s.Members[purposeRole], role), s.fail("narrower")
}

// NewJournal returns a journal that writes to the store.
func (s *Store) NewJournal() agent.Journal { return &journal{store: s} }

type journal struct {
	store *Store
	task  *StoredTask
}

func (j *journal) Begin(_ context.Context, t agent.Task) error {
	if err := j.store.fail("begin"); err != nil {
		return err
	}
	j.task = &StoredTask{Task: t}
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	j.store.tasks = append(j.store.tasks, j.task)
	return nil
}

func (j *journal) Append(_ context.Context, records ...conversation.Record) error {
	if err := j.store.fail("append"); err != nil {
		return err
	}
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	j.task.Records = append(j.task.Records, records...)
	return nil
}

func (j *journal) Finish(_ context.Context, end agent.TaskEnd) error {
	if err := j.store.fail("finish"); err != nil {
		return err
	}
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	j.task.End = &end
	return nil
}
