package pgstore

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/decision"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/spi"
	"aidb/extension/internal/tool"
)

// Host is what the store needs of the main thread.
type Host interface {
	spi.Querier
	LockConversation(ctx context.Context, id string) error
}

// Store reads the tables for one run. It keeps the tools that came with an agent, so that opening that agent's
// toolbox is not another round trip; it is not for concurrent use.
type Store struct {
	host  Host
	tools map[string]tool.Tool
	asked map[string]bool // names that were looked up, whether or not there is a tool

	// The chain of the run's decisions: its id, how many links it has, and the hash of the last.
	chain uuid.UUID
	links int
	head  []byte
}

// New returns a store that reads through host.
func New(host Host) *Store {
	return &Store{host: host, tools: map[string]tool.Tool{}, asked: map[string]bool{}}
}

// The tools of an agent and the model behind it, in one row with it. sleep is every agent's. The provider is the one
// whose implementation answers: 'completions' is an older name of another.
const agentSQL = `
SELECT a.id, a.name, a.instructions, a.model, a.purpose,
       to_jsonb(a.delegates), to_jsonb(a.tools), a.output_type,
       a.input_token_budget, a.output_token_budget, a.max_iterations, a.timeout_seconds,
       a.budget_strategy, a.enabled, pg_catalog.pg_get_userbyid(a.owner),
       p.role, p.deleted_at IS NOT NULL,
       v.canonical, m.config, m.credential_source, c.credentials, m.credentials_env, m.credentials_file,
       (SELECT jsonb_agg(to_jsonb(t)) FROM aidb_internal.native_tools t WHERE t.name = ANY (a.tools) OR t.name = 'sleep'),
       ` + headSQL + `
FROM aidb_internal.agents a
LEFT JOIN aidb_internal.purpose_registry p ON p.name = a.purpose
LEFT JOIN aidb_internal.models m ON m.name = a.model
LEFT JOIN aidb_internal.providers v ON v.name = m.provider
LEFT JOIN aidb_internal.model_credentials c ON c.model = m.name
WHERE a.name = $1`

// implicitTool is offered to every agent without being listed.
const implicitTool = "sleep"

// Agent implements agent.Store. It also loads the agent's model, purpose and tools.
func (s *Store) Agent(ctx context.Context, name string) (*agent.Definition, error) {
	rows, err := s.host.Batch(ctx, spi.Statement{SQL: agentSQL, Args: []any{name}})
	if err != nil {
		return nil, err
	}
	r, ok := firstRow(rows)
	if !ok {
		return nil, nil
	}
	d := &agent.Definition{
		ID:           r.id(),
		Name:         r.text(),
		Instructions: r.text(),
		ModelName:    r.text(),
	}
	purpose := r.optional()
	r.json(&d.Delegates)
	r.json(&d.Tools)
	d.OutputType = r.raw()
	d.InputTokenBudget, d.OutputTokenBudget, d.MaxIterations, d.TimeoutSeconds = r.number(), r.number(), r.number(), r.number()
	d.Strategy, d.Enabled, d.Owner = r.text(), r.bool(), r.text()
	role, retired := r.optional(), r.bool()
	if purpose != nil {
		d.Purpose = &agent.PurposeState{Name: *purpose, Registered: role != nil, Retired: retired}
		if role != nil {
			d.Purpose.Role = *role
		}
	}
	var modelErr error
	d.Model, modelErr = r.model(d.ModelName)
	var tools []storedTool
	r.json(&tools)
	s.begin(r.text())
	if r.err != nil {
		return nil, r.err
	}
	if modelErr != nil && d.Enabled {
		return nil, modelErr
	}
	s.keep(append([]string{implicitTool}, d.Tools...), tools)
	return d, nil
}

const toolsSQL = `
SELECT coalesce(jsonb_agg(to_jsonb(t)), '[]'), ` + headSQL + `
FROM aidb_internal.native_tools t
WHERE t.name IN (SELECT jsonb_array_elements_text($1::jsonb))`

// Tools returns the definitions of the tools, in the order of the names. A name that no tool has is left out.
func (s *Store) Tools(ctx context.Context, names []string) ([]tool.Tool, error) {
	if !s.knows(names) {
		list, err := json.Marshal(names)
		if err != nil {
			return nil, fault.Wrap(err, fault.Internal, "tool names cannot be written as JSON")
		}
		rows, err := s.host.Batch(ctx, spi.Statement{SQL: toolsSQL, Args: []any{list}})
		if err != nil {
			return nil, err
		}
		var tools []storedTool
		if r, ok := firstRow(rows); ok {
			r.json(&tools)
			if s.begin(r.text()); r.err != nil {
				return nil, r.err
			}
		}
		s.keep(names, tools)
	}
	found := make([]tool.Tool, 0, len(names))
	for _, name := range names {
		if t, ok := s.tools[name]; ok {
			found = append(found, t)
		}
	}
	return found, nil
}

func (s *Store) knows(names []string) bool {
	for _, name := range names {
		if !s.asked[name] {
			return false
		}
	}
	return true
}

func (s *Store) keep(asked []string, tools []storedTool) {
	for _, name := range asked {
		s.asked[name] = true
	}
	for _, t := range tools {
		s.tools[t.Name] = tool.Tool{
			Name: t.Name, Description: t.Description, Type: tool.Native, Params: t.Params, ReadOnly: t.ReadOnly, Function: t.Function,
		}
	}
}

const modelSQL = `
SELECT v.canonical, m.config, m.credential_source, c.credentials, m.credentials_env, m.credentials_file,
       ` + headSQL + `
FROM aidb_internal.models m
LEFT JOIN aidb_internal.providers v ON v.name = m.provider
LEFT JOIN aidb_internal.model_credentials c ON c.model = m.name
WHERE m.name = $1`

// Model returns a registered model; an error of kind NotFound when there is none of that name.
func (s *Store) Model(ctx context.Context, name string) (agent.ModelRef, error) {
	rows, err := s.host.Batch(ctx, spi.Statement{SQL: modelSQL, Args: []any{name}})
	if err != nil {
		return agent.ModelRef{}, err
	}
	r, ok := firstRow(rows)
	if !ok {
		return agent.ModelRef{}, fault.New(fault.NotFound, "Model not found: %s", fault.Cut(name, 200))
	}
	ref, err := r.model(name)
	s.begin(r.text())
	if r.err != nil {
		return agent.ModelRef{}, r.err
	}
	if err != nil {
		return agent.ModelRef{}, err
	}
	return *ref, nil
}

// The first row of a conversation's log says whose it is. Deleted agents keep their names apart.
const conversationSQL = `
SELECT l.caller, l.initiated_by, l.principal, coalesce(a.name, d.name)
FROM aidb_internal.action_log l
LEFT JOIN aidb_internal.agents a ON a.id = l.agent_id
LEFT JOIN aidb_internal.deleted_agents d ON d.id = l.agent_id
WHERE l.conversation_id = $1::uuid
ORDER BY l.created_at, l.id
LIMIT 1`

// What Rebuild reads: the rest of the log says what happened, but not what the model saw.
const historySQL = `
SELECT l.id, l.sequence_id, l.action_type, l.request_payload, l.response_payload
FROM aidb_internal.action_log l
WHERE l.conversation_id = $1::uuid AND l.action_type IN ('user_prompt', 'model_response', 'tool_response')
ORDER BY l.created_at, l.id`

// Conversation implements agent.Store. It waits until no other transaction runs a call of the conversation, and then
// reads what that one left.
func (s *Store) Conversation(ctx context.Context, id uuid.UUID) (agent.Conversation, error) {
	key := id.String()
	if err := s.host.LockConversation(ctx, key); err != nil {
		return agent.Conversation{}, err
	}
	rows, err := s.host.Batch(ctx,
		spi.Statement{SQL: conversationSQL, Args: []any{key}},
		spi.Statement{SQL: historySQL, Args: []any{key}})
	if err != nil {
		return agent.Conversation{}, err
	}
	c := agent.Conversation{ID: id}
	first, ok := firstRow(rows)
	if !ok {
		return c, nil
	}
	c.Exists = true
	c.Role, c.SessionUser, c.Principal, c.Agent = first.text(), first.text(), first.text(), first.text()
	if first.err != nil {
		return agent.Conversation{}, first.err
	}
	if len(rows) < 2 {
		return agent.Conversation{}, fault.New(fault.Internal, "the history of a conversation is missing")
	}
	c.Records = make([]conversation.Record, 0, len(rows[1].Values))
	for i := range rows[1].Values {
		r := row{values: rows[1].Values[i]}
		rec := conversation.Record{ID: r.id(), Sequence: r.id(), Type: conversation.ActionType(r.text())}
		rec.Request, rec.Response = r.raw(), r.raw()
		if r.err != nil {
			return agent.Conversation{}, r.err
		}
		c.Records = append(c.Records, rec)
	}
	return c, nil
}

// Journal returns a journal for one run, which also writes the run's decisions.
func (s *Store) Journal(t *decision.Trail) agent.Journal {
	if t == nil {
		t = &decision.Trail{}
	}
	return &journal{host: s.host, store: s, trail: t}
}
