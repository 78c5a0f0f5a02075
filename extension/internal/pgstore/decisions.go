package pgstore

import (
	"context"
	"encoding/hex"
	"strconv"

	"github.com/google/uuid"

	"aidb/extension/internal/decision"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/spi"
)

// The records' hashes are chained here, because only here is it known which record was the newest: headLookup is part
// of what is looked up for a run.
const headLookup = "newest head"

const decisionsSQL = `COPY aidb_internal.decision_log (
    decision_id, chain_id, chain_n, at, conversation_id, task_id, agent, purpose, tool, interaction_point, principal,
    caller, session_user_name, role, status, denial_reason, attempted_escalation, object, query_text, query_hash, rows,
    sqlstate, duration_us, prev_hash, hash) FROM STDIN`

// begin says which record was the newest when the run began; the first time counts.
func (s *Store) begin(head string) {
	if s.begun {
		return
	}
	s.begun = true
	if hash, err := hex.DecodeString(head); err == nil { // a lookup gives bytes as digits
		s.head = hash
	}
}

// add appends a record as decisionsSQL reads it.
func add(c *spi.CopyText, r *decision.Record, link decision.Link, hash []byte) {
	c.Plain(r.ID.String())
	c.Plain(link.Chain.String())
	c.Plain(strconv.Itoa(link.N))
	c.Plain(timestamp(r.At))
	for _, s := range [...]string{r.ConversationID, r.TaskID, r.Agent, r.Purpose, r.Tool} {
		c.OrNull(s)
	}
	for _, s := range [...]string{r.Point, r.Principal, r.Caller, r.SessionUser} {
		c.Text(s)
	}
	c.OrNull(r.Role)
	c.Text(r.Status)
	c.OrNull(r.Reason)
	c.Plain(strconv.FormatBool(r.Attempted))
	for _, s := range [...]string{r.Object, r.Text(), r.QueryHash(), countText(r.Rows), r.SQLState} {
		c.OrNull(s)
	}
	c.Plain(strconv.FormatInt(r.Duration.Microseconds(), 10))
	for _, h := range [...][]byte{link.Prev, hash} {
		c.Text(`\x` + hex.EncodeToString(h))
	}
	c.EndRow()
}

// decisions returns the statement that writes the records that were not written yet; false when there are none.
func (s *Store) decisions(t *decision.Trail) (spi.Statement, bool) {
	if t == nil {
		return spi.Statement{}, false
	}
	fresh := t.Take()
	if len(fresh) == 0 {
		return spi.Statement{}, false
	}
	if s.chain == uuid.Nil {
		s.chain = t.NewID()
	}
	var rows spi.CopyText
	for i := range fresh {
		s.links++
		link := decision.Link{Chain: s.chain, N: s.links, Prev: s.head}
		s.head = fresh[i].Hash(link)
		add(&rows, &fresh[i], link, s.head)
	}
	return spi.Statement{SQL: decisionsSQL, Args: []any{rows.Bytes()}}, true
}

// WriteDecisions writes what the run's journal has not: of a run that keeps no log, or of a tool without a run.
func (s *Store) WriteDecisions(ctx context.Context, t *decision.Trail) error {
	if err := s.chainFrom(ctx, t); err != nil {
		return err
	}
	statement, ok := s.decisions(t)
	if !ok {
		return nil
	}
	return s.host.Write(ctx, statement)
}

// chainFrom finds the newest record, which the first of these follows, unless a statement has brought it along.
func (s *Store) chainFrom(ctx context.Context, t *decision.Trail) error {
	if s.begun || !t.Pending() {
		return nil
	}
	rows, err := s.host.Batch(ctx, spi.Statement{SQL: "LOOKUP\n" + headLookup})
	if err != nil {
		return err
	}
	if r, ok := firstRow(rows); ok {
		s.begin(r.text())
	}
	return nil
}

// HandOver gives the decisions that nobody has written to the host, which keeps them whatever becomes of the transaction.
func (s *Store) HandOver(ctx context.Context, t *decision.Trail, to spi.Auditor) error {
	if err := s.chainFrom(ctx, t); err != nil {
		return err
	}
	statement, ok := s.decisions(t)
	if !ok {
		return nil
	}
	rows, ok := statement.Args[0].([]byte)
	if !ok {
		return fault.New(fault.Internal, "decisions are not rows")
	}
	return to.Audit(statement.SQL, rows)
}
