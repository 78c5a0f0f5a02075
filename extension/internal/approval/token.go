package approval

import (
	"encoding/base64"
	"fmt"
	"io"
	"regexp"
)

// Tokens look like nothing else, so that one that gets where it must not be is found and taken out.
const (
	tokenPrefix = "aidb-yes-"
	tokenBytes  = 32
)

var tokenShape = regexp.MustCompile(`(?i)` + tokenPrefix + `[A-Za-z0-9_-]+`)

// NewToken makes a token of 256 bits from a secure source.
func NewToken(random io.Reader) (string, error) {
	b := make([]byte, tokenBytes)
	if _, err := io.ReadFull(random, b); err != nil {
		return "", fmt.Errorf("reading randomness: %w", err)
	}
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(b), nil
}

// Scrub takes whatever has the shape of a token out of a text that a model will read.
func Scrub(text string) string {
	if len(text) < len(tokenPrefix) {
		return text
	}
	return tokenShape.ReplaceAllString(text, "[removed: a confirmation token]")
}
