package wire

import (
	"bytes"
	"encoding/json"
	"strings"

	"aidb/extension/internal/conversation"
)

// TrimLead removes what some servers and proxies put before the document: a byte order mark, white space, and the
// comment lines with which a stream's server says that it is alive.
func TrimLead(b []byte) []byte {
	for {
		b = bytes.TrimPrefix(bytes.TrimLeft(b, " \t\r\n"), byteOrderMark)
		b = bytes.TrimLeft(b, " \t\r\n")
		if len(b) == 0 || b[0] != ':' {
			return b
		}
		_, rest, found := bytes.Cut(b, []byte("\n"))
		if !found {
			return nil
		}
		b = rest
	}
}

// TidyArguments repairs arguments whose meaning is beyond doubt: a JSON string that holds an object, an object in a
// code fence, and the ways to say nothing. Anything else, Python literals and cut texts among them, goes on as it is: the model is told
// and corrects itself, which a guess of ours would prevent.
func TidyArguments(t Text) Text {
	if !t.decoded {
		lead := bytes.TrimLeft(t.raw, " \t\r\n")
		if len(lead) == 0 {
			return Text{}
		}
		plain := lead[0] == '{'
		if plain && t.flags&hasUnicode == 0 && (t.flags&hasEscape == 0 || !bytes.Contains(t.raw, []byte(`\\u`))) {
			return t
		}
	}
	s := conversation.CleanJSON(t.String())
	trimmed := strings.TrimSpace(s)
	switch trimmed {
	case "", "null", `""`:
		return Text{}
	}
	if inner, ok := fenced(trimmed); ok && IsObject(inner) {
		return TextOf(inner)
	}
	if strings.HasPrefix(trimmed, `"`) {
		var inner string
		if json.Unmarshal([]byte(trimmed), &inner) == nil && IsObject(inner) {
			return TextOf(conversation.CleanJSON(inner))
		}
	}
	return TextOf(s)
}

func IsObject(s string) bool {
	s = strings.TrimSpace(s)
	return strings.HasPrefix(s, "{") && json.Valid([]byte(s))
}

// fenced returns what a code fence around the whole text holds.
func fenced(s string) (string, bool) {
	if len(s) < 6 || !strings.HasPrefix(s, "```") || !strings.HasSuffix(s, "```") {
		return "", false
	}
	s = s[3 : len(s)-3]
	if first, rest, ok := strings.Cut(s, "\n"); ok && !strings.ContainsAny(first, "{[\"` ") {
		s = rest
	}
	return strings.TrimSpace(s), !strings.Contains(s, "```")
}
