package wire

import (
	"bytes"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// scrubber takes a secret out of what a server says: gateways like to repeat the header that they did not like.
type scrubber struct{ needles []string }

const (
	redacted = "[redacted]"
	// Shorter secrets are words (local servers are given "none" or "ollama"); taking them out of an answer would
	// damage it, taking them out of an error text costs little.
	minInError = 4
	minInReply = 12
)

// newscrubber knows the secret in the spellings in which it may come back.
func newscrubber(c Credentials, header string) scrubber {
	var s scrubber
	add := func(secret string) {
		if len(secret) >= minInError && !slices.Contains(s.needles, secret) {
			s.needles = append(s.needles, secret)
		}
	}
	_, token, _ := strings.Cut(header, " ")
	for _, secret := range []string{c.APIKey, c.BasicAuth, token} {
		secret = strings.TrimSpace(secret)
		add(secret)
		if b, err := json.Marshal(secret); err == nil {
			add(string(b[1 : len(b)-1]))
		}
		add(strings.ReplaceAll(secret, "/", `\/`))
		add(url.QueryEscape(secret))
	}
	if _, password, ok := strings.Cut(c.BasicAuth, ":"); ok {
		add(password)
	}
	return s
}

// reply cleans a body before anything is read from it.
func (s scrubber) body(b []byte, least int) []byte {
	for _, n := range s.needles {
		if len(n) >= least && bytes.Contains(b, []byte(n)) {
			b = bytes.ReplaceAll(b, []byte(n), []byte(redacted))
		}
	}
	return b
}

var authorization = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(bearer|basic)[ :]+[A-Za-z0-9._~+/=-]{8,}`)
})

// Text cleans an error text.
func (s scrubber) Text(t string) string {
	for _, n := range s.needles {
		t = strings.ReplaceAll(t, n, redacted)
	}
	return authorization().ReplaceAllString(t, "$1 "+redacted)
}
