package mcp

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseOAuth_ByPerson(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ settings, secrets, message string }{
		{`{"grant": "authorization_code"}`, ``, ""},
		{`{"grant": "authorization_code"}`, `{"X-Other": "y"}`, ""},
		{`{"grant": "authorization_code", "client_id": "c"}`, ``, ""},
		{`{"grant": "authorization_code", "client_id": "c", "issuer": "https://as.example"}`, `{"client_secret": "s"}`, ""},
		{`{"grant": "authorization_code", "client_id": "c"}`, `{"client_secret": "s"}`, "oauth needs issuer or token_url"},
		{`{"grant": "authorization_code", "issuer": "https://as.example"}`, `{"client_secret": "s"}`, "'client_id' is missing"},
		{`{"grant": "authorization_code", "client_id": "c", "issuer": "https://as.example"}`, `{"client_secret": "s", "private_key": "k"}`, "either client_secret or"},
		{`{"grant": "authorization_code", "redirect_uri": "javascript:x"}`, ``, "must be http or https addresses"},
		{`{"grant": "authorization_code"}`, `{"Authorization": "Bearer x"}`, "must not have Authorization"},
	} {
		o, _, err := ParseOAuth(json.RawMessage(c.settings), c.secrets)
		if c.message != "" {
			require.ErrorContains(t, err, c.message, c.settings)
			continue
		}
		require.NoError(t, err, c.settings)
		require.True(t, o.ByPerson())
	}
}

// Scopes may be a server's words, and go into a hint that somebody copies into psql.
func TestAdmissible_LeavesOutWhatIsNoScope(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"a", "b:c/d"}, admissible([]string{"a", "a", "b'c", `b"c`, `b\c`, "b\nc", "ä", "b:c/d"}))
	require.Len(t, admissible(strings.Fields(strings.Repeat("s ", 5000))), 1)
	require.LessOrEqual(t, len(strings.Join(admissible([]string{strings.Repeat("x", maxOAuth-1), "more"}), " ")), maxOAuth)
}

func TestParseAuthorization(t *testing.T) {
	t.Parallel()
	a, err := ParseAuthorization(nil)
	require.NoError(t, err)
	require.Nil(t, a)
	for _, text := range []string{`7`, `{}`, `[`, `{"id": 7}`} {
		_, err := ParseAuthorization(json.RawMessage(text))
		require.ErrorContains(t, err, "cannot be read", text)
	}
	now := time.Now()
	a, err = ParseAuthorization(json.RawMessage(`{"id": "x"}`))
	require.NoError(t, err)
	require.False(t, a.RanOut(now), "one that does not say when it ends")
	a.Expiry = now.Add(early + time.Second)
	require.False(t, a.RanOut(now))
	require.True(t, a.RanOut(now.Add(2*time.Second)))
}
