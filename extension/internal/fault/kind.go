package fault

// Kind says what a caller may do about a failure. The table below is the only place that maps a kind to a
// SQLSTATE; docs/reference/errors.md lists the same rows.
type Kind int

// The kinds. Those that begin with Model are about the model's provider.
const (
	// Unclassified is an error that nobody gave a kind: a defect, or a library's error passed through.
	Unclassified Kind = iota
	NotFound
	AlreadyExists
	InvalidArgument
	// InvalidText is text that cannot be read as what it should be (a uuid, JSON).
	InvalidText
	Privilege
	WrongState
	// Busy is a lock that was not to be had in time.
	Busy
	// Canceled is the server's own cancel, time-out or shutdown. It is never turned into a row: the engine raises it.
	Canceled
	// Timeout is the agent's own time budget.
	Timeout
	// BudgetSpent is any other budget of an agent.
	BudgetSpent
	// LimitExceeded is a fixed limit: rounds, delegation depth, sizes.
	LimitExceeded
	Unsupported
	ApprovalRequired
	PolicyDenied
	// ModelAuth: the provider does not accept the credentials.
	ModelAuth
	// ModelQuota: the account is out of credit; waiting does not help.
	ModelQuota
	// ModelRateLimited: too many requests, still so after the retries.
	ModelRateLimited
	// ModelOverflow: the prompt does not fit into the model's context.
	ModelOverflow
	// ModelRefused: the model or its content filter declined to answer.
	ModelRefused
	// ModelUnavailable: not reachable, or failing on its side, still so after the retries.
	ModelUnavailable
	// ModelProtocol: an answer that cannot be understood.
	ModelProtocol
	// ModelRejected: the provider does not accept the request.
	ModelRejected
	// ModelOutput: an understood answer that is of no use (empty, not of the type asked for).
	ModelOutput
	// ToolFailed is a tool's own failure where there is no model to hand it to (run_tool).
	ToolFailed
	// ServerAuth: an MCP server does not accept the headers.
	ServerAuth
	// ServerUnavailable: an MCP server is not reachable, or failing on its side.
	ServerUnavailable
	// ServerProtocol: an MCP server's answer that cannot be understood.
	ServerProtocol
	// OutcomeUnknown is a call that was sent and not answered: whether it took effect is not known.
	OutcomeUnknown
	// Internal is a defect of ours.
	Internal

	kindCount
)

// row is one kind: the name used in records and documentation, and its SQLSTATE.
type row struct{ name, state string }

// The server's own codes wherever one fits; class IA only for what callers must branch on.
var table = [kindCount]row{
	Unclassified:      {"unclassified", "XX000"},
	NotFound:          {"not_found", "42704"},
	AlreadyExists:     {"already_exists", "42710"},
	InvalidArgument:   {"invalid_argument", "22023"},
	InvalidText:       {"invalid_text", "22P02"},
	Privilege:         {"privilege", "42501"},
	WrongState:        {"wrong_state", "55000"},
	Busy:              {"busy", "55P03"},
	Canceled:          {"canceled", "57014"},
	Timeout:           {"timeout", "IA003"},
	BudgetSpent:       {"budget_spent", "IA003"},
	LimitExceeded:     {"limit_exceeded", "53400"},
	Unsupported:       {"unsupported", "0A000"},
	ApprovalRequired:  {"approval_required", "IA001"},
	PolicyDenied:      {"policy_denied", "IA002"},
	ModelAuth:         {"model_auth", "08004"},
	ModelQuota:        {"model_quota", "53400"},
	ModelRateLimited:  {"model_rate_limited", "53400"},
	ModelOverflow:     {"model_overflow", "54000"},
	ModelRefused:      {"model_refused", "IA004"},
	ModelUnavailable:  {"model_unavailable", "08006"},
	ModelProtocol:     {"model_protocol", "08P01"},
	ModelRejected:     {"model_rejected", "22023"},
	ModelOutput:       {"model_output", "IA004"},
	ToolFailed:        {"tool_failed", "38000"},
	ServerAuth:        {"server_auth", "08004"},
	ServerUnavailable: {"server_unavailable", "08006"},
	ServerProtocol:    {"server_protocol", "08P01"},
	OutcomeUnknown:    {"outcome_unknown", "08007"},
	Internal:          {"internal", "XX000"},
}

func (k Kind) row() row {
	if k < 0 || k >= kindCount {
		return table[Unclassified]
	}
	return table[k]
}

// String returns the kind's name in snake case.
func (k Kind) String() string { return k.row().name }

// SQLState returns the kind's SQLSTATE.
func (k Kind) SQLState() string { return k.row().state }

// Model reports whether the kind is about the model's provider.
func (k Kind) Model() bool { return k >= ModelAuth && k <= ModelOutput }

// Kinds returns every kind, for the test that compares the table with the documentation.
func Kinds() []Kind {
	all := make([]Kind, kindCount)
	for i := range all {
		all[i] = Kind(i)
	}
	return all
}

// Engine reports whether the error is a condition of the engine and not of what the agent did: cancel, shutdown,
// out of memory, a broken connection to the server, or a defect. Such an error is raised, so that the
// transaction ends; everything else becomes a row that the caller reads, and the transaction goes on.
func Engine(err error) bool {
	switch KindOf(err) {
	case Unclassified, Canceled, Internal:
		return err != nil
	}
	return false
}

// KindOfState returns the kind that fits a SQLSTATE of the server, for those who turn a server error into an *Error.
func KindOfState(state string) Kind {
	switch state {
	case "42501":
		return Privilege
	case "42704", "42P01", "42883", "3F000", "02000":
		return NotFound
	case "42710", "42P07", "23505":
		return AlreadyExists
	case "22023":
		return InvalidArgument
	case "55P03":
		return Busy
	case "57014", "57P01", "57P02", "57P03", "57P05", "25P03", "25P04":
		return Canceled
	case "0A000":
		return Unsupported
	}
	if len(state) != 5 {
		return Internal
	}
	switch state[:2] {
	case "22", "23", "42", "21", "44":
		return InvalidArgument
	case "55", "25", "40", "2F", "24", "34":
		return WrongState
	case "54":
		return LimitExceeded
	case "38", "39", "P0", "IA":
		return ToolFailed
	}
	// Among others 53 (resources), 58 (system), XX (defects): nothing an agent or a caller did.
	return Internal
}
