package openai

import (
	"strings"

	"aidb/extension/internal/fault"
	"aidb/extension/internal/wire"
)

// dialect is how a request is spelled where servers want it spelled differently. The zero dialect is what most
// accept. Each other spelling means the same, and is tried when, and only when, a server complains about the
// first in so many words; the provider remembers what a server wanted.
type dialect struct {
	// legacyTokens and modernTokens say by which names a bound on the reply is sent; the config decides at first.
	legacyTokens, modernTokens bool
	// renamedTokens: the other name was tried already.
	renamedTokens bool
	// noBudget does not bound the reply by what the run has left; it is then cut as it is read.
	noBudget bool
	// shortIDs sends nine letters and digits for each call id.
	shortIDs bool
	// noEmptyText leaves an empty content out, and gives an empty result some words.
	noEmptyText bool
	// bridge puts an assistant message between a tool's result and the user.
	bridge bool
	// noExtras keeps back the server's own members of earlier replies.
	noExtras bool
	// pastTools offers the tools of the history when there are none now.
	pastTools bool
	// plainSchema takes the less common keywords out of the tools' schemas.
	plainSchema bool
	// noSystem puts the system text into the first user message.
	noSystem bool
	// noStream asks for the answer in one piece, noStreamUsage does not ask for the counts at the end of a stream.
	noStream, noStreamUsage bool
	// noFormat leaves the schema of a typed answer to the words of the system text.
	noFormat bool
	// noForce asks for a typed answer in words only.
	noForce bool
}

// sent is what adapt needs to know of the request that was refused.
type sent struct {
	tokens   bool // a bound on the reply
	budget   bool // which is what the run has left
	force    bool // a tool that must be called
	tools    bool
	calls    bool // calls in the history
	empty    bool // a message without text
	toolUser bool // a user message right after a result
	extras   bool
	system   bool
	stream   bool
	counts   bool // those at the end of a stream
	format   bool // the schema of the answer
}

// adapt returns the dialect that a refusal asks for, false when it asks for none that is new.
func (d dialect) adapt(f *wire.Failure, s sent) (dialect, bool) {
	if f.Kind != fault.ModelRejected {
		return d, false
	}
	old, w := d, f.Words
	switch {
	case s.tokens && !d.renamedTokens && strings.Contains(w, "max_completion_tokens") && d.legacyTokens && unsupported(w) && aboutFirst(w, "max_tokens", "max_completion_tokens"):
		d.legacyTokens, d.modernTokens, d.renamedTokens = false, true, true
	case s.tokens && !d.renamedTokens && strings.Contains(w, "max_completion_tokens") && d.modernTokens && unsupported(w):
		d.legacyTokens, d.modernTokens, d.renamedTokens = true, false, true
	case s.tokens && !d.renamedTokens && strings.Contains(w, "max_tokens") && d.legacyTokens && unsupported(w):
		d.legacyTokens, d.modernTokens, d.renamedTokens = false, true, true
	case s.budget && wire.AnyOf(w, "max_tokens", "max_completion_tokens", "max tokens", "max_output_tokens", "max_new_tokens"):
		d.noBudget = true
	case s.force && wire.AnyOf(w, "tool_choice", "tool choice", "toolchoice", "named tool", "forced"):
		d.noForce = true
	case s.format && wire.AnyOf(w, "response_format", "json_schema", "json schema", "structured output"):
		d.noFormat = true
	case s.counts && strings.Contains(w, "stream_options"):
		d.noStreamUsage = true
	case s.stream && strings.Contains(w, "stream") && (unsupported(w) || wire.AnyOf(w, "not available", "cannot", "must be false", "disabled")):
		d.noStream = true
	case s.extras && wire.AnyOf(w, "reasoning_content", "reasoning_details", "thinking_blocks", "extra_content"):
		d.noExtras = true
	case s.calls && wire.AnyOf(w, "tool call id", "tool_call_id", "tool_calls", ".id'", "call id", "tool_use_id", "tool_use.id") &&
		wire.AnyOf(w, "length", "pattern", "too long", "characters", "a-z", "alphanumeric", "format") && !wire.AnyOf(w, "context"):
		d.shortIDs = true
	case s.toolUser && wire.AnyOf(w, "alternate", "unexpected role 'user' after role 'tool'", "after role 'tool'", "after role tool", "role 'user' after", "last role"):
		d.bridge = true
	case s.calls && !s.tools && wire.AnyOf(w, "tools", "toolconfig", "tool config") && wire.AnyOf(w, "must be", "required", "defined", "without", "missing", "not provided", "specified"):
		d.pastTools = true
	case s.empty && wire.AnyOf(w, "content", "text") &&
		wire.AnyOf(w, "empty", "blank", "whitespace", "at least 1 character", "too short", "min_length", "missing", "required", "null", "nil"):
		d.noEmptyText = true
	case s.system && wire.AnyOf(w, "system role not supported", "system role is not supported", "unknown variant `system`", "unexpected role 'system'", "system message is not supported", "developer instruction is not enabled", "does not support system"):
		d.noSystem = true
	case s.tools && wire.AnyOf(w, "schema", "parameters", "function_declarations", "unknown name", "unknown keyword", "additionalproperties"):
		d.plainSchema = true
	}
	return d, d != old
}

func unsupported(w string) bool {
	return wire.AnyOf(w, "unsupported", "not supported", "unrecognized", "unknown", "not permitted", "extra inputs", "extra_forbidden", "unexpected", "not allowed", "use '", "use `", "instead")
}

// aboutFirst reports whether the first of two words comes first: "Unsupported parameter: 'max_tokens' … Use
// 'max_completion_tokens' instead."
func aboutFirst(w, a, b string) bool {
	i, j := strings.Index(w, a), strings.Index(w, b)
	return i >= 0 && (j < 0 || i < j)
}

// start is the dialect that the config asks for.
func (c *config) start() dialect {
	if c.MaxTokens == nil {
		// For what the run has left: servers other than OpenAI's own know the older name best, and ignore the other.
		own := strings.HasPrefix(c.endpoint, DefaultURL+"/")
		return dialect{legacyTokens: !own, modernTokens: own}
	}
	f := c.MaxTokens.Format
	return dialect{legacyTokens: f == "legacy" || f == "both", modernTokens: f != "legacy"}
}
