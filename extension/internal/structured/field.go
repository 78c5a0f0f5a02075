package structured

// The fields that aidb.output_type() collects, as a JSON Schema. A field's type is an SQL type name or one of the words
// that people write instead; what is not known is not enforced, but the model is told.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"aidb/extension/internal/fault"
	"aidb/extension/internal/schema"
)

// field is one field. Fields makes it an object (or an array of objects) of a shape of its own.
type field struct {
	Name        string          `json:"name"`
	Type        string          `json:"type"`
	Description string          `json:"description"`
	Required    *bool           `json:"required"`
	Enum        []any           `json:"enum"`
	Fields      json.RawMessage `json:"fields"`

	inner []field
}

// maxLevels bounds fields within fields.
const maxLevels = 20

func readFields(raw json.RawMessage) ([]field, error) { return readLevel(raw, 1) }

func readLevel(raw json.RawMessage, level int) ([]field, error) {
	var fields []field
	if err := json.Unmarshal(raw, &fields); err != nil || len(fields) == 0 || level > maxLevels {
		return nil, fault.New(fault.InvalidArgument, "\"fields\" must be an array with at least one field {\"name\", \"type\"}")
	}
	seen := map[string]bool{}
	for i := range fields {
		f := &fields[i]
		switch {
		case strings.TrimSpace(f.Name) == "" || strings.TrimSpace(f.Type) == "":
			return nil, fault.New(fault.InvalidArgument, "each field must have a \"name\" and a \"type\"")
		case seen[f.Name]:
			return nil, fault.New(fault.InvalidArgument, "the field %s is there twice", fault.Name(f.Name))
		}
		seen[f.Name] = true
		if len(f.Fields) > 0 && string(f.Fields) != "null" {
			var err error
			if f.inner, err = readLevel(f.Fields, level+1); err != nil {
				return nil, err
			}
		}
	}
	return fields, nil
}

// patterns are the texts of types that have one form only.
var patterns = map[string]string{
	"date": `^[0-9]{4,}-[0-9]{2}-[0-9]{2}$`,
	"uuid": `^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$`,
}

// objectSchema writes the schema of an object with these fields and no others.
func objectSchema(fields []field) json.RawMessage {
	b := []byte(`{"type":"object","properties":{`)
	var required []string
	for i, f := range fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, text(f.Name)...), ':')
		b = append(b, f.schema()...)
		if f.required() {
			required = append(required, f.Name)
		}
	}
	b = append(b, '}')
	if len(required) > 0 {
		b = fmt.Appendf(b, `,"required":%s`, text(required))
	}
	return append(b, `,"additionalProperties":false}`...)
}

func (f *field) required() bool { return f.Required == nil || *f.Required }

// schema writes the schema of the field's value. An optional field may also be there as a null: that is how many
// models leave something out.
func (f *field) schema() json.RawMessage {
	kind, items, known := schema.SQLType(f.Type)
	if f.inner != nil && kind != schema.Array {
		b := objectSchema(f.inner)
		if !f.required() {
			return json.RawMessage(`{"anyOf":[` + string(b) + `,{"type":"null"}]}`)
		}
		return b
	}
	members := map[string]any{}
	describe := f.Description
	name := strings.ToLower(strings.TrimSpace(f.Type))
	switch {
	case !known && kind != schema.Array:
		describe = strings.TrimSpace(describe + " (" + f.Type + ")")
	case kind != schema.Anything:
		members["type"] = kind
		if !f.required() {
			members["type"] = []string{kind, "null"}
		}
		if kind == schema.String && name != "text" && name != "string" {
			describe = strings.TrimSpace(describe + " (" + f.Type + ")")
		}
	}
	if p := patterns[name]; p != "" {
		members["pattern"] = p
	}
	if kind == schema.Array && f.inner != nil {
		members["items"] = objectSchema(f.inner)
	} else if kind == schema.Array && known && items != schema.Anything {
		members["items"] = map[string]any{"type": items}
	}
	if len(f.Enum) > 0 {
		members["enum"] = f.Enum
		if !f.required() {
			members["enum"] = append(f.Enum[:len(f.Enum):len(f.Enum)], nil)
		}
	}
	if describe != "" {
		members["description"] = describe
	}
	return text(members)
}

// text writes a value as JSON. It is made of strings, lists and maps of them, and of what was JSON before, so it can be.
func text(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // a person or a model reads it
	if e.Encode(v) != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimSpace(b.Bytes())
}
