package agent

// What the loop needs from the outside. The loop declares it, adapters implement it, main wires them together;
// package testkit holds the fakes.

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"aidb/extension/internal/conversation"
	"aidb/extension/internal/policy"
	"aidb/extension/internal/purpose"
)

// ToolSpec is a tool as the model sees it. Parameters is a JSON Schema object.
type ToolSpec struct {
	Name        string
	Description string
	Parameters  json.RawMessage
}

// Request is one call of a model: the whole conversation, the system message (if any) first. The slices belong
// to the loop and are valid until Complete returns; a model that keeps something copies it.
type Request struct {
	Messages []conversation.Message
	Tools    []ToolSpec
	// Output is the JSON Schema that the answer has to be valid against, nil for free text. The messages say so, too: a
	// model whose provider takes a schema hands it on, any other leaves it alone.
	Output json.RawMessage
	// Forced: nothing but the answer is wanted now, as a reply was not valid. A model that has its provider see to that where it
	// otherwise leaves it to the words.
	Forced bool
	// MaxOutput is how many tokens a reply may have, 0 for any number: what is beyond them could not be paid for. A model asks
	// its provider for no more, and one that streams stops reading where a provider does not heed it; a reply that was cut says so.
	MaxOutput int64
	// Summary: what is asked for is the summary of a compaction.
	Summary bool
}

// The finish reasons that the loop tells apart. A model may return any other word; it is recorded.
const (
	FinishStop          = "stop"
	FinishToolCalls     = "tool_calls"
	FinishLength        = "length"
	FinishContentFilter = "content_filter"
)

// Reply is what a model answered. Model is the name that the provider reports, Retries what had failed before.
type Reply struct {
	Content   string
	ToolCalls []conversation.ToolCall
	Finish    string
	Model     string
	Usage     conversation.Usage
	Retries   []conversation.Retry
	// Bytes is how much arrived, where that is more than the text and the calls: thoughts are paid for, too.
	Bytes int
	// Price is that of the model that answered, where it is not the run's own.
	Price *Price
}

// Model is one model of one provider. Complete retries what can be retried, inside ctx, and returns a
// *fault.Error of one of the Model kinds with a text free of secrets. An error without a kind counts as
// unclassified: the loop asks again, up to a limit.
type Model interface {
	Complete(ctx context.Context, r Request) (Reply, error)
}

// ModelRef is a registered model: everything an adapter needs to reach it. Credentials stay opaque to the core
// and are never logged. Context is its context size in tokens, 0 when that is not known; Price is nil when it has none.
type ModelRef struct {
	Context         int64
	Price           *Price
	Metered         bool // there are quotas
	Name            string
	Provider        string
	Config          json.RawMessage
	Credentials     json.RawMessage
	CredentialsEnv  string
	CredentialsFile string
}

// Models opens models. An error that is not the engine's becomes the error row of the call.
type Models interface {
	Open(ctx context.Context, ref ModelRef) (Model, error)
}

// Result is the outcome of a tool call as the model sees it: contents, or an error text. The loop puts
// "Tool error: " before an Error that does not begin with it. Gist is what tells whether a call that is repeated
// brought something new, where Contents differ each time; "" is Contents. Used is what the runs used that the call
// delegated.
type Result struct {
	Contents string
	Error    string
	Gist     string
	Used     Used
	// Waits says that the call was not run: it waits for a person, or until a time. A background task is put aside until
	// they answer, or until then.
	Waits bool
	Until time.Time
	// Action is the action that the call was, once a person has answered. Declined says why it is nothing: "" they said yes.
	Action   string
	Declined string
}

// Toolbox is the tools of one run. Call checks the arguments; whatever is wrong with the call or the tool is a
// Result with Error set. An error means that the run cannot go on: the engine's (cancel, host gone) is raised,
// any other ends the run with an error row.
//
// Pass asks the temporal policies of the run about a call that the toolbox does not run itself (a delegate): nil is yes,
// a Result is what the model is told. With probe nothing is kept; without, the call counts as made.
//
// n is the number of the call in its run, from 1: a run that is taken up again gives a call the number that it had.
type Toolbox interface {
	Specs() []ToolSpec
	Call(ctx context.Context, call conversation.ToolCall, n int) (Result, error)
	Pass(ctx context.Context, call conversation.ToolCall, probe bool) (*Result, error)
}

// ToolboxRequest says whose tools to open. Role "" means that tools run as the caller. ConversationID and TaskID
// are zero in a read-only run, of which nothing is stored.
type ToolboxRequest struct {
	Names          []string
	ReadOnly       bool
	Debug          bool // what happens is shown as it does
	Role           string
	RoleID         string // see purpose.State
	Elevated       bool
	Purpose        string
	Guards         policy.Guards
	AgentID        uuid.UUID
	Agent          string
	Caller         Caller
	TaskID         uuid.UUID
	ConversationID uuid.UUID
	// Of the run that the person called, where this one was delegated; else its own.
	RootAgentID        uuid.UUID
	RootConversationID uuid.UUID
	// Catalog: the model sees the tools through describe_actions and act.
	Catalog bool
}

// Toolboxes opens toolboxes: resolves the names, drops what a read-only run may not use, adds what every agent has.
type Toolboxes interface {
	Open(ctx context.Context, r ToolboxRequest) (Toolbox, error)
}

// Task is one call of agent_converse, or of an agent by another one, as its row begins. Parent is the task that
// delegated it, nil for a call from outside. Role is the role that tools run as ("" = the caller). TimeoutAt is
// CreatedAt plus the agent's time budget.
type Task struct {
	ID             uuid.UUID
	Parent         *uuid.UUID
	AgentID        uuid.UUID
	Agent          string
	ConversationID uuid.UUID
	PromptID       uuid.UUID
	Caller         Caller
	Role           string
	Purpose        string
	CreatedAt      time.Time
	TimeoutAt      time.Time
}

// TaskEnd is how a task ended. BudgetConsumed is input plus output tokens, estimated where the provider did not
// say, and fits an SQL integer; Usage holds only what it said. Cost is in units of account, nil when the model has no price. AnswerID is nil without an answer.
type TaskEnd struct {
	ID             uuid.UUID
	Status         string
	Error          string
	PromptID       uuid.UUID
	AnswerID       *uuid.UUID
	BudgetConsumed int64
	Cost           *int64
	Usage          conversation.Usage
	Rounds         int
	CompletedAt    time.Time
	TimeoutAt      time.Time
}

// Journal writes one run: its task and its records, in the order given. It may buffer: Finish flushes. The slice of
// records is the loop's, their payloads are the journal's to keep. Any error is raised, never turned into a row: what
// cannot be logged must not take effect.
type Journal interface {
	Begin(ctx context.Context, t Task) error
	Append(ctx context.Context, records ...conversation.Record) error
	Finish(ctx context.Context, end TaskEnd) error
}

// Conversation is what is known of a conversation. Exists is false for an id that no task has used yet; the other
// fields are then zero. Role, SessionUser and Principal are those of the caller that began it: together they own
// it. Records is its log, oldest first; record types that Rebuild does not read may be left out.
type Conversation struct {
	ID          uuid.UUID
	Exists      bool
	Agent       string
	Role        string
	SessionUser string
	Principal   string
	Records     []conversation.Record
	// Actions: there are actions that wait for a person, or that have ended without the model knowing.
	Actions bool
}

// Actions are the actions that the agent has proposed in a conversation. Reply takes the next prompt: if the agent was
// created with confirm_replies it is the answer to what waits. The note tells the model how actions have ended; "" is
// nothing to tell. An error is raised: what a person decided must not be half done.
type Actions interface {
	Reply(ctx context.Context, conversation uuid.UUID, prompt string, confirms bool) (note string, err error)
}

// Store reads what a run needs. Agent returns nil without an error when there is none of that name.
// Conversation locks the id until the transaction ends, so that one conversation runs one call at a time; a second
// call of the same transaction passes. Delegates returns those of the agents that exist and are enabled, in the order
// of the names. Narrower reports whether a purpose's role has no right that the other role lacks, because that one is a
// member of it; a purpose's role that does not exist has none.
type Store interface {
	Agent(ctx context.Context, name string) (*Definition, error)
	Conversation(ctx context.Context, id uuid.UUID) (Conversation, error)
	Delegates(ctx context.Context, names []string) ([]Delegate, error)
	Narrower(ctx context.Context, purposeRole, role string) (bool, error)
}

// Delegate is an agent as another one's model sees it. The instructions may be cut.
type Delegate struct {
	Name         string
	Instructions string
}

// Clock is the time.
type Clock interface{ Now() time.Time }

// IDs makes ids; in production UUIDs of version 7, which sort by time.
type IDs interface{ New() uuid.UUID }

// Tracer speaks to the session: debug lines and warnings. It cannot fail; a host that is gone drops them.
type Tracer interface {
	Notice(text string)
	Warning(text, hint string)
}

// Definition is an agent as stored, with what it refers to. Model is nil when no model of that name is
// registered, Purpose nil when the agent has none. Nil budgets are unset.
type Definition struct {
	ID                uuid.UUID
	Name              string
	Instructions      string
	ModelName         string
	Model             *ModelRef
	Purpose           *PurposeState
	Policies          []policy.State // the agent's own and its purpose's, as far as there are any
	Tools             []string
	Delegates         []string
	OutputType        json.RawMessage
	InputTokenBudget  *int
	OutputTokenBudget *int
	MaxIterations     *int
	TimeoutSeconds    *int
	CostBudget        int64 // in units of account, as TreeCostBudget; 0: none
	TreeTokenBudget   *int
	TreeCostBudget    int64
	Compaction        CompactionSettings
	Strategy          string
	Enabled           bool
	Owner             string
	// Exposure is direct or catalog; ConfirmReplies makes a prompt the answer to what waits.
	Exposure       string
	ConfirmReplies bool
}

// ExposureCatalog shows the model its tools through describe_actions and act.
const ExposureCatalog = "catalog"

// PurposeState is a purpose as the registry has it now.
type PurposeState = purpose.State

// Caller is who called: Role is the current role, SessionUser who logged in, Principal the application's end user.
type Caller struct {
	Role        string
	SessionUser string
	Principal   string
	Superuser   bool
}

// Call is one call of agent_converse. Nil means that the argument was NULL. InRecovery says that the server is a standby,
// CannotWrite that the caller's transaction is read-only, as it always is on a standby.
type Call struct {
	Agent          string
	Prompt         string
	ConversationID *string
	ReadOnly       *bool
	OutputType     json.RawMessage
	Debug          bool
	InRecovery     bool
	CannotWrite    bool
	Caller         Caller
}

// Outcome is the row that agent_converse returns: Message and ConversationID, or Error alone.
type Outcome struct {
	Message        *string
	ConversationID *string
	Error          *string
	// Parked: none of them, the background task waits and will be taken up again.
	Parked bool
}
