package conversation

import (
	"strings"
	"unicode/utf8"
)

// Clean returns text that PostgreSQL can store: without NUL characters, with every byte sequence that is not UTF-8
// (unpaired surrogates among them) replaced by U+FFFD. Models and tools produce all of these, and one of them in a
// stored message would make every later request of the conversation fail. Clean text is returned as it is.
func Clean(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
}

// CleanJSON is Clean for a text that should be JSON: inside string literals the escapes of what jsonb refuses go too,
// \u0000 altogether and an unpaired surrogate such as \ud800 to \ufffd. What is not JSON does not become JSON by it: outside
// of literals a NUL becomes a space, for 4, NUL and 2 are not 42.
func CleanJSON(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if !strings.Contains(s, `\u`) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	inside := false
	for i := 0; i < len(s); {
		switch {
		case s[i] == '"':
			inside = !inside
		case s[i] == 0:
			if !inside {
				b.WriteByte(' ')
			}
			i++
			continue
		case s[i] == '\\' && i+1 < len(s) && s[i+1] != 'u':
			// An escaped quote does not end the literal, and what follows an escaped backslash does not begin an escape.
			b.WriteByte(s[i])
			if s[i+1] != 0 {
				b.WriteByte(s[i+1])
			}
			i += 2
			continue
		case s[i] == '\\' && inside && i+1 < len(s):
			i += cleanEscape(&b, s[i:])
			continue
		}
		b.WriteByte(s[i])
		i++
	}
	return b.String()
}

// cleanEscape writes the escape \uXXXX, or the pair of them, that s begins with as jsonb takes it, and returns its length.
func cleanEscape(b *strings.Builder, s string) int {
	u, ok := hex4(s[2:])
	switch {
	case !ok:
		b.WriteString(s[:2])
		return 2
	case u == 0:
	case u >= 0xD800 && u < 0xDC00:
		if strings.HasPrefix(s[6:], `\u`) {
			if low, ok := hex4(s[8:]); ok && low >= 0xDC00 && low < 0xE000 {
				b.WriteString(s[:12])
				return 12
			}
		}
		b.WriteString(`\ufffd`)
	case u >= 0xDC00 && u < 0xE000:
		b.WriteString(`\ufffd`)
	default:
		b.WriteString(s[:6])
	}
	return 6
}

// hex4 reads four hexadecimal digits.
func hex4(s string) (u uint16, ok bool) {
	if len(s) < 4 {
		return 0, false
	}
	for i := range 4 {
		c := s[i]
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		u = u<<4 | uint16(c)
	}
	return u, true
}

// CleanCalls cleans every string of the calls and returns them; the slice is copied only if something changes.
func CleanCalls(calls []ToolCall) []ToolCall {
	copied := false
	for i := range calls {
		c := ToolCall{ID: Clean(calls[i].ID), Name: Clean(calls[i].Name), Arguments: CleanJSON(calls[i].Arguments)}
		if c == calls[i] {
			continue
		}
		if !copied {
			calls, copied = append([]ToolCall(nil), calls...), true
		}
		calls[i] = c
	}
	return calls
}
