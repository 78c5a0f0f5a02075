package pgstore

import (
	"context"
	"encoding/hex"
	"encoding/json"

	"github.com/google/uuid"

	"aidb/extension/internal/decision"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/spi"
)

// The records' hashes are chained here, because only here is it known which record was the newest: headSQL is part of
// the statements that load what a run needs.
const headSQL = `(SELECT encode(d.hash, 'hex') FROM aidb_internal.decision_log d ORDER BY d.at DESC, d.decision_id DESC LIMIT 1)`

const decisionsSQL = `
INSERT INTO aidb_internal.decision_log (
    decision_id, chain_id, chain_n, at, conversation_id, task_id, agent, purpose, tool, interaction_point, principal,
    caller, session_user_name, role, status, denial_reason, attempted_escalation, object, query_text, query_hash, rows,
    sqlstate, duration_us, prev_hash, hash)
SELECT r.i, $2::uuid, r.n, r.t, r.c, r.k, r.a, r.p, r.o, r.x, r.u, r.w, r.y, r.r, r.s, r.d, r.e, r.b, r.q, r.z, r.l,
       r.g, r.m, decode(r.f, 'hex'), decode(r.h, 'hex')
FROM jsonb_to_recordset($1::jsonb) r (
    i uuid, n integer, t timestamptz, c uuid, k uuid, a text, p text, o text, x text, u text, w text, y text, r text,
    s text, d text, e boolean, b text, q text, z text, l bigint, g text, m bigint, f text, h text)`

// begin says which record was the newest when the run began; the first time counts.
func (s *Store) begin(head string) {
	if s.begun {
		return
	}
	s.begun = true
	if hash, err := hex.DecodeString(head); err == nil { // it is what encode() wrote
		s.head = hash
	}
}

// stored is a record as decisionsSQL reads it.
type stored struct {
	ID             uuid.UUID `json:"i"`
	N              int       `json:"n"`
	At             string    `json:"t"`
	ConversationID string    `json:"c,omitempty"`
	TaskID         string    `json:"k,omitempty"`
	Agent          string    `json:"a,omitempty"`
	Purpose        string    `json:"p,omitempty"`
	Tool           string    `json:"o,omitempty"`
	Point          string    `json:"x"`
	Principal      string    `json:"u"`
	Caller         string    `json:"w"`
	SessionUser    string    `json:"y"`
	Role           string    `json:"r,omitempty"`
	Status         string    `json:"s"`
	Reason         string    `json:"d,omitempty"`
	Attempted      bool      `json:"e"`
	Object         string    `json:"b,omitempty"`
	Query          string    `json:"q,omitempty"`
	QueryHash      string    `json:"z,omitempty"`
	Rows           *int64    `json:"l,omitempty"`
	SQLState       string    `json:"g,omitempty"`
	Duration       int64     `json:"m"`
	Prev           string    `json:"f"`
	Hash           string    `json:"h"`
}

// decisions returns the statement that writes the records that were not written yet; false when there are none.
func (s *Store) decisions(t *decision.Trail) (spi.Statement, bool, error) {
	if t == nil {
		return spi.Statement{}, false, nil
	}
	fresh := t.Take()
	if len(fresh) == 0 {
		return spi.Statement{}, false, nil
	}
	if s.chain == uuid.Nil {
		s.chain = t.NewID()
	}
	rows := make([]stored, 0, len(fresh))
	for _, r := range fresh {
		s.links++
		link := decision.Link{Chain: s.chain, N: s.links, Prev: s.head}
		hash := r.Hash(link)
		rows = append(rows, stored{
			ID: r.ID, N: link.N, At: timestamp(r.At), ConversationID: r.ConversationID, TaskID: r.TaskID, Agent: r.Agent,
			Purpose: r.Purpose, Tool: r.Tool, Point: r.Point, Principal: r.Principal, Caller: r.Caller,
			SessionUser: r.SessionUser, Role: r.Role, Status: r.Status, Reason: r.Reason, Attempted: r.Attempted,
			Object: r.Object, Query: r.Text(), QueryHash: r.QueryHash(), Rows: r.Rows, SQLState: r.SQLState,
			Duration: r.Duration.Microseconds(), Prev: hex.EncodeToString(link.Prev), Hash: hex.EncodeToString(hash),
		})
		s.head = hash
	}
	list, err := json.Marshal(rows)
	if err != nil {
		return spi.Statement{}, false, fault.Wrap(err, fault.Internal, "decisions cannot be written as JSON")
	}
	return spi.Statement{SQL: decisionsSQL, Args: []any{list, s.chain.String()}}, true, nil
}

// WriteDecisions writes what the run's journal has not: of a run that keeps no log, or of a tool without a run.
func (s *Store) WriteDecisions(ctx context.Context, t *decision.Trail) error {
	if !s.begun && t.Pending() {
		rows, err := s.host.Batch(ctx, spi.Statement{SQL: "SELECT " + headSQL})
		if err != nil {
			return err
		}
		if r, ok := firstRow(rows); ok {
			s.begin(r.text())
		}
	}
	statement, ok, err := s.decisions(t)
	if err != nil || !ok {
		return err
	}
	return s.host.Write(ctx, statement)
}
