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
// \u0000 altogether and an unpaired surrogate such as \ud800 to \ufffd. Text that is not JSON is treated alike.
func CleanJSON(s string) string {
	s = Clean(s)
	if !strings.Contains(s, `\u`) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			i++
			continue
		}
		if s[i+1] != 'u' {
			// An escaped backslash among others: the character after it does not begin an escape.
			b.WriteString(s[i : i+2])
			i += 2
			continue
		}
		u, ok := hex4(s[i+2:])
		switch {
		case !ok:
			b.WriteString(s[i : i+2])
			i += 2
			continue
		case u == 0:
		case u >= 0xD800 && u < 0xDC00:
			low, ok := uint16(0), false
			if strings.HasPrefix(s[i+6:], `\u`) {
				low, ok = hex4(s[i+8:])
			}
			if ok && low >= 0xDC00 && low < 0xE000 {
				b.WriteString(s[i : i+12])
				i += 12
				continue
			}
			b.WriteString(`\ufffd`)
		case u >= 0xDC00 && u < 0xE000:
			b.WriteString(`\ufffd`)
		default:
			b.WriteString(s[i : i+6])
		}
		i += 6
	}
	return b.String()
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
