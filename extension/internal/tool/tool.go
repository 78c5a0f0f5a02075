// Package tool describes tools and checks the arguments of a call. It runs none: that is the toolboxes' business.
//
// A tool's parameters are declared with SQL type names (TEXT, NUMERIC, int[], …), because that is what their
// arguments become; models and MCP clients see the JSON Schema that InputSchema makes of them. An MCP server
// declares a JSON Schema itself; Schema then holds it as it came.
package tool

import (
	"encoding/json"
	"time"

	"aidb/extension/internal/schema"
)

// The kinds of tools, as the column tool_type of aidb.tools shows them.
const (
	Native = "native_tool"
	SQL    = "sql_tool"
	MCP    = "mcp_tool"
)

// Parameter is one declared parameter. Type is an SQL type name. Enum, when not empty, lists the texts allowed.
type Parameter struct {
	Name        string          `json:"name"`
	Type        string          `json:"type"`
	Description string          `json:"description,omitempty"`
	Required    bool            `json:"required,omitempty"`
	Enum        []string        `json:"enum,omitempty"`
	Default     json.RawMessage `json:"default,omitempty"`
}

// Tool is one tool of the catalog.
type Tool struct {
	Name        string
	Description string
	Type        string
	Params      []Parameter
	ReadOnly    bool
	// Function is the SQL function behind a native tool, with its argument types: EXECUTE on it permits the tool.
	Function string
	// Of an SQL tool: its statement with $1, $2, … for Params in their order, the qualified names of their types, what
	// its rows look like, and its own limits (0: none).
	Statement string
	Types     []string
	Result    []Parameter
	Timeout   time.Duration
	MaxRows   int
	// Schema is the input schema of an MCP tool; Params is then not read.
	Schema json.RawMessage
}

// InputSchema returns the JSON Schema of the tool's arguments: an object that admits no other members. Models get
// this text with every request, so it holds nothing that some provider refuses (only type, properties, required,
// enum, items, description and additionalProperties).
func (t Tool) InputSchema() json.RawMessage {
	if len(t.Schema) > 0 {
		return t.Schema
	}
	b := make([]byte, 0, 96+96*len(t.Params))
	b = append(b, `{"type":"object","properties":{`...)
	required := make([]string, 0, len(t.Params))
	for i, p := range t.Params {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(quote(b, p.Name), ':')
		b = p.schema(b)
		if p.Required {
			required = append(required, p.Name)
		}
	}
	b = append(b, `},"required":[`...)
	for i, name := range required {
		if i > 0 {
			b = append(b, ',')
		}
		b = quote(b, name)
	}
	return append(b, `],"additionalProperties":false}`...)
}

func (p Parameter) schema(b []byte) []byte {
	kind, items := jsonType(p.Type)
	b = append(b, '{')
	if kind != anything {
		b = append(quote(append(b, `"type":`...), kind), ',')
	}
	if kind == array && items != anything {
		b = append(quote(append(b, `"items":{"type":`...), items), '}', ',')
	} else if kind == array {
		b = append(b, `"items":{},`...)
	}
	if len(p.Enum) > 0 {
		b = append(b, `"enum":[`...)
		for i, e := range p.Enum {
			if i > 0 {
				b = append(b, ',')
			}
			b = quote(b, e)
		}
		b = append(b, ']', ',')
	}
	if p.Description != "" {
		b = append(quote(append(b, `"description":`...), p.Description), ',')
	}
	if b[len(b)-1] == ',' {
		b = b[:len(b)-1]
	}
	return append(b, '}')
}

// The JSON types. Anything is for json and jsonb, which take every value.
const (
	anything = schema.Anything
	text     = schema.String
	number   = schema.Number
	integer  = schema.Integer
	boolean  = schema.Boolean
	array    = schema.Array
)

// jsonType maps an SQL type name to the JSON type of its arguments, and of its elements when it is an array.
func jsonType(sql string) (kind, items string) {
	kind, items, _ = schema.SQLType(sql)
	return kind, items
}

// quote appends s as a JSON string. Marshal does not fail for a string.
func quote(b []byte, s string) []byte {
	q, _ := json.Marshal(s)
	return append(b, q...)
}
