package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"aidb/extension/internal/fault"
)

const (
	// maxQuoted bounds how much of a malformed text goes back to the model.
	maxQuoted = 200
	// maxArguments bounds the argument text of one call.
	maxArguments = 1 << 20
	// maxDimensions is PostgreSQL's limit for an array.
	maxDimensions = 6
	// maxProblems bounds how many problems one error text lists.
	maxProblems = 20
)

// CheckArguments reads the argument text of a call and checks it against the tool's declaration. It returns the
// arguments given, by name, a JSON null among them; an empty text is an empty object. With an error of kind InvalidArgument it
// returns those that nothing is wrong with, as far as the declaration says.
//
// The error (kind InvalidArgument, InvalidText when the text cannot be read) is written for the model that made the
// call. It begins with "unknown argument 'x'" or "missing argument 'x'" for the first such name and lists every
// other problem after it, so that one more attempt is enough.
//
// What is certain is accepted: a number or a boolean given as a string holding exactly that, 12.0 for an integer.
func CheckArguments(t Tool, raw string) (map[string]json.RawMessage, error) {
	names, args, twice, err := parse(raw)
	if err != nil {
		return nil, err
	}
	params, closed := t.declared()
	var problems []string
	if closed {
		for _, name := range names {
			if find(params, name) == nil {
				problems = append(problems, "unknown argument "+fault.Name(name))
			}
		}
	}
	for i := range params {
		v, given := args[params[i].Name]
		if params[i].Required && (!given || (isNull(v) && t.Type != SQL)) {
			problems = append(problems, "missing argument "+fault.Name(params[i].Name))
		}
	}
	for _, name := range twice {
		problems = append(problems, "argument "+fault.Name(name)+" is given twice, with different values")
	}
	for _, name := range names {
		p := find(params, name)
		if p == nil || isNull(args[name]) {
			// A null is SQL NULL to a SQL tool and "not given" to every other.
			continue
		}
		v, problem := p.check(args[name])
		if problem == "" {
			problem = p.chosen(v)
		}
		if problem != "" {
			problems = append(problems, "argument "+fault.Name(name)+" "+problem)
			delete(args, name)
			continue
		}
		args[name] = v
	}
	if len(problems) == 0 {
		return args, nil
	}
	if len(problems) > maxProblems {
		problems = append(problems[:maxProblems], "and more")
	}
	return args, fault.New(fault.InvalidArgument, "%s", strings.Join(problems, "; ")+accepted(params))
}

// AlsoWrong is the error of a call with one more problem in its arguments; err may be nil.
func AlsoWrong(t Tool, err, more error) error {
	if err == nil {
		return more
	}
	params, _ := t.declared()
	end := accepted(params)
	return fault.New(fault.InvalidArgument, "%s", strings.TrimSuffix(err.Error(), end)+"; "+more.Error()+end)
}

// accepted names the declared arguments: most wrong names are near misses.
func accepted(params []Parameter) string {
	if len(params) == 0 {
		return " (the tool takes no arguments)"
	}
	var b strings.Builder
	b.WriteString(" (arguments: ")
	for i := range params {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(fault.Cut(params[i].Name, maxQuoted))
	}
	b.WriteString(")")
	return b.String()
}

// parse reads a JSON object and returns its names in the order given, its values, and the names that were given two
// different values: which one is meant would be a guess.
func parse(raw string) (names []string, args map[string]json.RawMessage, twice []string, err error) {
	trimmed := strings.TrimSpace(raw)
	if trimmed == "" || trimmed == "null" {
		return nil, map[string]json.RawMessage{}, nil, nil
	}
	if len(trimmed) > maxArguments {
		return nil, nil, nil, fault.New(fault.InvalidText, "arguments are too long: %d bytes, the limit is %d", len(trimmed), maxArguments)
	}
	bad := func(reason string) error {
		return fault.New(fault.InvalidText, "%s: %s", reason, fault.Cut(trimmed, maxQuoted))
	}
	if !json.Valid([]byte(trimmed)) {
		return nil, nil, nil, bad("arguments are not valid JSON")
	}
	if trimmed[0] != '{' {
		return nil, nil, nil, bad("arguments must be a JSON object")
	}
	dec := json.NewDecoder(strings.NewReader(trimmed))
	if _, err := dec.Token(); err != nil {
		return nil, nil, nil, bad("arguments are not valid JSON")
	}
	args = make(map[string]json.RawMessage)
	for dec.More() {
		key, err := dec.Token()
		name, ok := key.(string)
		if err != nil || !ok {
			return nil, nil, nil, bad("arguments are not valid JSON")
		}
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return nil, nil, nil, bad("arguments are not valid JSON")
		}
		if before, again := args[name]; !again {
			names = append(names, name)
		} else if !bytes.Equal(before, v) && !slices.Contains(twice, name) {
			twice = append(twice, name)
		}
		args[name] = v
	}
	if _, err := dec.Token(); err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, nil, bad("arguments are not valid JSON")
	}
	return names, args, twice, nil
}

// declared returns the tool's parameters and whether other names are refused. Of an MCP tool's schema it reads the
// top level only (names, required, simple types): the server checks the rest. A schema that does not say whether it
// admits other members counts as closed.
func (t Tool) declared() ([]Parameter, bool) {
	if len(t.Schema) == 0 {
		return t.Params, true
	}
	var s struct {
		Properties map[string]struct {
			Type json.RawMessage `json:"type"`
		} `json:"properties"`
		Required             []string        `json:"required"`
		AdditionalProperties json.RawMessage `json:"additionalProperties"`
	}
	if json.Unmarshal(t.Schema, &s) != nil {
		return nil, false
	}
	params := make([]Parameter, 0, len(s.Properties))
	for name, p := range s.Properties {
		kind := "json"
		var declared string
		if json.Unmarshal(p.Type, &declared) == nil {
			switch declared {
			case text, number, integer, boolean, array:
				kind = declared
			}
		}
		params = append(params, Parameter{Name: name, Type: kind, Required: slices.Contains(s.Required, name)})
	}
	slices.SortFunc(params, func(a, b Parameter) int { return strings.Compare(a.Name, b.Name) })
	extra := bytes.TrimSpace(s.AdditionalProperties)
	return params, len(extra) == 0 || string(extra) == "false"
}

func find(params []Parameter, name string) *Parameter {
	for i := range params {
		if params[i].Name == name {
			return &params[i]
		}
	}
	return nil
}

// check compares a value with the declared type and returns it in the form to use, or what is wrong with it.
func (p *Parameter) check(v json.RawMessage) (json.RawMessage, string) {
	kind, items := p.jsonType()
	got := kindOf(v)
	switch kind {
	case anything:
		return v, ""
	case text:
		if got != text {
			return nil, "must be a string, got " + got
		}
		return v, ""
	case boolean:
		if got == text && (string(v) == `"true"` || string(v) == `"false"`) {
			return v[1 : len(v)-1], ""
		}
		if got != boolean {
			return nil, "must be true or false, got " + got
		}
		return v, ""
	case number, integer:
		n := v
		if got == text {
			n = v[1 : len(v)-1]
			if !isNumber(n) {
				return nil, article(kind) + ", got the string " + fault.Cut(string(v), maxQuoted)
			}
		} else if got != number {
			return nil, article(kind) + ", got " + got
		}
		if kind == integer {
			whole, ok := wholeNumber(n)
			if !ok {
				return nil, "must be an integer, got " + fault.Cut(string(n), maxQuoted)
			}
			return whole, ""
		}
		return n, ""
	case array:
		if got != array {
			return nil, "must be an array, got " + got
		}
		return v, elements(v, items, 0)
	}
	return v, ""
}

// chosen says what is wrong with a value of the right type when there are values to choose from, of an array for its elements.
func (p *Parameter) chosen(v json.RawMessage) string {
	if len(p.Enum) == 0 {
		return ""
	}
	if kind, _ := p.jsonType(); kind == array && kindOf(v) == array {
		var list []json.RawMessage
		if json.Unmarshal(v, &list) != nil {
			return ""
		}
		for i, e := range list {
			if isNull(e) {
				continue
			}
			if problem := p.chosen(e); problem != "" {
				return "at position " + strconv.Itoa(i+1) + " " + problem
			}
		}
		return ""
	}
	s := string(v)
	if kindOf(v) == text && json.Unmarshal(v, &s) != nil {
		return ""
	}
	if slices.Contains(p.Enum, s) || slices.ContainsFunc(p.Enum, func(e string) bool { return sameNumber(e, s) }) {
		return ""
	}
	return "must be one of " + list(p.Enum)
}

// sameNumber reports whether two texts are the same number: 1 is 1.0.
func sameNumber(a, b string) bool {
	if !isNumber([]byte(a)) || !isNumber([]byte(b)) || len(a) > 64 || len(b) > 64 || strings.ContainsAny(a+b, "eE") {
		return false
	}
	x, ok1 := new(big.Rat).SetString(a)
	y, ok2 := new(big.Rat).SetString(b)
	return ok1 && ok2 && x.Cmp(y) == 0
}

// elements says what is wrong with an array's: each is of the type, null, or an array of such for a further dimension.
func elements(v json.RawMessage, kind string, depth int) string {
	var list []json.RawMessage
	if kind == anything || json.Unmarshal(v, &list) != nil {
		return ""
	}
	for i, e := range list {
		problem := ""
		switch got := kindOf(e); {
		case got == "null":
		case got == array && depth+1 < maxDimensions:
			problem = elements(e, kind, depth+1)
		case got == array:
			problem = "has more than " + strconv.Itoa(maxDimensions) + " dimensions"
		default:
			// An element is as good as an argument of its type would be.
			_, problem = (&Parameter{Type: kind}).check(e)
		}
		if problem != "" {
			return "at position " + strconv.Itoa(i+1) + " " + problem
		}
	}
	return ""
}

func article(kind string) string {
	if kind == integer {
		return "must be an integer"
	}
	return "must be a number"
}

// kindOf names the JSON type of a valid value.
func kindOf(v json.RawMessage) string {
	switch v[0] {
	case '"':
		return text
	case '{':
		return "object"
	case '[':
		return array
	case 't', 'f':
		return boolean
	case 'n':
		return "null"
	}
	return number
}

func isNull(v json.RawMessage) bool { return string(v) == "null" }

// isNumber reports whether the text is a JSON number.
func isNumber(v []byte) bool {
	return len(v) > 0 && (v[0] == '-' || (v[0] >= '0' && v[0] <= '9')) && json.Valid(v)
}

// wholeNumber returns a JSON number without fraction and exponent, if it is whole. Long exponents are refused: a few
// characters would otherwise stand for a number of any size.
func wholeNumber(n json.RawMessage) (json.RawMessage, bool) {
	i := bytes.IndexAny(n, ".eE")
	if i < 0 {
		return n, true
	}
	if len(n) > 64 {
		return nil, false
	}
	if e := bytes.IndexAny(n, "eE"); e >= 0 && len(n)-e > 4 {
		return nil, false
	}
	r, ok := new(big.Rat).SetString(string(n))
	if !ok || !r.IsInt() {
		return nil, false
	}
	return json.RawMessage(r.Num().String()), true
}

func list(items []string) string {
	quoted := make([]string, 0, len(items))
	for i, s := range items {
		if i == maxProblems {
			quoted = append(quoted, "…")
			break
		}
		quoted = append(quoted, fault.Name(s))
	}
	return strings.Join(quoted, ", ")
}
