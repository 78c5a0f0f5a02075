package mcp

import (
	"encoding/json"
	"net/http"
	"strings"
	"unicode"

	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
)

const maxProgressText = 200

// visible takes out what a reader would not see and a model does: control characters (line breaks and tabs apart),
// characters of direction, and the like, in which instructions can be hidden.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\u200c' || r == '\u200d': // joiners: parts of words in some scripts, and of pictures
			return r
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Co, r):
			return -1
		case r >= 0xE0000 && r <= 0xE0FFF: // tags and variation selectors
			return -1
		}
		return r
	}, conversation.Clean(s))
}

// line is visible text on one line, bounded.
func line(s string, max int) string {
	if len(s) > 4*max {
		s = fault.Cut(s, 4*max)
	}
	return fault.Cut(strings.Join(strings.Fields(visible(s)), " "), max)
}

// ParseHeaders reads a JSON object of header → value. The error repeats neither.
func ParseHeaders(text string) (map[string]string, error) {
	headers, err := decodeHeaders(text)
	if err == nil {
		err = checkHeaders(headers)
	}
	if err != nil {
		return nil, err
	}
	return headers, nil
}

func decodeHeaders(text string) (headers map[string]string, err error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	if json.Unmarshal([]byte(text), &headers) != nil {
		return nil, fault.New(fault.InvalidArgument, "headers must be a JSON object of texts by header name")
	}
	return headers, nil
}

func checkHeaders(headers map[string]string) error {
	if len(headers) > maxHeaders {
		return fault.New(fault.InvalidArgument, "headers must not be more than %d", maxHeaders)
	}
	for name, value := range headers {
		if !token(name) || reserved[http.CanonicalHeaderKey(name)] || strings.HasPrefix(http.CanonicalHeaderKey(name), "Mcp-") {
			return fault.New(fault.InvalidArgument, "headers has a name that cannot be sent, or is the protocol's own")
		}
		if len(value) > maxHeader || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return fault.New(fault.InvalidArgument, "headers has a value that cannot be sent").
				WithHint("A line break at its end is the usual cause.")
		}
	}
	return nil
}

const (
	maxHeaders = 50
	maxHeader  = 16 << 10
)

// reserved are the headers that belong to HTTP or to the protocol.
var reserved = map[string]bool{
	"Host": true, "Content-Length": true, "Content-Type": true, "Transfer-Encoding": true, "Connection": true, "Accept": true,
	"Upgrade": true, "Te": true, "Trailer": true, "Expect": true, "Last-Event-Id": true, "Accept-Encoding": true, "Keep-Alive": true,
}

// token says whether a text can be a header's name.
func token(s string) bool {
	return s != "" && len(s) <= 256 && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r)
	})
}
