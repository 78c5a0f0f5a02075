package dummy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"aidb/extension/internal/fault"
)

// script is a parsed config.
type script struct {
	Responses []response `json:"responses"`
	Scope     string     `json:"scope"`
}

type response struct {
	Response  *string `json:"response"`
	ToolCalls []call  `json:"tool_calls"`
	TokensIn  *int64  `json:"tokens_in"`
	TokensOut *int64  `json:"tokens_out"`
	Error     *string `json:"error"`
}

type call struct {
	Name      *string         `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// The scopes.
const (
	scopeBackend = "backend"
	scopeCall    = "call"
)

// CheckConfig says what is wrong with a config, naming the member, or nil.
func CheckConfig(config json.RawMessage) error {
	_, err := parse(config)
	return err
}

func parse(config json.RawMessage) (*script, error) {
	s := &script{}
	d := json.NewDecoder(bytes.NewReader(config))
	d.DisallowUnknownFields()
	if err := d.Decode(s); err != nil {
		return nil, malformed("%s", reason(err))
	}
	if d.More() {
		return nil, malformed("there is more than one JSON value")
	}
	switch s.Scope {
	case "", scopeBackend, scopeCall:
	default:
		return nil, malformed("scope is %s, not \"backend\" or \"call\"", fault.Name(s.Scope))
	}
	if len(s.Responses) == 0 {
		return nil, malformed("responses must be a list of at least one reply")
	}
	for i := range s.Responses {
		if err := s.Responses[i].check(fmt.Sprintf("responses[%d]", i)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (r *response) check(at string) error {
	if r.Response == nil && len(r.ToolCalls) == 0 && r.Error == nil {
		return malformed("%s has no response, no tool_calls and no error", at)
	}
	for i := range r.ToolCalls {
		c := &r.ToolCalls[i]
		at := fmt.Sprintf("%s.tool_calls[%d]", at, i)
		if c.Name == nil || *c.Name == "" {
			return malformed("%s has no name", at)
		}
		if a := bytes.TrimSpace(c.Arguments); len(a) > 0 && a[0] != '{' && string(a) != "null" {
			return malformed("%s.arguments is not an object", at)
		}
	}
	for _, n := range []struct {
		name  string
		count *int64
	}{{"tokens_in", r.TokensIn}, {"tokens_out", r.TokensOut}} {
		if n.count != nil && *n.count < 0 {
			return malformed("%s.%s is below zero", at, n.name)
		}
	}
	return nil
}

func malformed(format string, args ...any) error {
	return fault.New(fault.InvalidArgument, "config of a dummy model cannot be read: "+format, args...).
		WithHint(`It looks like {"responses": [{"response": "text"}, {"tool_calls": [{"name": "tool", "arguments": {}}]}]}.`)
}

// reason puts the decoder's words into ours.
func reason(err error) string {
	var t *json.UnmarshalTypeError
	if errors.As(err, &t) {
		if t.Field == "" {
			return "it is a JSON " + t.Value + ", not an object"
		}
		return fmt.Sprintf("%s must not be a JSON %s", t.Field, t.Value)
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return "there is an unexpected member " + name
	}
	return fault.Cut(strings.TrimPrefix(err.Error(), "json: "), 200)
}

// fill puts the prompt in place of ${prompt}.
func fill(s, prompt string) string { return strings.ReplaceAll(s, placeholder, prompt) }

const placeholder = "${prompt}"

// arguments returns the call's arguments with the prompt in their strings. They are replaced in the decoded
// strings: a prompt with quotes in it must not change the shape.
func (c *call) arguments(prompt string) (string, error) {
	raw := string(bytes.TrimSpace(c.Arguments))
	if raw == "" || raw == "null" {
		return "{}", nil
	}
	if !strings.Contains(raw, "prompt") {
		return raw, nil
	}
	d := json.NewDecoder(strings.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return "", err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(fillAll(v, prompt)); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

func fillAll(v any, prompt string) any {
	switch v := v.(type) {
	case string:
		return fill(v, prompt)
	case []any:
		for i := range v {
			v[i] = fillAll(v[i], prompt)
		}
	case map[string]any:
		for k := range v {
			v[k] = fillAll(v[k], prompt)
		}
	}
	return v
}
