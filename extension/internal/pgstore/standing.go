package pgstore

import (
	"context"
	"slices"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/approval"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/spi"
	"aidb/extension/internal/tool"
)

// How a tool stands now. The agent's columns are NULL where no agent calls.
const standingLookup = `LOOKUP
row agents agents_pkey $1 tools enabled tool_exposure
row sql_tools sql_tools_pkey $2 name read_only updated_at risk
row tool_classes tool_classes_pkey $2 risk=class
setting aidb.actions
setting aidb.unclassified_tools`

// standings is what a call has read of how tools stand.
type standings struct {
	seen   map[standingKey][]*string
	agents map[string]standingAgent
}

type standingKey struct{ agent, tool string }

// standingAgent is what came with an agent's row of what a standing consists of.
type standingAgent struct {
	tools, exposure       *string
	classes               bool // some tools have a class, it is not known which
	actions, unclassified *string
}

func standingArgs(agentID string, t tool.Tool) []any { return []any{optionalText(agentID), t.Name} }

// Standing says how a tool stands now, for an agent or for nobody ("").
func (s *Store) Standing(ctx context.Context, agentID string, t tool.Tool) (approval.Standing, error) {
	rows, err := s.host.Batch(ctx, spi.Statement{SQL: standingLookup, Args: standingArgs(agentID, t)})
	if err != nil {
		return approval.Standing{}, err
	}
	r, ok := firstRow(rows)
	if !ok {
		return approval.Standing{}, fault.New(fault.Internal, "the standing of a tool is missing")
	}
	if s.standings.seen == nil {
		s.standings.seen = map[standingKey][]*string{}
	}
	s.standings.seen[standingKey{agentID, t.Name}] = r.values
	return readStanding(r, t)
}

// Foresee says how a tool stands for an agent as far as this call has read it already, and the row that is to be found
// for that to be so still; nil when nothing has been read.
func (s *Store) Foresee(agentID string, t tool.Tool) (approval.Standing, *spi.Expected, error) {
	values, ok := s.standings.seen[standingKey{agentID, t.Name}]
	if !ok {
		a, known := s.standings.agents[agentID]
		if !known || a.classes {
			return approval.Standing{}, nil, nil
		}
		yes := "t"
		values = append([]*string{a.tools, &yes, a.exposure}, definitionRow(t)...)
		values = append(values, nil, a.actions, a.unclassified)
	}
	standing, err := readStanding(&row{values: values}, t)
	return standing, &spi.Expected{Lookup: standingLookup, Args: standingArgs(agentID, t), Row: values}, err
}

// definitionRow is the columns of sql_tools as the tool's definition has them.
func definitionRow(t tool.Tool) []*string {
	if t.Type != tool.SQL {
		return make([]*string, 4)
	}
	readOnly := "f"
	if t.ReadOnly {
		readOnly = "t"
	}
	var risk *string
	if t.Risk != "" {
		risk = &t.Risk
	}
	return []*string{&t.Name, &readOnly, &t.Version, risk}
}

// foresee keeps what an agent's row has of the standing of its tools; only of one that is enabled.
func (s *Store) foresee(d *agent.Definition, a standingAgent) {
	if !d.Enabled {
		return
	}
	if s.standings.agents == nil {
		s.standings.agents = map[string]standingAgent{}
	}
	s.standings.agents[d.ID.String()] = a
}

func readStanding(r *row, t tool.Tool) (approval.Standing, error) {
	var tools []string
	r.json(&tools)
	st := approval.Standing{Enabled: r.bool()}
	catalog := r.text() == "catalog"
	st.Assigned = slices.Contains(tools, t.Name) || (catalog && (t.Name == "describe_actions" || t.Name == "act"))
	st.Known = r.optional() != nil
	readOnly := r.bool()
	st.Version = r.text()
	own := r.text()
	st.Class, st.Actions, st.Fallback = r.text(), r.text() == "on", r.text()
	if t.Type != tool.SQL {
		// what comes with the library, or from a server, does not change under a call
		st.Known, st.Version, own, readOnly = true, t.Version, t.Risk, t.ReadOnly
	}
	if st.Class == "" {
		st.Class = own
	}
	if st.Class == "" && readOnly {
		st.Class = approval.Read
	}
	return st, r.err
}
