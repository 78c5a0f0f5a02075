package approval

import (
	"crypto/subtle"
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"

	"aidb/extension/internal/fault"
)

// Status is how an action stands.
type Status string

// The statuses, as aidb.action_history shows them.
const (
	Pending  Status = "pending"
	Done     Status = "done"
	Stopped  Status = "stopped"
	Rejected Status = "rejected"
	Expired  Status = "expired"
	Void     Status = "void"
	Undone   Status = "undone"
)

// How a step ended: labels of aidb.task_status.
const (
	StepSuccess  = "SUCCESS"
	StepError    = "ERROR"
	StepDenied   = "DENIED"
	StepCanceled = "CANCELED"
)

// Person is who asks or answers: the database role, who logged in, and the application's end user.
type Person struct {
	Role        string
	SessionUser string
	Principal   string
}

// Preview is what a step would do, as a person and the model are shown it.
type Preview struct {
	Step      int               `json:"step"`
	Tool      string            `json:"tool"`
	Kind      string            `json:"kind"`
	Affected  *int64            `json:"rows_affected,omitempty"`
	Rows      []json.RawMessage `json:"rows,omitempty"`
	Truncated bool              `json:"truncated,omitempty"`
	Args      json.RawMessage   `json:"args,omitempty"`
}

// How a preview was found: by running the step and rolling it back, by the tool's own preview statement, or not at all,
// because the step reaches outside the database; then it shows the arguments.
const (
	PreviewExecuted  = "executed"
	PreviewStatement = "statement"
	PreviewArguments = "arguments"
)

// Proof is what a step must still be when it runs: the definition of its tool, and what the preview found.
type Proof struct {
	Digest   string `json:"digest"`
	Kind     string `json:"kind"`
	Affected int64  `json:"affected"`
	Print    int64  `json:"print"` // of the rows, 0 where rows are not compared
}

// Matches reports whether what was found now is what the preview found.
func (p Proof) Matches(now Proof) bool {
	return p.Kind == PreviewArguments || (p.Affected == now.Affected && p.Print == now.Print)
}

// Machine is a session of a temporal policy that every step has to pass.
type Machine struct {
	Conversation string `json:"conversation"`
	Policy       string `json:"policy"`
	// State is where it stands, of one that is not stored: of a read-only run.
	State string `json:"state,omitempty"`
}

// Bound is the digest that a yes is bound to: of the tool as it is, and of the policies.
func Bound(tool, policies string) string { return tool + "." + policies }

// Outcome is what came of a step.
type Outcome struct {
	Step   int             `json:"step"`
	Tool   string          `json:"tool"`
	Status string          `json:"status"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// Action is a plan that waits, or has waited, for a person.
type Action struct {
	ID             uuid.UUID
	Conversation   uuid.UUID // of the agent that proposed it
	Root           uuid.UUID // of the agent that the person called
	Task           uuid.UUID
	AgentID        uuid.UUID
	RootAgentID    uuid.UUID
	Agent          string
	Purpose        string // that the tools ran under, "" for none
	Requester      Person
	Approvers      []string // roles; empty: the requester answers
	Steps          []Step
	Previews       []Preview
	Proofs         []Proof
	Machines       []Machine
	Outcomes       []Outcome
	Status         Status
	CreatedAt      time.Time
	ExpiresAt      time.Time
	DecidedBy      string
	Token          string
	ConfirmReplies bool // of the agent that the person called, now
}

// requestedBy reports whether the person is the one whom the action was proposed to.
func (a *Action) requestedBy(p Person) bool {
	return a.Requester.Role == p.Role && a.Requester.Principal == p.Principal
}

// answers reports whether it is this person's to say yes. approves says that their role is a member of every approver's.
// Two pairs of eyes are two logins: a role that somebody takes on with SET ROLE, or another principal, is the same person.
func (a *Action) answers(p Person, approves bool) bool {
	if len(a.Approvers) == 0 {
		return a.requestedBy(p)
	}
	return approves && p.Role != a.Requester.Role && p.SessionUser != a.Requester.SessionUser
}

// MayConfirm checks the token and whose it is. What is wrong is not said in detail: who holds a guess learns nothing, not
// even whether there is such an action. Only the one who may confirm learns that it has expired.
func MayConfirm(a *Action, p Person, approves bool, token string, now time.Time) error {
	refusal := fault.New(fault.Privilege, "this action cannot be confirmed with this token").
		WithHint("aidb.pending_actions shows the actions that wait for you, each with its token.")
	// the comparison takes the same time for every guess, and for an action that does not exist
	known, want := a != nil, ""
	if known {
		want = a.Token
	}
	same := subtle.ConstantTimeCompare([]byte(token), []byte(want)) == 1
	switch {
	case !same, !known, want == "", !a.answers(p, approves), a.Status != Pending && a.Status != Expired:
		return refusal
	case a.Status == Expired, !now.Before(a.ExpiresAt): // whether or not it is written down yet
		return fault.New(fault.WrongState, "the action has expired").WithHint("Ask the agent again.")
	}
	return nil
}

// MayReject checks that it is this person's to say no: whoever could say yes, and who asked for it.
func MayReject(a *Action, p Person, approves bool, now time.Time) error {
	switch {
	case a == nil, !a.requestedBy(p) && !a.answers(p, approves):
		return fault.New(fault.Privilege, "there is no such action of yours")
	case a.Status != Pending:
		return fault.New(fault.WrongState, "the action is %s already", a.Status)
	case !now.Before(a.ExpiresAt):
		return fault.New(fault.WrongState, "the action has expired")
	}
	return nil
}

// MayUndo checks that it is this person's to undo: who asked for it, or who confirmed it.
func MayUndo(a *Action, p Person) error {
	switch {
	case a == nil, !a.requestedBy(p) && a.DecidedBy != p.Role:
		return fault.New(fault.Privilege, "there is no such action of yours")
	case a.Status == Undone:
		return fault.New(fault.WrongState, "the action is undone already")
	case a.Status != Done && a.Status != Stopped, !slices.ContainsFunc(a.Outcomes, func(o Outcome) bool { return o.Status == StepSuccess }):
		return fault.New(fault.WrongState, "the action is %s: there is nothing to undo", a.Status)
	}
	return nil
}

// Ended is the status of an action whose steps were run.
func Ended(steps int, outcomes []Outcome, changed bool) Status {
	switch {
	case changed:
		return Void
	case len(outcomes) == steps && outcomes[steps-1].Status == StepSuccess:
		return Done
	}
	return Stopped
}

// Rest completes the outcomes of a plan that stopped with the steps that were not run.
func Rest(steps []Step, outcomes []Outcome) []Outcome {
	for _, s := range steps[len(outcomes):] {
		outcomes = append(outcomes, Outcome{Step: s.N, Tool: s.Tool, Status: StepCanceled, Error: "not run: a step before it stopped the plan"})
	}
	return outcomes
}

// SentBefore are the outcomes of a plan that is not run, because of steps that left the database in a confirmation that was
// rolled back: nobody knows what they did, so they are not sent again, and nothing that belongs to them is done.
func SentBefore(steps []Step, sent []int) []Outcome {
	outcomes := make([]Outcome, 0, len(steps))
	for _, s := range steps {
		o := Outcome{Step: s.N, Tool: s.Tool, Status: StepCanceled, Error: "not run: another step of the plan was sent before"}
		if slices.Contains(sent, s.N) {
			o.Status = StepError
			o.Error = "it was sent before, in a confirmation that was rolled back or interrupted, and what it did there is not on record: " +
				"it is not sent again; find out how things stand, then ask the agent again"
		}
		outcomes = append(outcomes, o)
	}
	return outcomes
}

// Described is a tool as describe_actions shows it. Reason says why it is not permitted; "" when it is.
type Described struct {
	Name        string
	Description string
	Class       string
	Undoable    bool
	Reason      string
}

// Event is something that happened to an action, for the log.
type Event string

// The events, as the log shows them.
const (
	WasProposed  Event = "proposed"
	WasConfirmed Event = "confirmed"
	WasRejected  Event = "rejected"
	WasExpired   Event = "expired"
	WasUndone    Event = "undone"
)
