package pgstore

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/google/uuid"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/policy"
	"aidb/extension/internal/spi"
	"aidb/extension/internal/tool"
)

// Host is what the store needs of the main thread.
type Host interface {
	spi.Querier
	spi.Writer
	LockConversation(ctx context.Context, id string) error
}

// Store reads the tables for one call and the runs in it; it is not for concurrent use.
type Store struct {
	host    Host
	natives *Natives

	// Redactions is told what is registered as secret, by each row that a call begins with; nil: nobody wants to know.
	Redactions func(rules json.RawMessage) error

	// The chain of the call's decisions: its id, how many links it has, and the hash of the last.
	chain uuid.UUID
	links int
	head  []byte
	begun bool

	stored    map[string]tool.Tool // SQL and MCP tools
	asked     map[string]bool      // names that were looked up among them
	standings standings

	ahead     *spi.Rows // an agent's row that came with the start of the call
	aheadName string
}

// New returns a store that reads through host.
func New(host Host, natives *Natives) *Store { return &Store{host: host, natives: natives} }

// Prefetched gives the store the result of AgentLookup for an agent.
func (s *Store) Prefetched(name string, rows spi.Rows) { s.ahead, s.aheadName = &rows, name }

// AgentLookup is an agent with its purpose, its policies and its model in one row, and whether there is more to read:
// redactions, quotas, classes of tools. Most databases have none, and no tools but native ones; what is there is read when it is needed.
//
// The main thread runs it before agent_converse starts (see bridge.h, READY).
const AgentLookup = `LOOKUP
get agents agents_name_key $1 id name instructions model purpose delegates tools output_type input_token_budget output_token_budget max_iterations timeout_seconds budget_strategy owner enabled cost_budget tree_token_budget tree_cost_budget compaction policy tool_exposure confirm_replies
rolename owner
row purpose_registry purpose_registry_pkey purpose role role_oid allow_elevated deleted_at policy=purpose_policy
row policies policies_pkey policy name deleted_at
row policies policies_pkey purpose_policy name deleted_at
` + modelLookup + `
any tool_classes
setting aidb.actions
setting aidb.unclassified_tools`

// modelLookup is what every call reads with its model.
const modelLookup = `row models models_pkey model provider config credential_source credentials_env credentials_file
row model_credentials model_credentials_pkey model credentials
` + headLookup + `
any redactions
any quotas`

const purposeSQL = `
SELECT role, deleted_at IS NOT NULL, allow_elevated, role_oid::oid FROM aidb_internal.purpose_registry WHERE name = $1`

// Purpose reads a purpose as the registry has it now.
func (s *Store) Purpose(ctx context.Context, name string) (agent.PurposeState, error) {
	p := agent.PurposeState{Name: name}
	rows, err := s.host.Batch(ctx, spi.Statement{SQL: purposeSQL, Args: []any{name}})
	if err != nil {
		return p, err
	}
	if r, ok := firstRow(rows); ok {
		p.Registered = true
		p.Role, p.Retired, p.Elevated, p.RoleID = r.text(), r.bool(), r.bool(), r.text()
		return p, r.err
	}
	return p, nil
}

// Agent implements agent.Store. It also loads the agent's model and purpose, and the native tools if this process
// does not know them yet.
func (s *Store) Agent(ctx context.Context, name string) (*agent.Definition, error) {
	rows, err := s.agentRow(ctx, name)
	if err != nil {
		return nil, err
	}
	r, ok := firstRow(rows)
	if !ok {
		return nil, nil
	}
	d := &agent.Definition{ID: r.id(), Name: r.text(), Instructions: r.text(), ModelName: r.text()}
	purpose := r.optional()
	r.json(&d.Delegates)
	r.json(&d.Tools)
	st := standingAgent{tools: r.last()}
	d.OutputType = r.raw()
	d.InputTokenBudget, d.OutputTokenBudget, d.MaxIterations, d.TimeoutSeconds = r.number(), r.number(), r.number(), r.number()
	d.Strategy, _, d.Enabled = r.text(), r.text(), r.bool() // between them the owner's oid, whose name follows
	d.CostBudget, d.TreeTokenBudget, d.TreeCostBudget = r.amount(), r.number(), r.amount()
	r.json(&d.Compaction)
	own := r.optional()
	d.Exposure = r.text()
	st.exposure = r.last()
	d.ConfirmReplies, d.Owner = r.bool(), r.text()
	d.Purpose = r.purpose(purpose)
	inherited := r.optional()
	r.policy(d, own)
	r.policy(d, inherited)
	var modelErr error
	d.Model, modelErr = r.model(d.ModelName)
	s.begin(r.text())
	redactions, metered := r.bool(), r.bool()
	if d.Model != nil {
		d.Model.Metered = metered
	}
	st.classes, st.actions, st.unclassified = r.bool(), r.optional(), r.optional()
	if r.err != nil {
		return nil, r.err
	}
	s.foresee(d, st)
	if redactions {
		if err := s.LoadRedactions(ctx); err != nil {
			return nil, err
		}
	} else if err := s.redactWith(nil); err != nil {
		return nil, err
	}
	if modelErr != nil && d.Enabled {
		return nil, modelErr
	}
	return d, nil
}

// purpose reads the columns of a purpose of that name: nil when there is no name.
func (r *row) purpose(name *string) *agent.PurposeState {
	role, oid := r.optional(), r.text()
	elevated, retired := r.bool(), r.optional() != nil
	if name == nil {
		return nil
	}
	p := &agent.PurposeState{Name: *name, Registered: role != nil, Retired: retired}
	if role != nil {
		p.Role, p.RoleID, p.Elevated = *role, oid, elevated
	}
	return p
}

// policy reads the columns of a policy of that name, which an agent or its purpose obeys.
func (r *row) policy(d *agent.Definition, name *string) {
	registered, retired := r.optional() != nil, r.optional() != nil
	if name != nil {
		d.Policies = append(d.Policies, policy.State{Name: *name, Registered: registered, Retired: retired})
	}
}

// agentRow returns the agent's row: the one that came with the start of the call, or it is asked for.
func (s *Store) agentRow(ctx context.Context, name string) ([]spi.Rows, error) {
	if s.ahead != nil && s.aheadName == name {
		return []spi.Rows{*s.ahead}, nil
	}
	statements := []spi.Statement{{SQL: AgentLookup, Args: []any{name}}}
	if s.natives.known() == nil {
		statements = append(statements, nativesStatement())
	}
	rows, err := s.host.Batch(ctx, statements...)
	if err != nil {
		return nil, err
	}
	if len(rows) > 1 {
		err = s.natives.keep(rows[1])
	}
	return rows, err
}

// Tools returns the definitions of the tools, in the order of the names. A name that no tool has is left out.
func (s *Store) Tools(ctx context.Context, names []string) ([]tool.Tool, error) {
	if s.natives.known() == nil {
		rows, err := s.host.Batch(ctx, nativesStatement())
		if err != nil {
			return nil, err
		}
		if err := s.natives.keep(rows[0]); err != nil {
			return nil, err
		}
	}
	known := s.natives.known()
	if err := s.lookUp(ctx, known, names); err != nil {
		return nil, err
	}
	found := make([]tool.Tool, 0, len(names))
	for _, name := range names {
		if t, ok := known[name]; ok {
			found = append(found, t)
		} else if t, ok := s.stored[name]; ok {
			found = append(found, t)
		}
	}
	return found, nil
}

// mcpToolJSON is the list of storedMCP of rows of mcp_tools.
const mcpToolJSON = `jsonb_agg(jsonb_build_object('name', t.name, 'server', t.server, 'description', t.description,
       'input_schema', t.input_schema, 'waits', t.new_hash IS NOT NULL, 'idempotent', t.idempotent))`

const storedToolsSQL = `
SELECT (SELECT jsonb_agg(to_jsonb(t)) FROM aidb_internal.sql_tools t WHERE t.name = ANY ($1::text[])),
       (SELECT ` + mcpToolJSON + ` FROM aidb_internal.mcp_tools t WHERE t.name = ANY ($1::text[]) AND t.listed)`

// lookUp reads the tools among the names that are not native and did not come with the agent.
func (s *Store) lookUp(ctx context.Context, natives map[string]tool.Tool, names []string) error {
	var unknown []string
	for _, name := range names {
		if _, native := natives[name]; !native && !s.asked[name] {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	rows, err := s.host.Batch(ctx, spi.Statement{SQL: storedToolsSQL, Args: []any{textArray(unknown)}})
	if err != nil {
		return err
	}
	var tools []storedTool
	var remote []storedMCP
	if r, ok := firstRow(rows); ok {
		r.json(&tools)
		if r.json(&remote); r.err != nil {
			return r.err
		}
	}
	s.keep(unknown, tools, remote)
	return nil
}

func (s *Store) keep(asked []string, tools []storedTool, remote []storedMCP) {
	if s.asked == nil {
		s.asked, s.stored = map[string]bool{}, map[string]tool.Tool{}
	}
	for _, name := range asked {
		s.asked[name] = true
	}
	for i := range remote {
		s.stored[remote[i].Name] = remote[i].tool()
	}
	for i := range tools { // after those of servers, which must not stand before them
		s.stored[tools[i].Name] = tools[i].tool(tool.SQL)
	}
}

// Forget has the stored tools looked up anew.
func (s *Store) Forget() { s.asked = nil }

// textArray is a text[] literal.
func textArray(texts []string) string {
	quoted := make([]string, len(texts))
	for i, t := range texts {
		quoted[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(t) + `"`
	}
	return "{" + strings.Join(quoted, ",") + "}"
}

const modelByName = `LOOKUP
get models models_pkey $1 name=model
` + modelLookup

// Model returns a registered model; an error of kind NotFound when there is none of that name.
func (s *Store) Model(ctx context.Context, name string) (agent.ModelRef, error) {
	rows, err := s.host.Batch(ctx, spi.Statement{SQL: modelByName, Args: []any{name}})
	if err != nil {
		return agent.ModelRef{}, err
	}
	r, ok := firstRow(rows)
	if !ok {
		return agent.ModelRef{}, fault.New(fault.NotFound, "Model not found: %s", fault.Cut(name, 200))
	}
	r.optional() // its name
	ref, err := r.model(name)
	s.begin(r.text())
	redactions, metered := r.bool(), r.bool()
	if r.err != nil {
		return agent.ModelRef{}, r.err
	}
	if err != nil {
		return agent.ModelRef{}, err
	}
	ref.Metered = metered
	if redactions {
		return *ref, s.LoadRedactions(ctx)
	}
	return *ref, s.redactWith(nil)
}
