package pgstore

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/google/uuid"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/spi"
	"aidb/extension/internal/tool"
)

// row reads the values of a result row in order. The first value that is not what it should be becomes err, and what
// is read afterwards is empty: callers look once, at the end.
type row struct {
	values []*string
	next   int
	err    error
}

// firstRow returns the first row of a batch's first statement.
func firstRow(results []spi.Rows) (*row, bool) {
	if len(results) == 0 || len(results[0].Values) == 0 {
		return nil, false
	}
	return &row{values: results[0].Values[0]}, true
}

func (r *row) fail(what string, cause error) {
	if r.err == nil {
		r.err = fault.Wrap(cause, fault.Internal, "column %d of a catalog row is not %s", r.next, what)
	}
}

func (r *row) optional() *string {
	if r.err != nil {
		return nil
	}
	if r.next >= len(r.values) {
		r.fail("there", nil)
		return nil
	}
	r.next++
	return r.values[r.next-1]
}

// last is the value that was read last.
func (r *row) last() *string {
	if r.err != nil || r.next == 0 {
		return nil
	}
	return r.values[r.next-1]
}

func (r *row) text() string {
	if v := r.optional(); v != nil {
		return *v
	}
	return ""
}

func (r *row) bool() bool { return r.text() == "t" }

func (r *row) number() *int {
	v := r.optional()
	if v == nil {
		return nil
	}
	n, err := strconv.Atoi(*v)
	if err != nil {
		r.fail("a number", err)
		return nil
	}
	return &n
}

// amount is an amount of money in units of account, 0 for NULL.
func (r *row) amount() int64 {
	v := r.optional()
	if v == nil {
		return 0
	}
	f, err := strconv.ParseFloat(*v, 64)
	units, ok := conversation.Amount(f)
	if err != nil || !ok {
		r.fail("an amount", err)
	}
	return units
}

func (r *row) id() uuid.UUID {
	v := r.optional()
	if v == nil {
		return uuid.Nil
	}
	id, err := uuid.Parse(*v)
	if err != nil {
		r.fail("a uuid", err)
	}
	return id
}

func (r *row) raw() json.RawMessage {
	if v := r.optional(); v != nil {
		return json.RawMessage(*v)
	}
	return nil
}

// json decodes a JSON value; NULL leaves the target as it is.
func (r *row) json(target any) {
	if v := r.raw(); v != nil {
		if err := json.Unmarshal(v, target); err != nil {
			r.fail("the JSON it should be", err)
		}
	}
}

// model reads the columns of a model: nil when there is none. A model whose stored secret is not here (dumps do not
// hold them) is an error, because asking it without the key could only fail in a less clear way.
func (r *row) model(name string) (*agent.ModelRef, error) {
	provider, config := r.optional(), r.raw()
	source, env, file := r.text(), r.text(), r.text()
	credentials := r.raw()
	if provider == nil || r.err != nil {
		return nil, nil
	}
	if source == "stored" && credentials == nil {
		return nil, fault.New(fault.WrongState, "model %s has no credentials in this database", fault.Name(name)).
			WithHint("A dump does not hold them: register the model again with aidb.delete_model and aidb.create_model.")
	}
	ref := &agent.ModelRef{
		Name: name, Provider: *provider, Config: config, Credentials: credentials, CredentialsEnv: env, CredentialsFile: file,
	}
	return ref, facts(ref)
}

// facts takes what is known of the model out of its config, where the rest is the provider's.
func facts(ref *agent.ModelRef) error {
	if !bytes.Contains(ref.Config, []byte(`"price"`)) && !bytes.Contains(ref.Config, []byte(`"context_size"`)) {
		return nil
	}
	var members map[string]json.RawMessage
	var known struct {
		ContextSize float64 `json:"context_size"`
		Price       *struct {
			Input, Output float64
			Cached        *float64
		}
	}
	if json.Unmarshal(ref.Config, &members) != nil || json.Unmarshal(ref.Config, &known) != nil {
		return fault.New(fault.WrongState, "the config of model %s cannot be read", fault.Name(ref.Name))
	}
	ref.Context = int64(known.ContextSize)
	if p := known.Price; p != nil {
		if p.Cached == nil {
			p.Cached = &p.Input
		}
		token := func(million float64) int64 { return int64(math.Round(million * conversation.Units / 1e6)) }
		ref.Price = &agent.Price{Input: token(p.Input), Output: token(p.Output), Cached: token(*p.Cached)}
	}
	delete(members, "price")
	delete(members, "context_size")
	config, err := json.Marshal(members)
	if err != nil {
		return fault.Wrap(err, fault.Internal, "a config cannot be written as JSON")
	}
	ref.Config = config
	return nil
}

// storedTool is a row of aidb_internal.native_tools or sql_tools.
type storedTool struct {
	Name        string           `json:"name"`
	Function    string           `json:"function"`
	ReadOnly    bool             `json:"read_only"`
	Description string           `json:"description"`
	Params      []tool.Parameter `json:"params"`
	// of SQL tools only
	Statement string           `json:"statement"`
	Types     []string         `json:"types"`
	Result    []tool.Parameter `json:"return_type_hint"`
	TimeoutMS int64            `json:"timeout_ms"`
	MaxRows   int              `json:"max_rows"`

	Risk          string          `json:"risk"`
	Preview       *tool.Companion `json:"preview"`
	Undo          *tool.Companion `json:"undo"`
	Approver      string          `json:"approver"`
	AllowMismatch bool            `json:"allow_mismatch"`
	UpdatedAt     string          `json:"updated_at"`
}

// storedMCP is a row of aidb_internal.mcp_tools, as far as an agent needs it.
type storedMCP struct {
	Name        string          `json:"name"`
	Server      string          `json:"server"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"input_schema"`
	Waits       bool            `json:"waits"`
	Idempotent  bool            `json:"idempotent"`
}

func (t *storedMCP) tool() tool.Tool {
	return tool.Tool{
		Name: t.Name, Description: t.Description, Type: tool.MCP, Schema: t.Schema, Server: t.Server, Quarantined: t.Waits, Idempotent: t.Idempotent,
	}
}

// tool is the tool that the row describes.
func (t *storedTool) tool(kind string) tool.Tool {
	return tool.Tool{
		Name: t.Name, Description: t.Description, Type: kind, Params: t.Params, ReadOnly: t.ReadOnly, Function: t.Function,
		Statement: t.Statement, Types: t.Types, Result: t.Result, MaxRows: t.MaxRows,
		Timeout: time.Duration(t.TimeoutMS) * time.Millisecond,
		Risk:    t.Risk, Preview: t.Preview, Undo: t.Undo, Approver: t.Approver, AllowMismatch: t.AllowMismatch, Version: t.UpdatedAt,
	}
}
