// Package tool describes tools and checks the arguments of a call. It runs none: that is the toolboxes' business.
//
// A tool's parameters are declared with SQL type names (TEXT, NUMERIC, int[], …), because that is what their
// arguments become; models and MCP clients see the JSON Schema that InputSchema makes of them. An MCP server
// declares a JSON Schema itself; Schema then holds it as it came.
package tool

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"aidb/extension/internal/schema"
)

// The kinds of tools, as the column tool_type of aidb.tools shows them.
const (
	Native = "native_tool"
	SQL    = "sql_tool"
	MCP    = "mcp_tool"
)

// Parameter is one declared parameter. Type is an SQL type name, Base the one beneath when that is a domain. Enum, when
// not empty, lists the texts allowed. Labels are those of an enum type as they were when the tool was registered: they are
// shown, and the type itself says what is allowed.
type Parameter struct {
	Name        string          `json:"name"`
	Type        string          `json:"type"`
	Description string          `json:"description,omitempty"`
	Required    bool            `json:"required,omitempty"`
	Enum        []string        `json:"enum,omitempty"`
	Default     json.RawMessage `json:"default,omitempty"`
	Base        string          `json:"base,omitempty"`
	Labels      []string        `json:"labels,omitempty"`
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
	// Risk is the class that the tool comes with, "" for none; governance may have set another. Preview and Undo are nil
	// where there is none. Approver is the role of which somebody else must confirm. Version tells definitions apart.
	Risk          string
	Preview       *Companion
	Undo          *Companion
	Approver      string
	AllowMismatch bool
	Version       string
	// Schema is the input schema of an MCP tool; Params is then not read.
	Schema json.RawMessage
	// Of an MCP tool: its server, and whether its definition has changed and waits for approval. Such a tool is not used.
	// Idempotent: it may be called again when nobody knows whether it was.
	Server      string
	Quarantined bool
	Idempotent  bool
}

// Companion is a statement beside a tool's own: $1, $2, … stand for the parameters in Names. In an undo statement the name
// Returned stands for the rows that the tool returned.
type Companion struct {
	Statement string   `json:"statement"`
	Names     []string `json:"names"`
}

// Returned is the name of what a tool returned, in its undo statement.
const Returned = "result"

// Digest is what a person's yes is bound to: it changes with everything that decides what the tool does, whom it asks and
// what it shows.
func (t Tool) Digest() string {
	definition, err := json.Marshal([]any{
		t.Name, t.Type, t.Params, t.ReadOnly, t.Function, t.Statement, t.Types, t.Preview, t.Undo, t.Approver, t.AllowMismatch,
		t.Schema, t.Description,
	})
	if err != nil { // texts and lists of texts; raw JSON comes from jsonb
		return ""
	}
	sum := sha256.Sum256(definition)
	return hex.EncodeToString(sum[:])
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
	b = append(b, '}')
	for i, name := range required { // an empty list is no schema to those who read the older drafts
		if i == 0 {
			b = append(b, `,"required":[`...)
		} else {
			b = append(b, ',')
		}
		b = quote(b, name)
	}
	if len(required) > 0 {
		b = append(b, ']')
	}
	return append(b, `,"additionalProperties":false}`...)
}

// OutputSchema returns the JSON Schema of what an SQL tool returns, its rows, where its hint says what they are; else nil.
func (t Tool) OutputSchema() json.RawMessage {
	if len(t.Result) == 0 {
		return nil
	}
	b := []byte(`{"type":"array","items":{"type":"object","properties":{`)
	for i, p := range t.Result {
		if i > 0 {
			b = append(b, ',')
		}
		b = p.schema(append(quote(b, p.Name), ':'))
	}
	return append(b, `}}}`...)
}

func (p Parameter) schema(b []byte) []byte {
	kind, items := p.jsonType()
	start := len(b)
	switch values := p.values(); {
	case kind == array && items == anything:
		b = append(b, `,"type":"array","items":{}`...)
	case kind == array:
		b = append(enum(quote(append(b, `,"type":"array","items":{"type":`...), items), items, values), '}')
	case kind != anything:
		b = enum(quote(append(b, `,"type":`...), kind), kind, values)
	default:
		b = enum(b, text, values)
	}
	if text := p.shown(); text != "" {
		b = quote(append(b, `,"description":`...), text)
	}
	if len(b) == start {
		return append(b, "{}"...)
	}
	b[start] = '{'
	return append(b, '}')
}

// shown is the description, with what the caller of the tool has to know besides and some provider refuses as a keyword.
func (p Parameter) shown() string {
	var more []string
	if strings.EqualFold(p.Type, "bytea") || strings.EqualFold(p.Base, "bytea") {
		more = append(more, "base64")
	}
	if len(p.Default) > 0 && len(p.Default) <= maxShown && !isNull(p.Default) {
		more = append(more, "default "+string(p.Default))
	}
	more = slices.DeleteFunc(more, func(m string) bool { // whoever describes a parameter often says it
		word, _, _ := strings.Cut(m, " ")
		return strings.Contains(strings.ToLower(p.Description), word)
	})
	switch {
	case len(more) == 0:
		return p.Description
	case p.Description == "":
		return strings.Join(more, ", ")
	}
	return p.Description + " (" + strings.Join(more, ", ") + ")"
}

// maxShown bounds the text of a default that goes into a description.
const maxShown = 200

// values are those to choose from, as far as they are known.
func (p Parameter) values() []string {
	if len(p.Enum) > 0 {
		return p.Enum
	}
	return p.Labels
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

// jsonType is the JSON type of a parameter's arguments, and of their elements when it is an array.
func (p Parameter) jsonType() (kind, items string) {
	sql := p.Type
	if p.Base != "" {
		sql = p.Base
	}
	kind, items, _ = schema.SQLType(sql)
	return kind, items
}

// enum appends the values allowed to what is known of a type before it; none are no restriction.
// They are texts, of which those of numbers and of truth values are JSON as they are.
func enum(b []byte, kind string, values []string) []byte {
	if len(values) == 0 {
		return b
	}
	b = append(b, `,"enum":[`...)
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		if bare := json.RawMessage(v); (kind == number || kind == integer) && isNumber(bare) || kind == boolean && (v == "true" || v == "false") {
			b = append(b, bare...)
		} else {
			b = quote(b, v)
		}
	}
	return append(b, ']')
}

// quote appends s as a JSON string. Marshal does not fail for a string.
func quote(b []byte, s string) []byte {
	q, _ := json.Marshal(s)
	return append(b, q...)
}
