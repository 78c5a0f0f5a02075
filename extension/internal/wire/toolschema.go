package wire

import (
	"encoding/json"
	"strings"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
)

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

// WithProperties is a tool's schema as servers want it: an object, with its properties spelled out, without
// $schema, which names a version that nobody asks about and some refuse.
func WithProperties(t *agent.ToolSpec, simple bool) json.RawMessage {
	raw := t.Parameters
	if len(raw) == 0 || !json.Valid(raw) {
		return EmptySchema
	}
	text := conversation.CleanJSON(string(raw))
	raw = json.RawMessage(text)
	if simple {
		raw = plainSchema(raw)
		text = string(raw)
	}
	if strings.Contains(text, `"properties"`) && !strings.Contains(text, `"$schema"`) {
		return raw
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil || object == nil {
		return EmptySchema
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
		return EmptySchema
	}
	return out
}

var EmptySchema = json.RawMessage(`{"type":"object","properties":{}}`)
