// Package redact takes secrets out of text before anybody keeps or shows it: the log, debug lines, errors, decisions and
// traces all go through one Redactor. What a secret is, is told by its structure (keys of the usual providers, private
// keys, tokens, passwords in addresses, in connection strings, in statements and in JSON), and by what an administrator
// registered: names of columns, and patterns.
//
// Text that holds none comes back as it is, without a copy; most text is seen to hold none by one look at its bytes.
package redact

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// Mark stands where a secret was.
const Mark = "[redacted]"

const (
	// maxPattern bounds a registered pattern, in bytes.
	maxPattern = 1000
	// maxRegistered bounds how many there are of columns and of patterns.
	maxRegistered = 200
)

// Rules are what an administrator registered.
type Rules struct {
	Columns  []string `json:"columns"`
	Patterns []string `json:"patterns"`
}

// Redactor takes secrets out of texts. A nil Redactor leaves every text as it is. It is safe for concurrent use.
type Redactor struct {
	columns  *regexp.Regexp // the key of a member, up to its value; nil: none are registered
	nested   []form         // the same inside strings that hold JSON
	names    []string       // of the columns, in lower case
	patterns []*regexp.Regexp
}

// New returns a redactor with further rules beside the structure of secrets.
func New(rules Rules) (*Redactor, error) {
	r := &Redactor{}
	if len(rules.Columns) > maxRegistered || len(rules.Patterns) > maxRegistered {
		return nil, fmt.Errorf("more than %d columns or patterns are registered", maxRegistered)
	}
	var quoted []string
	for _, c := range rules.Columns {
		key, err := json.Marshal(c)
		if err != nil {
			return nil, err
		}
		quoted = append(quoted, regexp.QuoteMeta(string(key[1:len(key)-1])))
		r.names = append(r.names, strings.ToLower(c))
	}
	if len(quoted) > 0 {
		columns, err := regexp.Compile(`(?i)"(?:` + strings.Join(quoted, "|") + `)"\s*:\s*`)
		if err != nil {
			return nil, err
		}
		r.columns = columns
		for _, p := range inStrings(`(?is)(\\+"(?:`+strings.Join(quoted, "|")+`)`, `-?[0-9][0-9.e+-]*|true|false`) {
			nested, err := regexp.Compile(p[0])
			if err != nil {
				return nil, err
			}
			r.nested = append(r.nested, form{pattern: func() *regexp.Regexp { return nested }, template: p[1]})
		}
	}
	for _, p := range rules.Patterns {
		compiled, err := Pattern(p)
		if err != nil {
			return nil, err
		}
		r.patterns = append(r.patterns, compiled)
	}
	return r, nil
}

// Pattern compiles a registered pattern.
func Pattern(p string) (*regexp.Regexp, error) {
	if p == "" || len(p) > maxPattern {
		return nil, fmt.Errorf("a pattern has 1 to %d bytes", maxPattern)
	}
	compiled, err := regexp.Compile(p)
	if err != nil {
		return nil, err
	}
	if compiled.MatchString("") {
		return nil, fmt.Errorf("the pattern matches the empty text")
	}
	return compiled, nil
}

// Text returns the text without its secrets.
func (r *Redactor) Text(s string) string {
	if r == nil || s == "" {
		return s
	}
	s = structured(s)
	if r.columns != nil && strings.Contains(s, `"`) {
		s = r.members(s)
		if strings.Contains(s, `\"`) {
			for _, f := range r.nested {
				s = f.in(s)
			}
		}
	}
	for _, p := range r.patterns {
		s = p.ReplaceAllLiteralString(s, Mark)
	}
	return s
}

// members redacts the values of registered columns, whatever their type: results are JSON, and a column is a member.
func (r *Redactor) members(s string) string {
	found := r.columns.FindAllStringIndex(s, -1)
	if found == nil {
		return s
	}
	var b strings.Builder
	from := 0
	for _, f := range found {
		if f[1] < from || f[1] >= len(s) {
			continue // within a value that is gone already
		}
		end := value(s, f[1])
		if s[f[1]:end] == "null" {
			continue
		}
		b.WriteString(s[from:f[1]])
		b.WriteString(`"` + Mark + `"`)
		from = end
	}
	b.WriteString(s[from:])
	return b.String()
}

// value returns where the JSON value ends that begins at i; the end of the text when it is cut off.
func value(s string, i int) int {
	depth, inString := 0, false
	for ; i < len(s); i++ {
		switch c := s[i]; {
		case inString:
			switch c {
			case '\\':
				i++
			case '"':
				if inString = false; depth == 0 {
					return i + 1
				}
			}
		case c == '"':
			inString = true
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case depth == 0 && (c == ',' || c == ' ' || c == '\n' || c == '\r' || c == '\t'):
			return i
		}
	}
	return len(s)
}
