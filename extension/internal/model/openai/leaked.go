package openai

import (
	"encoding/json"
	"strings"

	"aidb/extension/internal/wire"
)

// Calls that arrived as text: a server that has no parser for a model's notation hands it through. Only a text that is nothing
// but calls of tools on offer counts: inside other text it may be a quotation, of what a tool returned for example, and must
// not run anything.

// leakedCalls reads such a text; nil when it is something else.
func leakedCalls(s string, n *wire.Names) []call {
	l := leak{names: n}
	if l.text(strings.TrimSpace(s)) {
		return l.calls
	}
	return nil
}

type leak struct {
	names *wire.Names
	calls []call
}

// sections are what stands around all calls of a reply.
var sections = [][2]string{
	{"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"},
	{"<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"},
	{"<minimax:tool_call>", "</minimax:tool_call>"},
	{"<function_calls>", "</function_calls>"},
}

// notations are how one call begins and ends, and who reads what is between.
var notations = []struct {
	begin, end string
	read       func(*leak, string) bool
}{
	{"<tool_call>", "</tool_call>", (*leak).body},
	{"<function_call>", "</function_call>", (*leak).object},
	{"<function=", "</function>", (*leak).function},
	{"<invoke name=\"", "</invoke>", (*leak).invoke},
	{"<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", (*leak).deepseek},
	{"<|tool_call_begin|>", "<|tool_call_end|>", (*leak).kimi},
}

func (l *leak) text(s string) bool {
	for _, around := range sections {
		if inner, ok := strings.CutPrefix(s, around[0]); ok {
			inner, ok = strings.CutSuffix(inner, around[1])
			return ok && l.all(inner)
		}
	}
	if strings.HasPrefix(s, "[TOOL_CALLS]") {
		return l.mistral(s)
	}
	if one, ok := strings.CutPrefix(s, "<|python_tag|>"); ok {
		return l.object(one)
	}
	return l.all(s) // a bare object is an answer
}

func (l *leak) all(s string) bool {
next:
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		for _, by := range notations {
			rest, ok := strings.CutPrefix(s, by.begin)
			if !ok {
				continue
			}
			body, after, closed := strings.Cut(rest, by.end)
			if !closed || !by.read(l, body) {
				return false
			}
			s = after
			continue next
		}
		return false
	}
	return len(l.calls) > 0
}

// add takes a call of a tool on offer. Arguments that are not JSON are no call.
func (l *leak) add(name, args string) bool {
	name, args = strings.TrimSpace(name), strings.TrimSpace(args)
	if !l.names.Knows(name) || !wire.IsObject(args) {
		return false
	}
	l.calls = append(l.calls, call{name: wire.TextOf(name), args: wire.TextOf(args)})
	return true
}

// object reads {"name": ..., "arguments": {...}}, and nothing beside these.
func (l *leak) object(s string) bool {
	var c struct {
		Type       string          `json:"type"`
		ID         json.RawMessage `json:"id"`
		Name       string          `json:"name"`
		Arguments  json.RawMessage `json:"arguments"`
		Parameters json.RawMessage `json:"parameters"`
	}
	d := json.NewDecoder(strings.NewReader(s))
	d.DisallowUnknownFields()
	if d.Decode(&c) != nil || strings.TrimSpace(s[d.InputOffset():]) != "" {
		return false
	}
	if c.Arguments == nil {
		c.Arguments = c.Parameters
	}
	var quoted string
	if json.Unmarshal(c.Arguments, &quoted) == nil {
		return l.add(c.Name, quoted)
	}
	return l.add(c.Name, string(c.Arguments))
}

// body reads what is inside <tool_call>: an object, <function=name>, or a name followed by keys and values.
func (l *leak) body(s string) bool {
	s = strings.TrimSpace(s)
	if rest, ok := strings.CutPrefix(s, "<function="); ok {
		rest, ok = strings.CutSuffix(rest, "</function>")
		return ok && l.function(rest)
	}
	if name, rest, ok := strings.Cut(s, "<arg_key>"); ok {
		return l.pairs(name, "<arg_key>"+rest, "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>")
	}
	return l.object(s)
}

// function reads name>{...}, or name> with <parameter=key>value</parameter>.
func (l *leak) function(s string) bool {
	name, args, ok := strings.Cut(s, ">")
	if !ok {
		return false
	}
	if args = strings.TrimSpace(args); args == "" || strings.HasPrefix(args, "<parameter=") {
		return l.pairs(name, args, "<parameter=", ">", "", "</parameter>")
	}
	return l.add(name, args)
}

// invoke reads name"> with <parameter name="key">value</parameter>.
func (l *leak) invoke(s string) bool {
	name, args, ok := strings.Cut(s, "\">")
	return ok && l.pairs(name, args, "<parameter name=\"", "\">", "", "</parameter>")
}

// pairs reads keys and values, each between its marks. A value is text, unless it is a JSON object or array.
func (l *leak) pairs(name, s, key, keyEnd, value, valueEnd string) bool {
	args := map[string]any{}
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		rest, ok := strings.CutPrefix(s, key)
		if !ok {
			return false
		}
		k, rest, ok := strings.Cut(rest, keyEnd)
		if !ok {
			return false
		}
		if value != "" {
			if rest, ok = strings.CutPrefix(strings.TrimSpace(rest), value); !ok {
				return false
			}
		}
		v, rest, ok := strings.Cut(rest, valueEnd)
		if _, twice := args[k]; !ok || twice {
			return false
		}
		v = strings.TrimSuffix(strings.TrimPrefix(v, "\n"), "\n")
		args[k] = v
		if first := strings.TrimSpace(v); first != "" && (first[0] == '{' || first[0] == '[') && json.Valid([]byte(v)) {
			args[k] = json.RawMessage(v)
		}
		s = rest
	}
	text, err := json.Marshal(args)
	return err == nil && l.add(name, string(text))
}

// deepseek reads function<sep>name with a fence, or name<sep>{...}.
func (l *leak) deepseek(s string) bool {
	name, args, ok := strings.Cut(s, "<｜tool▁sep｜>")
	if !ok {
		return false
	}
	if strings.TrimSpace(name) != "function" {
		return l.add(name, args)
	}
	name, args, ok = strings.Cut(args, "\n")
	args, fenced := strings.CutPrefix(strings.TrimSpace(args), "```json")
	args, closed := strings.CutSuffix(args, "```")
	return ok && fenced && closed && l.add(name, args)
}

// kimi reads functions.name:0<|tool_call_argument_begin|>{...}.
func (l *leak) kimi(s string) bool {
	name, args, ok := strings.Cut(s, "<|tool_call_argument_begin|>")
	name, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(name), "functions."), ":")
	return ok && l.add(name, args)
}

// mistral reads [TOOL_CALLS] with a list of objects, or with name[ARGS]{...} once or more often.
func (l *leak) mistral(s string) bool {
	var each []json.RawMessage
	if json.Unmarshal([]byte(strings.TrimPrefix(s, "[TOOL_CALLS]")), &each) == nil {
		for _, one := range each {
			if !l.object(string(one)) {
				return false
			}
		}
		return len(l.calls) > 0
	}
	for _, one := range strings.Split(s, "[TOOL_CALLS]")[1:] {
		name, args, ok := strings.Cut(one, "[ARGS]")
		name, _, _ = strings.Cut(name, "[CALL_ID]")
		if !ok || !l.add(name, args) {
			return false
		}
	}
	return true
}
