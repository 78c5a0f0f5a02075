package conversation

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// ActionType is the kind of a record, one label of the SQL type aidb.action_type.
type ActionType string

// The action types.
const (
	UserPrompt    ActionType = "user_prompt"
	ModelRequest  ActionType = "model_request"
	ModelResponse ActionType = "model_response"
	ToolCalled    ActionType = "tool_call"
	ToolResponse  ActionType = "tool_response"
	Answer        ActionType = "answer"
	Failure       ActionType = "error"
	Compaction    ActionType = "compaction"
	Approval      ActionType = "approval"
)

// The labels of the SQL type aidb.task_status that the core writes.
const (
	StatusInProgress    = "IN_PROGRESS"
	StatusAwaitApproval = "AWAIT_APPROVAL"
	StatusSuccess       = "SUCCESS"
	StatusError         = "ERROR"
	StatusTimeout       = "TIMEOUT"
	StatusCanceled      = "CANCELED"
	StatusDenied        = "DENIED"
)

// Record is one row of the action log. ID doubles as the message id of prompts and answers; Sequence groups the
// records of one round. A nil payload is SQL NULL, an empty Error too.
//
// CreatedAt is when the step began and CompletedAt when it ended; within a run CreatedAt strictly increases, so
// ordering by it gives the order of the steps.
type Record struct {
	ID          uuid.UUID
	Sequence    uuid.UUID
	Type        ActionType
	Request     json.RawMessage
	Response    json.RawMessage
	Status      string
	Error       string
	CreatedAt   time.Time
	CompletedAt time.Time
}
