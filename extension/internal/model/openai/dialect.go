package openai

import (
	"encoding/json"
	"strings"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
)

// dialect is how a request is spelled where servers want it spelled differently. The zero dialect is what most
// accept. Each other spelling means the same, and is tried when, and only when, a server complains about the
// first in so many words; the provider remembers what a server wanted.
type dialect struct {
	// legacyTokens and modernTokens say by which names a bound on the reply is sent; the config decides at first.
	legacyTokens, modernTokens bool
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
}

// sent is what adapt needs to know of the request that was refused.
type sent struct {
	tokens   bool // a bound on the reply
	tools    bool
	calls    bool // calls in the history
	empty    bool // a message without text
	toolUser bool // a user message right after a result
	extras   bool
	system   bool
}

// adapt returns the dialect that a refusal asks for, false when it asks for none that is new.
func (d dialect) adapt(f *failure, s sent) (dialect, bool) {
	if f.kind != fault.ModelRejected {
		return d, false
	}
	old, w := d, f.words
	switch {
	case s.tokens && strings.Contains(w, "max_completion_tokens") && d.legacyTokens && unsupported(w) && aboutFirst(w, "max_tokens", "max_completion_tokens"):
		d.legacyTokens, d.modernTokens = false, true
	case s.tokens && strings.Contains(w, "max_completion_tokens") && d.modernTokens && unsupported(w):
		d.legacyTokens, d.modernTokens = true, false
	case s.tokens && strings.Contains(w, "max_tokens") && d.legacyTokens && unsupported(w):
		d.legacyTokens, d.modernTokens = false, true
	case s.extras && anyOf(w, "reasoning_content", "reasoning_details", "thinking_blocks", "extra_content"):
		d.noExtras = true
	case s.calls && anyOf(w, "tool call id", "tool_call_id", "tool_calls", ".id'", "call id", "tool_use_id", "tool_use.id") &&
		anyOf(w, "length", "pattern", "too long", "characters", "a-z", "alphanumeric", "format") && !anyOf(w, "context"):
		d.shortIDs = true
	case s.toolUser && anyOf(w, "alternate", "unexpected role 'user' after role 'tool'", "after role 'tool'", "after role tool", "role 'user' after", "last role"):
		d.bridge = true
	case s.calls && !s.tools && anyOf(w, "tools", "toolconfig", "tool config") && anyOf(w, "must be", "required", "defined", "without", "missing", "not provided", "specified"):
		d.pastTools = true
	case s.empty && anyOf(w, "content", "text") &&
		anyOf(w, "empty", "blank", "whitespace", "at least 1 character", "too short", "min_length", "missing", "required", "null", "nil"):
		d.noEmptyText = true
	case s.system && anyOf(w, "system role not supported", "system role is not supported", "unknown variant `system`", "unexpected role 'system'", "system message is not supported", "developer instruction is not enabled", "does not support system"):
		d.noSystem = true
	case s.tools && anyOf(w, "schema", "parameters", "function_declarations", "unknown name", "unknown keyword", "additionalproperties"):
		d.plainSchema = true
	}
	return d, d != old
}

func unsupported(w string) bool {
	return anyOf(w, "unsupported", "not supported", "unrecognized", "unknown", "not permitted", "extra inputs", "extra_forbidden", "unexpected", "not allowed", "use '", "use `", "instead")
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
		return dialect{}
	}
	f := c.MaxTokens.Format
	return dialect{legacyTokens: f == "legacy" || f == "both", modernTokens: f != "legacy"}
}

// plainKeywords are what every server understands in a tool's schema. The others only narrow what a model may
// send, and that is checked on our side anyway.
var plainKeywords = map[string]bool{
	"type": true, "properties": true, "required": true, "items": true, "description": true, "enum": true, "title": true, "format": true,
}

// plainSchema takes everything but the plain keywords out of a schema.
func plainSchema(raw json.RawMessage) json.RawMessage {
	var schema any
	if json.Unmarshal(raw, &schema) != nil {
		return raw
	}
	out, err := json.Marshal(plain(schema))
	if err != nil {
		return raw
	}
	return out
}

func plain(schema any) any {
	object, ok := schema.(map[string]any)
	if !ok {
		return map[string]any{}
	}
	out := make(map[string]any, len(object))
	for k, v := range object {
		switch {
		case k == "const":
			out["enum"] = []any{v}
		case !plainKeywords[k]:
		case k == "items":
			out[k] = plain(v)
		case k == "type":
			out[k] = oneType(v)
		case k == "properties":
			props := map[string]any{}
			if all, ok := v.(map[string]any); ok {
				for name, p := range all {
					props[name] = plain(p)
				}
			}
			out[k] = props
		default:
			out[k] = v
		}
	}
	return out
}

// oneType chooses the first type that is not null where several are allowed.
func oneType(v any) any {
	list, ok := v.([]any)
	if !ok {
		return v
	}
	for _, t := range list {
		if t != "null" {
			return t
		}
	}
	return "string"
}

// withProperties is a tool's schema as servers want it: an object, with its properties spelled out, without
// $schema, which names a version that nobody asks about and some refuse.
func withProperties(t *agent.ToolSpec, d dialect) json.RawMessage {
	raw := t.Parameters
	if len(raw) == 0 || !json.Valid(raw) {
		return emptySchema
	}
	text := conversation.CleanJSON(string(raw))
	raw = json.RawMessage(text)
	if d.plainSchema {
		raw = plainSchema(raw)
		text = string(raw)
	}
	if strings.Contains(text, `"properties"`) && !strings.Contains(text, `"$schema"`) {
		return raw
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil || object == nil {
		return emptySchema
	}
	delete(object, "$schema")
	if object["type"] == nil {
		object["type"] = json.RawMessage(`"object"`)
	}
	if object["properties"] == nil && string(object["type"]) == `"object"` {
		object["properties"] = json.RawMessage(`{}`)
	}
	out, err := json.Marshal(object)
	if err != nil {
		return emptySchema
	}
	return out
}

var emptySchema = json.RawMessage(`{"type":"object","properties":{}}`)
