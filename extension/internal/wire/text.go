package wire

// The strings of JSON texts, read and written: see json.go.

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"aidb/extension/internal/conversation"
)

// What a string holds beyond plain ASCII.
const (
	hasEscape  = 1 << iota // a backslash
	hasUnicode             // \u…
	hasHigh                // bytes above 0x7f
	hasControl             // what JSON does not allow unescaped, or allows only escaped in another way
)

// class says which flag a byte raises inside a string; the quote is handled apart.
var class = func() (t [256]uint8) {
	for i := range t {
		switch {
		case i < 0x20:
			t[i] = hasControl
		case i >= 0x80:
			t[i] = hasHigh
		}
	}
	t['"'], t['\\'] = 0xff, 0xff
	return t
}()

// Text is a string of a reply: the bytes between the quotes as they stand in the body, or a Go string.
type Text struct {
	raw     []byte
	flags   uint8
	owned   bool // raw is not part of the body
	decoded bool
	s       string
}

func TextOf(s string) Text { return Text{decoded: true, s: s} }

func (t Text) Empty() bool { return len(t.raw) == 0 && t.s == "" }

// String returns the text, cleaned of what PostgreSQL cannot store.
func (t Text) String() string {
	if t.decoded {
		return t.s
	}
	if t.flags&^hasHigh == 0 {
		if t.flags == 0 || utf8.Valid(t.raw) {
			return string(t.raw)
		}
	}
	return unquote(t.raw)
}

// unquote resolves escapes. Unpaired surrogates and invalid UTF-8 become U+FFFD, NUL goes, an escape that JSON
// does not know stays as it is written.
func unquote(raw []byte) string {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		c := raw[i]
		if c != '\\' {
			j := i + 1
			for j < len(raw) && raw[j] != '\\' {
				j++
			}
			out = append(out, raw[i:j]...)
			i = j
			continue
		}
		if i+1 == len(raw) {
			break
		}
		i += 2
		switch c := raw[i-1]; c {
		case '"', '\\', '/':
			out = append(out, c)
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, n := unicodeEscape(raw[i-2:])
			if n == 0 {
				out = append(out, '\\', 'u')
				continue
			}
			i += n - 2
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, '\\', c)
		}
	}
	return conversation.Clean(string(out))
}

// unicodeEscape reads the escape, or the surrogate pair of escapes, that raw begins with: the character and the
// number of bytes, 0 when it is no escape.
func unicodeEscape(raw []byte) (rune, int) {
	r, ok := hex4(raw)
	if !ok {
		return 0, 0
	}
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if low, ok := hex4(raw[6:]); ok {
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return pair, 12
		}
	}
	return utf8.RuneError, 6
}

func hex4(raw []byte) (rune, bool) {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(raw[2:6]), 16, 16)
	return rune(n), err == nil
}

// AppendText writes a reply's string as JSON, as it stands in the body when nothing is wrong with it.
func AppendText(dst []byte, t Text) []byte {
	if !t.decoded && t.flags&(hasControl|hasUnicode) == 0 && (t.flags&hasHigh == 0 || utf8.Valid(t.raw)) {
		dst = append(dst, '"')
		dst = append(dst, t.raw...)
		return append(dst, '"')
	}
	return AppendString(dst, t.String())
}

const hexDigits = "0123456789abcdef"

// AppendString writes s as a JSON string.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	dst = AppendEscaped(dst, s)
	return append(dst, '"')
}

// AppendEscaped writes s without the quotes. Invalid UTF-8, which is what an unpaired surrogate is in a Go string,
// becomes U+FFFD and NUL goes: servers refuse both, and then refuse the conversation for ever after.
func AppendEscaped(dst []byte, s string) []byte {
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if class[c] == 0 {
				i++
				continue
			}
			dst = append(dst, s[start:i]...)
			switch c {
			case '"', '\\':
				dst = append(dst, '\\', c)
			case '\n':
				dst = append(dst, '\\', 'n')
			case '\r':
				dst = append(dst, '\\', 'r')
			case '\t':
				dst = append(dst, '\\', 't')
			case 0:
			default:
				dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			dst = append(dst, s[start:i]...)
			dst = append(dst, "\uFFFD"...)
			start = i + 1
		}
		i += size
	}
	return append(dst, s[start:]...)
}

// May reports, without resolving escapes, whether the text may hold the word or begin with one of the bytes.
func (t Text) May(word, first string) bool {
	if t.decoded {
		return strings.Contains(t.s, word) || t.s != "" && strings.ContainsAny(t.s[:1], first)
	}
	return t.flags&hasUnicode != 0 || bytes.Contains(t.raw, []byte(word)) || len(t.raw) > 0 && (t.raw[0] == '\\' || strings.IndexByte(first, t.raw[0]) >= 0)
}

// Size is about how many bytes the text has.
func (t Text) Size() int { return len(t.raw) + len(t.s) }

// Join puts two texts together without resolving their escapes.
func (t Text) Join(with Text) Text {
	switch {
	case with.Empty():
		return t
	case t.Empty():
		return with
	}
	t, with = t.undecoded(), with.undecoded()
	if !t.owned {
		// The text is a piece of the body: appending would write over what comes after it.
		t.raw, t.owned = bytes.Clone(t.raw), true
	}
	t.raw, t.flags = append(t.raw, with.raw...), t.flags|with.flags
	return t
}

func (t Text) undecoded() Text {
	if !t.decoded {
		return t
	}
	return Text{raw: AppendEscaped(nil, t.s), flags: hasEscape | hasUnicode | hasHigh, owned: true}
}
