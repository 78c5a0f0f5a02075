package pgstore

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"aidb/extension/internal/approval"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/purpose"
	"aidb/extension/internal/spi"
	"aidb/extension/internal/tool"
)

// Fresh reads a tool's definition anew.
func (s *Store) Fresh(ctx context.Context, name string) (*tool.Tool, error) {
	delete(s.asked, name)
	delete(s.stored, name)
	tools, err := s.Tools(ctx, []string{name})
	if err != nil || len(tools) == 0 {
		return nil, err
	}
	return &tools[0], nil
}

const describeSQL = `
SELECT jsonb_agg(jsonb_build_object('Name', d.name, 'Description', d.description, 'Class', d.risk, 'Undoable', d.undoable,
                                    'Reason', coalesce(d.reason, '')) ORDER BY d.n)
FROM aidb_internal.describe_actions($1::uuid, $2, $3, $4, $5::jsonb) WITH ORDINALITY d (name, tool_type, description, risk, undoable, reason, params, n)`

// Describe says how the tools of an agent stand for a person. role "" is the caller.
func (s *Store) Describe(ctx context.Context, agentID uuid.UUID, role, caller, tool string, machines []approval.Machine) ([]approval.Described, error) {
	guards, err := json.Marshal(machines)
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "sessions of policies cannot be written as JSON")
	}
	rows, err := s.host.Batch(ctx, spi.Statement{SQL: describeSQL, Args: []any{
		agentID.String(), optionalText(role), caller, optionalText(tool), guards,
	}})
	if err != nil {
		return nil, err
	}
	var list []approval.Described
	if r, ok := firstRow(rows); ok {
		if r.json(&list); r.err != nil {
			return nil, r.err
		}
	}
	return list, nil
}

const saveActionSQL = `
INSERT INTO aidb_internal.actions (
    id, conversation_id, root_conversation_id, task_id, agent_id, agent, root_agent_id, purpose, caller, principal,
    session_user_name, approvers, steps, preview, proof, status, created_at, expires_at, guards)
VALUES ($1::uuid, $2::uuid, $3::uuid, $4::uuid, $5::uuid, $6, $7::uuid, $8, $9, $10, $11, $12::text[], $13::jsonb, $14::jsonb,
        $15::jsonb, $16, $17::timestamptz, $18::timestamptz, coalesce(nullif($19::jsonb, 'null'), '[]'))`

const saveTokenSQL = `INSERT INTO aidb_internal.action_tokens (action_id, token) VALUES ($1::uuid, $2)`

// Events stand in the log of the conversation, among its steps, as rows of whoever was asked.
const eventSQL = `
INSERT INTO aidb_internal.action_log (
    id, conversation_id, agent_id, task_id, action_type, request_payload, response_payload, status, role, initiated_by,
    decision_id, created_at, completed_at, caller, principal)
SELECT gen_random_uuid(), a.conversation_id, a.agent_id, a.task_id, 'approval',
       jsonb_build_object('event', $2::text, 'action_id', a.id, 'by', $3::text, 'principal', $4::text),
       jsonb_build_object('status', a.status, 'steps',
           -- not the arguments and results: the log may be read by more people than the action
           (SELECT jsonb_agg(jsonb_build_object('step', s -> 'step', 'tool', s -> 'tool', 'status', s -> 'status'))
            FROM jsonb_array_elements(coalesce(a.outcome, a.steps)) s)), $5::aidb.task_status, $3, $6, $7::uuid,
       clock_timestamp(), clock_timestamp(), a.caller, a.principal
FROM aidb_internal.actions a WHERE a.id = $1::uuid`

// Who waits for a decision listens, such as the worker whose task is parked.
const notifySQL = `
SELECT pg_notify('aidb_action', jsonb_build_object('action_id', a.id, 'task_id', a.task_id, 'conversation_id', a.root_conversation_id,
                                                   'status', a.status)::text)
FROM aidb_internal.actions a WHERE a.id = $1::uuid`

// A background task that waits for the action goes on when this transaction commits.
const resumeSQL = `SELECT aidb_internal.resume_task(a.task_id) FROM aidb_internal.actions a WHERE a.id = $1::uuid`

// event is the statements that log and announce what has become of an action.
func event(a *approval.Action, e approval.Event, by approval.Person, decisionID uuid.UUID) []spi.Statement {
	id := a.ID.String()
	return []spi.Statement{
		{SQL: eventSQL, Args: []any{id, string(e), by.Role, by.Principal, eventStatus(a.Status), by.SessionUser, decisionID.String()}},
		{SQL: notifySQL, Args: []any{id}},
	}
}

func eventStatus(s approval.Status) string {
	switch s {
	case approval.Pending:
		return conversation.StatusAwaitApproval
	case approval.Done, approval.Undone:
		return conversation.StatusSuccess
	case approval.Stopped:
		return conversation.StatusError
	}
	return conversation.StatusDenied
}

// SaveAction implements pgtool.ActionStore.
func (s *Store) SaveAction(ctx context.Context, a *approval.Action, decisionID uuid.UUID) error {
	steps, err1 := json.Marshal(a.Steps)
	previews, err2 := json.Marshal(a.Previews)
	proofs, err3 := json.Marshal(a.Proofs)
	machines, err4 := json.Marshal(a.Machines)
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			return fault.Wrap(err, fault.Internal, "an action cannot be written as JSON")
		}
	}
	err := s.host.Write(ctx, append([]spi.Statement{
		{SQL: saveActionSQL, Args: []any{
			a.ID.String(), a.Conversation.String(), a.Root.String(), a.Task.String(), a.AgentID.String(), a.Agent, a.RootAgentID.String(),
			optionalText(a.Purpose), a.Requester.Role, a.Requester.Principal, a.Requester.SessionUser, textArray(a.Approvers),
			steps, []byte(conversation.CleanJSON(string(previews))), proofs, string(a.Status), timestamp(a.CreatedAt), timestamp(a.ExpiresAt),
			machines,
		}},
		{SQL: saveTokenSQL, Args: []any{a.ID.String(), a.Token}},
	}, event(a, approval.WasProposed, a.Requester, decisionID)...)...)
	return err
}

const actionColumns = `
SELECT a.id, a.conversation_id, a.root_conversation_id, a.task_id, a.agent_id, a.agent, a.root_agent_id, a.purpose,
       CASE WHEN a.created_at >= aidb_internal.history_since(a.caller) THEN a.caller ELSE '' END, a.principal, a.session_user_name, to_jsonb(a.approvers), a.steps, a.preview, a.proof, a.guards, a.outcome, a.status,
       to_jsonb(a.created_at) #>> '{}', to_jsonb(a.expires_at) #>> '{}', a.decided_by,
       (SELECT t.token FROM aidb_internal.action_tokens t WHERE t.action_id = a.id),
       NOT EXISTS (SELECT FROM unnest(a.approvers) u (role)
                   WHERE NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = u.role AND pg_has_role($2, r.oid, 'MEMBER')))
FROM aidb_internal.actions a`

const (
	actionSQL      = actionColumns + ` WHERE a.id = $1::uuid FOR UPDATE OF a`
	openActionsSQL = actionColumns + ` WHERE a.root_conversation_id = $1::uuid AND NOT a.told ORDER BY a.created_at, a.id FOR UPDATE OF a`
	overdueSQL     = actionColumns + ` WHERE a.status = 'pending' AND a.expires_at <= (SELECT clock_timestamp()) AND $2 <> ''
ORDER BY a.expires_at LIMIT $1::integer FOR UPDATE OF a SKIP LOCKED`
)

// An action that is locked is about to be decided. A worker does not wait for that: it has other tasks.
const (
	actionExistsSQL  = `SELECT EXISTS (SELECT FROM aidb_internal.actions a WHERE a.id = $1::uuid)`
	awaitedActionSQL = actionColumns + ` WHERE a.id = $1::uuid FOR UPDATE OF a SKIP LOCKED`
)

// AwaitedAction implements pgtool.ActionStore.
func (s *Store) AwaitedAction(ctx context.Context, id uuid.UUID) (a *approval.Action, busy bool, err error) {
	rows, err := s.host.Batch(ctx, spi.Statement{SQL: actionExistsSQL, Args: []any{id.String()}})
	if err != nil {
		return nil, false, err
	}
	if r, ok := firstRow(rows); !ok || !r.bool() {
		return nil, false, nil
	}
	list, _, err := s.actions(ctx, awaitedActionSQL, id.String(), "postgres")
	if err != nil || len(list) == 0 {
		return nil, true, err
	}
	return list[0], false, nil
}

func (s *Store) actions(ctx context.Context, sql, first, role string) (list []*approval.Action, approves bool, err error) {
	rows, err := s.host.Batch(ctx, spi.Statement{SQL: sql, Args: []any{first, role}})
	if err != nil {
		return nil, false, err
	}
	for _, values := range rows[0].Values {
		r := row{values: values}
		a := &approval.Action{
			ID: r.id(), Conversation: r.id(), Root: r.id(), Task: r.id(), AgentID: r.id(), Agent: r.text(), RootAgentID: r.id(), Purpose: r.text(),
		}
		a.Requester.Role, a.Requester.Principal, a.Requester.SessionUser = r.text(), r.text(), r.text()
		r.json(&a.Approvers)
		r.json(&a.Steps)
		r.json(&a.Previews)
		r.json(&a.Proofs)
		r.json(&a.Machines)
		r.json(&a.Outcomes)
		a.Status = approval.Status(r.text())
		a.CreatedAt, a.ExpiresAt = r.time(), r.time()
		a.DecidedBy, a.Token, approves = r.text(), r.text(), r.bool()
		if r.err != nil {
			return nil, false, r.err
		}
		if len(a.Steps) == 0 || len(a.Proofs) != len(a.Steps) || len(a.Previews) != len(a.Steps) {
			return nil, false, fault.New(fault.Internal, "action %s is not whole", a.ID)
		}
		list = append(list, a)
	}
	return list, approves, nil
}

func (r *row) time() time.Time {
	t, err := time.Parse(time.RFC3339Nano, r.text())
	if err != nil {
		r.fail("a time", err)
	}
	return t
}

// Action implements pgtool.ActionStore.
func (s *Store) Action(ctx context.Context, id uuid.UUID, role string) (*approval.Action, bool, error) {
	list, approves, err := s.actions(ctx, actionSQL, id.String(), role)
	if err != nil || len(list) == 0 {
		return nil, false, err
	}
	return list[0], approves, nil
}

// OpenActions implements pgtool.ActionStore.
func (s *Store) OpenActions(ctx context.Context, root uuid.UUID) ([]*approval.Action, error) {
	list, _, err := s.actions(ctx, openActionsSQL, root.String(), "postgres")
	return list, err
}

// OverdueActions implements pgtool.ActionStore.
func (s *Store) OverdueActions(ctx context.Context, limit int) ([]*approval.Action, error) {
	list, _, err := s.actions(ctx, overdueSQL, strconv.Itoa(limit), "postgres")
	return list, err
}

const (
	decideSQL = `
UPDATE aidb_internal.actions SET status = $2, outcome = coalesce($3::jsonb, outcome), decided_at = clock_timestamp(), decided_by = $4,
       told = false
WHERE id = $1::uuid`
	dropTokenSQL = `DELETE FROM aidb_internal.action_tokens WHERE action_id = $1::uuid`
	toldSQL      = `UPDATE aidb_internal.actions SET told = true WHERE id = ANY ($1::uuid[])`
)

// Decide implements pgtool.ActionStore.
func (s *Store) Decide(ctx context.Context, a *approval.Action, e approval.Event, by approval.Person, decisionID uuid.UUID) error {
	var outcome any
	if len(a.Outcomes) > 0 {
		text, err := json.Marshal(a.Outcomes)
		if err != nil {
			return fault.Wrap(err, fault.Internal, "an action's outcome cannot be written as JSON")
		}
		outcome = []byte(conversation.CleanJSON(string(text)))
	}
	id := a.ID.String()
	var decidedBy any = by.Role
	if e == approval.WasExpired {
		decidedBy = nil
	}
	statements := []spi.Statement{
		{SQL: decideSQL, Args: []any{id, string(a.Status), outcome, decidedBy}},
		{SQL: dropSentSQL, Args: []any{id}},
	}
	// who has the token of an expired one is told so
	if e != approval.WasExpired {
		statements = append(statements, spi.Statement{SQL: dropTokenSQL, Args: []any{id}})
	}
	statements = append(statements, event(a, e, by, decisionID)...)
	_, err := s.host.Batch(ctx, append(statements, spi.Statement{SQL: resumeSQL, Args: []any{id}})...)
	return err
}

// Told implements pgtool.ActionStore.
func (s *Store) Told(ctx context.Context, ids []uuid.UUID) error {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.String()
	}
	_, err := s.host.Batch(ctx, spi.Statement{SQL: toldSQL, Args: []any{textArray(texts)}})
	return err
}

// The purpose that the action was proposed under is the one that counts, as it is now, and as long as the agent that the
// person called, or the one that proposed, still has it.
const actingSQL = `
SELECT a.purpose, p.role, p.deleted_at IS NOT NULL, p.allow_elevated, p.role_oid::oid,
       EXISTS (SELECT FROM aidb_internal.agents g WHERE g.id = a.root_agent_id AND g.purpose IS NOT DISTINCT FROM a.purpose)
       OR EXISTS (SELECT FROM aidb_internal.agents g WHERE g.id = a.agent_id AND g.purpose = a.purpose)
FROM aidb_internal.actions a
LEFT JOIN aidb_internal.purpose_registry p ON p.name = a.purpose
WHERE a.id = $1::uuid`

// Acting implements pgtool.ActionStore.
func (s *Store) Acting(ctx context.Context, a *approval.Action) (*purpose.State, bool, error) {
	rows, err := s.host.Batch(ctx, spi.Statement{SQL: actingSQL, Args: []any{a.ID.String()}})
	if err != nil {
		return nil, false, err
	}
	r, ok := firstRow(rows)
	if !ok {
		return nil, false, nil
	}
	name, role := r.optional(), r.optional()
	retired, elevated, oid, held := r.bool(), r.bool(), r.text(), r.bool()
	if r.err != nil || name == nil {
		return nil, held, r.err
	}
	state := &purpose.State{Name: *name, Registered: role != nil, Retired: retired}
	if role != nil {
		state.Role, state.RoleID, state.Elevated = *role, oid, elevated
	}
	return state, held, nil
}

// Of the policies that the two agents have now, and of those whose sessions the action was proposed in; of what the purpose leads
// to, and of the classes of its tools.
const policyDigestSQL = `
WITH held AS (
    SELECT g.id, u.name
    FROM aidb_internal.agents g
    LEFT JOIN aidb_internal.purpose_registry p ON p.name = g.purpose, unnest(ARRAY[g.policy, p.policy]) u (name)
    WHERE g.id IN ($1::uuid, $2::uuid) AND u.name IS NOT NULL
)
SELECT encode(sha256(convert_to(
    coalesce((SELECT string_agg(h.id || ':' || h.name, ',' ORDER BY h.id, h.name) FROM held h), '') || '/' ||
    coalesce((SELECT string_agg(jsonb_build_array(p.name, p.mode, p.initial_state, p.deleted_at,
                  (SELECT jsonb_agg(to_jsonb(t) ORDER BY t.from_state, t.tool_name) FROM aidb_internal.tool_transitions t WHERE t.policy = p.name))::text,
                  ',' ORDER BY p.name)
              FROM aidb_internal.policies p
              WHERE p.name = ANY ($3::text[]) OR p.name IN (SELECT h.name FROM held h)), '') || '/' ||
    coalesce((SELECT jsonb_build_array(p.role, p.role_oid::oid, p.allow_elevated)::text FROM aidb_internal.purpose_registry p WHERE p.name = $4), '') || '/' ||
    coalesce((SELECT jsonb_agg(jsonb_build_array(c.tool, c.risk) ORDER BY c.tool)::text FROM aidb_internal.tool_classes c
              WHERE c.tool = ANY ($5::text[])), ''), 'UTF8')), 'hex')`

// What most single calls have none of: policies, a purpose, and a class that governance has given their tool.
const ungovernedLookup = `LOOKUP
row agents agents_pkey $1 policy purpose
row agents agents_pkey $2 policy=root_policy purpose=root_purpose
row tool_classes tool_classes_pkey $3 tool`

// ungoverned reports that the digest is that of nothing, which needs no query of all that there could be.
func (s *Store) ungoverned(ctx context.Context, a *approval.Action) (bool, error) {
	if len(a.Steps) != 1 || len(a.Machines) > 0 || a.Purpose != "" {
		return false, nil
	}
	rows, err := s.host.Batch(ctx, spi.Statement{SQL: ungovernedLookup, Args: []any{a.AgentID.String(), a.RootAgentID.String(), a.Steps[0].Tool}})
	if err != nil {
		return false, err
	}
	r, ok := firstRow(rows)
	for ok && r.next < len(r.values) {
		ok = r.optional() == nil
	}
	return ok, r.err
}

// nothingDigest is what policyDigestSQL gives where it finds nothing.
var nothingDigest = fmt.Sprintf("%x", sha256.Sum256([]byte("///")))

// PolicyDigest implements pgtool.ActionStore.
func (s *Store) PolicyDigest(ctx context.Context, a *approval.Action) (string, error) {
	if nothing, err := s.ungoverned(ctx, a); err != nil || nothing {
		return nothingDigest, err
	}
	names := make([]string, 0, len(a.Machines))
	for _, m := range a.Machines {
		names = append(names, m.Policy)
	}
	tools := make([]string, len(a.Steps))
	for i, step := range a.Steps {
		tools[i] = step.Tool
	}
	rows, err := s.host.Batch(ctx, spi.Statement{SQL: policyDigestSQL, Args: []any{
		a.AgentID.String(), a.RootAgentID.String(), textArray(names), optionalText(a.Purpose), textArray(tools),
	}})
	if err != nil {
		return "", err
	}
	r, ok := firstRow(rows)
	if !ok {
		return "", fault.New(fault.Internal, "the digest of policies is missing")
	}
	return r.text(), r.err
}

const wordsSQL = `SELECT jsonb_agg(jsonb_build_object('Language', w.language, 'Text', w.word, 'Yes', w.kind = 'yes')) FROM aidb.confirmation_words w`

// Words implements pgtool.ActionStore.
func (s *Store) Words(ctx context.Context) ([]approval.Word, error) {
	rows, err := s.host.Batch(ctx, spi.Statement{SQL: wordsSQL})
	if err != nil {
		return nil, err
	}
	var words []approval.Word
	if r, ok := firstRow(rows); ok {
		if r.json(&words); r.err != nil {
			return nil, r.err
		}
	}
	return words, nil
}
