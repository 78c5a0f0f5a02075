// Package decision is what aidb keeps of every boundary that an agent's run crosses: who asked, as whom it ran, what
// it was, whether it was allowed, and how it came out. Records are values; package pgstore writes them.
//
// The records of one call, those of delegates within it included, form a chain: each carries the hash of the one
// before, and the first that of the newest record that was there when the call began. aidb.verify_decisions computes
// the same hashes from the stored columns (aidb_internal.decision_digest), so the list of fields in digest and its
// order are a format: a change needs a new version of both.
package decision

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Interaction points: the boundary that was crossed.
const (
	SQLExec    = "sql_exec"
	MCPCall    = "mcp_call"
	ModelCall  = "model_call"
	Delegation = "delegation"
	Policy     = "policy"
	Approval   = "approval"
)

// Statuses.
const (
	Allowed = "allowed"
	Denied  = "denied"
)

// Denial reasons. The first five are given by where a tool call was stopped; the others need no database.
const (
	RoleNotFound          = "role_not_found"
	NotRoleMember         = "not_role_member"
	EnginePrivilegeDenied = "engine_privilege_denied"
	EscalationBlocked     = "escalation_blocked"
	PreExecutionRejected  = "pre_execution_rejected"
	EgressDenied          = "egress_denied"
	DelegationDepth       = "delegation_depth"
	PurposeRefused        = "purpose_refused"
	PolicyDenied          = "policy_denied"
	ActionRejected        = "action_rejected"
	ActionExpired         = "action_expired"
	ActionVoid            = "action_void"
	// those of package approval: actions_off, tool_forbidden, tool_unclassified, tool_not_assigned, agent_disabled
	ServerNotAllowed = "server_not_allowed"
	Quarantined      = "quarantined"
)

// maxQuery is how many bytes of a statement a record keeps; the hash is of the whole.
const maxQuery = 5 * 1024

// Record is one decision. Empty texts and nil pointers are stored as NULL.
type Record struct {
	ID             uuid.UUID
	At             time.Time
	ConversationID string
	TaskID         string
	Agent          string
	Purpose        string
	Tool           string
	Point          string
	Principal      string
	Caller         string
	SessionUser    string
	Role           string
	Status         string
	Reason         string
	Attempted      bool // the text tries to change who it runs as
	Object         string
	Query          string // whole; Text and QueryHash are what is stored
	Hashed         string // the hash of the statement as it was submitted, once Query is without its secrets
	Rows           *int64
	SQLState       string
	Duration       time.Duration
	// Remote is more of an MCP server than Object, for telemetry: it is not stored with the record.
	Remote Remote
}

// Remote is where a call went. URL has no secrets.
type Remote struct{ URL, Transport, Session string }

// Text is the statement as stored: at most 5 KB, the tail cut at a character's end.
func (r Record) Text() string {
	if len(r.Query) <= maxQuery {
		return r.Query
	}
	cut := maxQuery
	for cut > 0 && !utf8.RuneStart(r.Query[cut]) {
		cut--
	}
	return r.Query[:cut]
}

// QueryHash is the SHA-256 of the whole statement in hexadecimal, "" without one.
func (r Record) QueryHash() string {
	if r.Hashed != "" || r.Query == "" {
		return r.Hashed
	}
	sum := sha256.Sum256([]byte(r.Query))
	return hex.EncodeToString(sum[:])
}

// Timestamp is the time as the digest has it.
func (r Record) Timestamp() string { return r.At.UTC().Format("2006-01-02 15:04:05.000000") }

// Line is the record as one line of a log, without the statement: that may hold anything.
func (r Record) Line() string {
	return fmt.Sprintf("id=%s point=%s status=%s reason=%s agent=%q tool=%q purpose=%q role=%q caller=%q principal=%q object=%q query_hash=%s sqlstate=%s",
		r.ID, r.Point, r.Status, r.Reason, r.Agent, r.Tool, r.Purpose, r.Role, r.Caller, r.Principal, r.Object, r.QueryHash(), r.SQLState)
}

// JSON is the record as one line for a program that reads logs, without the statement, as Line.
func (r Record) JSON() string {
	text, err := json.Marshal(map[string]any{
		"decision_id": r.ID, "at": r.At.UTC().Format(time.RFC3339Nano), "conversation_id": r.ConversationID, "task_id": r.TaskID,
		"agent": r.Agent, "purpose": r.Purpose, "tool": r.Tool, "interaction_point": r.Point, "principal": r.Principal, "caller": r.Caller,
		"session_user_name": r.SessionUser, "role": r.Role, "status": r.Status, "denial_reason": r.Reason,
		"attempted_escalation": r.Attempted, "object": r.Object, "query_hash": r.QueryHash(), "rows": r.Rows, "sqlstate": r.SQLState,
		"duration_us": r.Duration.Microseconds(),
	})
	if err != nil {
		return r.Line() // texts, numbers and times always marshal
	}
	return string(text)
}

// Link is a record's place in its chain.
type Link struct {
	Chain uuid.UUID
	N     int // from 1
	Prev  []byte
}

// Hash is the record's own hash, which the next one carries.
func (r Record) Hash(l Link) []byte {
	var b strings.Builder
	field := func(s string) {
		if s == "" {
			b.WriteString("-\n")
			return
		}
		b.WriteString(strconv.Itoa(len(s)))
		b.WriteByte(':')
		b.WriteString(s)
		b.WriteByte('\n')
	}
	rows := ""
	if r.Rows != nil {
		rows = strconv.FormatInt(*r.Rows, 10)
	}
	for _, s := range []string{
		"1", hex.EncodeToString(l.Prev), l.Chain.String(), strconv.Itoa(l.N), r.ID.String(), r.Timestamp(),
		r.ConversationID, r.TaskID, r.Agent, r.Purpose, r.Tool, r.Point, r.Principal, r.Caller, r.SessionUser, r.Role,
		r.Status, r.Reason, strconv.FormatBool(r.Attempted), r.Object, r.Text(), r.QueryHash(), rows, r.SQLState,
		strconv.FormatInt(r.Duration.Microseconds(), 10),
	} {
		field(s)
	}
	sum := sha256.Sum256([]byte(b.String()))
	return sum[:]
}
