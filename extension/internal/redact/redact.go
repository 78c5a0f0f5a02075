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
	"sync"
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
	if suspicious(s) {
		for _, f := range structure() {
			s = f.in(s)
		}
	}
	if r.columns != nil && strings.Contains(s, `"`) {
		s = r.members(s)
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

// form is one structure of a secret; what is replaced keeps what template says of it.
type form struct {
	pattern  *regexp.Regexp
	template string
}

func (f form) in(s string) string { return f.pattern.ReplaceAllString(s, f.template) }

// word is what the name of a secret looks like.
const word = `(?:[a-z0-9]+[_-])*(?:password|passwd|passphrase|pwd|secret|secret[_-]?key|api[_-]?key|access[_-]?key|access[_-]?token|auth[_-]?token|refresh[_-]?token|bearer[_-]?token|client[_-]?secret|private[_-]?key)`

var structure = sync.OnceValue(func() []form {
	f := func(pattern, template string) form { return form{regexp.MustCompile(pattern), template} }
	return []form{
		f(`-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?`, Mark),
		// Keys that say themselves whose they are.
		f(`\b(?:sk|rk|pk)[-_][A-Za-z0-9][A-Za-z0-9_-]{15,}`, Mark),
		f(`\b(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}`, Mark),
		f(`\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[0-9A-Za-z_-]{30,}|\bxox[abeoprs]-[0-9A-Za-z-]{10,}|\bhf_[A-Za-z0-9]{20,}`, Mark),
		f(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`, Mark),
		f(`(?i)\b(bearer|basic)([ :]+)[A-Za-z0-9._~+/=-]{8,}`, `${1}${2}`+Mark),
		// The password in an address.
		f(`\b([A-Za-z][A-Za-z0-9+.-]*://[^\s/:@"'\\]*):[^\s/@"'\\]+@`, `${1}:`+Mark+`@`),
		// A member of a JSON object, as it is and inside a JSON string.
		f(`(?i)("`+word+`"\s*:\s*)"(?:[^"\\]|\\.)*"?`, `${1}"`+Mark+`"`),
		f(`(?i)(\\"`+word+`\\"\s*:\s*\\")[^"\\]*`, `${1}`+Mark),
		// name=value, as in connection strings and environments; name: value, where the value looks like no word of a sentence.
		f(`(?i)\b(`+word+`\s*=\s*)(?:'[^']*'|[^\s"'\\,;&]+)`, `${1}`+Mark),
		f(`(?i)\b(`+word+`\s*:\s*)([^\s"'\\,;]*[0-9][^\s"'\\,;]*)`, `${1}`+Mark),
		// CREATE ROLE … PASSWORD '…'
		f(`(?i)\b(password\s+)'(?:[^']|'')*'?`, `${1}'`+Mark+`'`),
	}
})

// suspicious reports whether a structure could be in the text.
func suspicious(s string) bool {
	table := byLetter()
	for i := 0; i < len(s); i++ {
		for _, h := range table[s[i]] {
			if len(s)-i >= len(h) && strings.EqualFold(s[i:i+len(h)], h) {
				return true
			}
		}
	}
	return false
}

// hints are what structures begin with or hold, in lower case.
var hints = [...]string{
	"sk-", "sk_", "rk_", "rk-", "pk_", "pk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "akia", "asia", "aiza", "xox",
	"hf_", "eyj", "bearer", "basic", "://", "passw", "passphrase", "pwd", "secret", "api_key", "api-key", "apikey", "access",
	"auth_token", "auth-token", "authtoken", "refresh", "private", "-----begin",
}

// byLetter has the hints by their first byte, in both cases.
var byLetter = sync.OnceValue(func() *[256][]string {
	var table [256][]string
	for _, h := range hints {
		table[h[0]] = append(table[h[0]], h)
		if upper := strings.ToUpper(h[:1])[0]; upper != h[0] {
			table[upper] = append(table[upper], h)
		}
	}
	return &table
})
