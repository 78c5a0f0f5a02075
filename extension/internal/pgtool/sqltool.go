package pgtool

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/spi"
	"aidb/extension/internal/tool"
)

// sqlTool is the call of a stored statement: each argument is bound as a value of its declared type, read by that type's
// own input function under the role.
func (r *Runner) sqlTool(ctx context.Context, t tool.Tool, args map[string]json.RawMessage, s Scope) (spi.ToolRequest, error) {
	q := r.request(ctx, t, s)
	q.Statement, q.ReadOnly, q.OwnStatement = t.Statement, t.ReadOnly, true
	if t.Timeout > 0 && (q.Timeout == 0 || t.Timeout < q.Timeout) {
		q.Timeout = t.Timeout
	}
	if t.MaxRows > 0 {
		q.MaxRows = min(q.MaxRows, t.MaxRows)
	}
	var wrong error
	for i := range t.Params {
		p, err := param(t, i, args)
		if err != nil {
			wrong = tool.AlsoWrong(t, wrong, err)
			delete(args, t.Params[i].Name)
		}
		q.Params = append(q.Params, p)
	}
	if wrong != nil {
		return q, r.permitted(ctx, t, args, s, wrong)
	}
	return q, nil
}

// companion is the call of a statement beside the tool's own, with the same arguments. further are values of names that the
// tool does not declare, as jsonb.
func (r *Runner) companion(ctx context.Context, t tool.Tool, c *tool.Companion, args, further map[string]json.RawMessage, s Scope) (spi.ToolRequest, error) {
	s.Guards = nil // it is not the call itself
	q := r.request(ctx, t, s)
	q.Statement = c.Statement
	if t.Timeout > 0 && (q.Timeout == 0 || t.Timeout < q.Timeout) {
		q.Timeout = t.Timeout
	}
	for _, name := range c.Names {
		i := slices.IndexFunc(t.Params, func(p tool.Parameter) bool { return p.Name == name })
		if i < 0 {
			v := string(further[name])
			q.Params = append(q.Params, spi.Param{Type: "pg_catalog.jsonb", Value: &v})
			continue
		}
		p, err := param(t, i, args)
		if err != nil {
			return q, err
		}
		q.Params = append(q.Params, p)
	}
	return q, nil
}

// param is the i-th parameter of a tool with its argument, or its default.
func param(t tool.Tool, i int, args map[string]json.RawMessage) (spi.Param, error) {
	v, given := args[t.Params[i].Name]
	if !given {
		v = t.Params[i].Default
	}
	value, err := bind(t.Params[i], t.Types[i], v)
	return spi.Param{Type: t.Types[i], Value: value, Name: t.Params[i].Name}, err
}

// bind is an argument as the text that PostgreSQL reads for its type; nil is NULL.
func bind(p tool.Parameter, sqlType string, v json.RawMessage) (*string, error) {
	if len(v) == 0 || string(v) == "null" {
		return nil, nil
	}
	base := strings.TrimSuffix(sqlType, "[]")
	value := ""
	switch {
	case base == "pg_catalog.json" || base == "pg_catalog.jsonb" || base == "json" || base == "jsonb":
		if base != sqlType {
			return array(p, sqlType, v)
		}
		value = string(v)
	case strings.HasSuffix(sqlType, "[]") && v[0] == '[':
		return array(p, sqlType, v)
	case base == "bytea" || base == "pg_catalog.bytea":
		return bytea(p, text(v))
	default:
		value = text(v)
	}
	value = conversation.Clean(value)
	return &value, nil
}

// bytea travels as base64, as it does everywhere in JSON.
func bytea(p tool.Parameter, encoded string) (*string, error) {
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		if raw, err = base64.RawStdEncoding.DecodeString(encoded); err != nil {
			return nil, fault.New(fault.InvalidArgument, "argument %s must be base64", fault.Name(p.Name))
		}
	}
	value := `\x` + hex.EncodeToString(raw)
	return &value, nil
}

// array writes a JSON array as PostgreSQL's array literal. Arrays in it become further dimensions.
func array(p tool.Parameter, sqlType string, v json.RawMessage) (*string, error) {
	var elements []json.RawMessage
	if err := json.Unmarshal(v, &elements); err != nil {
		return nil, fault.New(fault.InvalidArgument, "argument %s must be an array", fault.Name(p.Name))
	}
	element := strings.TrimSuffix(sqlType, "[]")
	isJSON := strings.HasSuffix(element, "json") || strings.HasSuffix(element, "jsonb")
	var b strings.Builder
	b.WriteByte('{')
	for i, e := range elements {
		if i > 0 {
			b.WriteByte(',')
		}
		switch {
		case string(e) == "null":
			b.WriteString("NULL")
		case len(e) > 0 && e[0] == '[' && !isJSON:
			inner, err := array(p, sqlType, e)
			if err != nil {
				return nil, err
			}
			b.WriteString(*inner)
		default:
			one, err := bind(p, element, e)
			if err != nil {
				return nil, err
			}
			b.WriteByte('"')
			b.WriteString(strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(*one))
			b.WriteByte('"')
		}
	}
	b.WriteByte('}')
	literal := b.String()
	return &literal, nil
}
