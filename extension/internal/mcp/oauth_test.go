package mcp

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"aidb/extension/internal/egress"
	"aidb/extension/internal/fault"
)

func TestParseOAuth(t *testing.T) {
	t.Parallel()
	good := `{"client_id": "c", "issuer": "https://as.example"}`
	secret := `{"client_secret": "` + clientsSecret + `", "X-Other": "y"}`
	o, headers, err := ParseOAuth(json.RawMessage(good), secret)
	require.NoError(t, err)
	require.Equal(t, clientsSecret, o.clientSecret)
	require.Equal(t, map[string]string{"X-Other": "y"}, headers, "the secret is no header")
	o, headers, err = ParseOAuth(nil, `{"client_secret": "a header of that name"}`)
	require.NoError(t, err)
	require.Nil(t, o)
	require.Len(t, headers, 1)
	for _, c := range []struct{ settings, secrets, message string }{
		{`[]`, secret, "oauth must be a JSON object"},
		{`{"client_id": "c", "issuer": "https://as.example", "client_secret": "x"}`, secret, "must not hold the secret"},
		{`{"client_id": "c", "issuer": "https://as.example", "private_key": "x"}`, secret, "must not hold the secret"},
		{`{"client_id": "c", "issuer": "https://as.example", "isuer": "x"}`, secret, "a member that is not known"},
		{`{"client_id": "c", "issuer": 7}`, secret, "a member that is not known or not a text"},
		{`{"issuer": "https://as.example"}`, secret, "'client_id' is missing"},
		{`{"client_id": "c"}`, secret, "oauth needs issuer or token_url"},
		{`{"client_id": "c", "issuer": "as.example"}`, secret, "must be http or https addresses"},
		{`{"client_id": "c", "token_url": "https://u:p@as.example/t"}`, secret, "must be http or https addresses"},
		{`{"client_id": "c\u0000", "issuer": "https://as.example"}`, secret, "cannot be sent"},
		{`{"client_id": "` + strings.Repeat("c", maxOAuth+1) + `", "issuer": "https://as.example"}`, secret, "cannot be sent"},
		{`{"client_id": "c", "issuer": "https://as.example", "auth_method": "none"}`, secret, "'auth_method' must be client_secret_basic or client_secret_post"},
		{good, `{}`, "either client_secret or private_key"},
		{good, ``, "either client_secret or private_key"},
		{good, `{"client_secret": "a", "private_key": "b"}`, "either client_secret or private_key"},
		{`{"client_id": "c", "issuer": "https://as.example", "auth_method": "client_secret_post"}`, `{"private_key": "b"}`, "is for a client_secret"},
		{good, `{"client_secret": "a", "authorization": "Bearer x"}`, "must not have Authorization"},
		{good, `{"client_secret": "a", "Host": "x"}`, "headers has a name"},
		{good, `7`, "headers must be a JSON object"},
	} {
		_, _, err := ParseOAuth(json.RawMessage(c.settings), c.secrets)
		require.ErrorContains(t, err, c.message, c.settings)
		require.True(t, fault.Is(err, fault.InvalidArgument))
		require.NotContains(t, err.Error(), clientsSecret)
	}
}

func callX(t *testing.T, p *Pool, srv *Server) (string, error) {
	t.Helper()
	r, err := p.Call(t.Context(), srv, "x", json.RawMessage(`{}`), nil)
	if err != nil {
		require.NotContains(t, err.Error(), clientsSecret)
		return "", err
	}
	return r.Text(1000), nil
}

func pool(t *testing.T, o Options) *Pool {
	t.Helper()
	p := NewPool(o)
	t.Cleanup(p.Close)
	return p
}

// A token is got when the server asks for one, kept for all sessions, and replaced when it runs out or is withdrawn.
func TestTokens_AreGotAndKept(t *testing.T) {
	t.Parallel()
	i := startIssuing(t)
	p := pool(t, Options{})
	text, err := callX(t, p, i.server())
	require.NoError(t, err)
	require.Equal(t, "echo Bearer token-1", text)
	other := i.server()
	other.User = "another session"
	text, err = callX(t, p, other)
	require.NoError(t, err)
	require.Equal(t, "echo Bearer token-1", text, "another session has the same")
	first := i.asked()
	require.Len(t, first, 1)
	require.Equal(t, url.Values{
		"grant_type": {"client_credentials"}, "resource": {i.mcp.URL + "/mcp"}, "scope": {"a b"}, "basic": {"client:" + clientsSecret},
	}, first[0])

	i.withdraw()
	text, err = callX(t, p, i.server())
	require.NoError(t, err)
	require.Equal(t, "echo Bearer token-2", text, "in the same session")

	i.wants.Store(new("c"))
	text, err = callX(t, p, i.server())
	require.NoError(t, err)
	require.Equal(t, "echo Bearer token-3", text)
	require.Equal(t, "a b c", i.asked()[2].Get("scope"), "what it had is asked for again")
	i.wants.Store(new("never"))
	i.token = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"access_token": "token-3", "token_type": "Bearer"}`))
	}
	_, err = callX(t, p, i.server())
	require.ErrorContains(t, err, "does not accept the token (HTTP 403)")
	require.Len(t, i.asked(), 4, "asked for once")
	_, err = callX(t, p, i.server())
	require.ErrorContains(t, err, "does not accept the token (HTTP 403)")
	require.Len(t, i.asked(), 4, "and not again")
}

// Whoever needs one while it is got waits for it.
func TestTokens_AreAskedForOnce(t *testing.T) {
	t.Parallel()
	i := startIssuing(t)
	p := pool(t, Options{})
	_, err := callX(t, p, i.server())
	require.NoError(t, err)
	i.withdraw()
	var all sync.WaitGroup
	for n := range 10 {
		all.Go(func() {
			srv := i.server()
			srv.User = fmt.Sprint(n)
			if _, err := p.Call(t.Context(), srv, "x", json.RawMessage(`{}`), nil); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.Len(t, i.asked(), 2)
}

// One that has run out is not sent.
func TestTokens_RunOut(t *testing.T) {
	t.Parallel()
	i := startIssuing(t)
	i.expires = 1 // less than a request may take: run out at once
	p := pool(t, Options{})
	_, err := callX(t, p, i.server())
	require.NoError(t, err)
	before := len(i.asked())
	text, err := callX(t, p, i.server())
	require.NoError(t, err)
	require.Len(t, i.asked(), before+1)
	require.Equal(t, fmt.Sprintf("echo Bearer token-%d", before+1), text)
}

func TestTokens_SettingsGoOut(t *testing.T) {
	t.Parallel()
	i := startIssuing(t)
	srv := i.server()
	none := ""
	srv.OAuth = &OAuth{ClientID: "client", TokenURL: i.as.URL + "/token", Scope: "only", Audience: "aud", Resource: &none, AuthMethod: post, clientSecret: clientsSecret}
	_, err := callX(t, pool(t, Options{}), srv)
	require.NoError(t, err)
	require.Equal(t, url.Values{
		"grant_type": {"client_credentials"}, "scope": {"only"}, "audience": {"aud"}, "client_id": {"client"}, "client_secret": {clientsSecret},
	}, i.asked()[0])
	i.wants.Store(new("more"))
	_, err = callX(t, pool(t, Options{}), srv)
	require.ErrorContains(t, err, "does not accept the token (HTTP 403)", "the scope is the registration's to say")
}

func TestTokens_SignedAssertion(t *testing.T) {
	t.Parallel()
	ec, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	require.NoError(t, err)
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	for _, c := range []struct {
		key       crypto.Signer
		algorithm string
		want      string
	}{{ec, "", "ES384"}, {ed, "", "EdDSA"}, {rs, "", "RS256"}, {rs, "PS256", "PS256"}} {
		der, err := x509.MarshalPKCS8PrivateKey(c.key)
		require.NoError(t, err)
		text := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
		i := startIssuing(t)
		srv := i.server()
		srv.OAuth = &OAuth{ClientID: "client", Issuer: i.as.URL, Algorithm: c.algorithm, KeyID: "k1", privateKey: text}
		_, err = callX(t, pool(t, Options{}), srv)
		require.NoError(t, err)
		asked := i.asked()[0]
		require.Equal(t, "urn:ietf:params:oauth:client-assertion-type:jwt-bearer", asked.Get("client_assertion_type"))
		require.Empty(t, asked.Get("client_secret"))
		claims := jwt.RegisteredClaims{}
		parsed, err := jwt.ParseWithClaims(asked.Get("client_assertion"), &claims, func(*jwt.Token) (any, error) { return c.key.Public(), nil })
		require.NoError(t, err)
		require.Equal(t, c.want, parsed.Method.Alg())
		require.Equal(t, "k1", parsed.Header["kid"])
		require.Equal(t, "client", claims.Issuer)
		require.Equal(t, "client", claims.Subject)
		require.Equal(t, jwt.ClaimStrings{i.as.URL}, claims.Audience)
		require.NotEmpty(t, claims.ID)
	}
	for _, o := range []OAuth{
		{privateKey: "no key"}, {privateKey: "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"},
	} {
		_, err := o.assertion("a", time.Now())
		require.ErrorContains(t, err, "private_key cannot be read")
	}
	der, err := x509.MarshalPKCS8PrivateKey(ed)
	require.NoError(t, err)
	for _, algorithm := range []string{"RS256", "HS256", "none", "nonsense"} {
		o := OAuth{Algorithm: algorithm, privateKey: string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))}
		_, err := o.assertion("a", time.Now())
		require.ErrorContains(t, err, "cannot be used with that algorithm", algorithm)
	}
}

// Whatever a server or an authorization server says, the secret goes nowhere else, and the call ends with a word about it.
func TestTokens_Refused(t *testing.T) {
	t.Parallel()
	text := func(format string, args ...any) func() string {
		return func() string { return fmt.Sprintf(format, args...) }
	}
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	for _, c := range []struct {
		name, message string
		kind          fault.Kind
		tokens        int // requests for tokens
		prepare       func(i *issuing)
	}{
		{"another resource", "want", fault.ServerAuth, 0, func(i *issuing) {
			i.describe = text(`{"resource": "https://evil.example/mcp", "authorization_servers": [%q]}`, i.as.URL)
		}},
		{"another issuer", "does not name", fault.ServerAuth, 0, func(i *issuing) {
			i.describe = text(`{"resource": %q, "authorization_servers": ["https://evil.example"]}`, i.mcp.URL+"/mcp")
		}},
		{"no issuer at all", "does not name", fault.ServerAuth, 0, func(i *issuing) { i.describe = text(`{"resource": %q}`, i.mcp.URL+"/mcp") }},
		{"a description that is none", "its description cannot be read", fault.ServerAuth, 0, func(i *issuing) { i.describe = text(`[`) }},
		{"a huge description", "message is too large", fault.ServerAuth, 0, func(i *issuing) {
			i.describe = text(`{"resource": "%s"}`, strings.Repeat("x", 2*maxDocument))
		}},
		{"a deep description", "nested too deeply", fault.ServerAuth, 0, func(i *issuing) { i.describe = text("%s", strings.Repeat("[", 100_000)) }},
		{"metadata of another issuer", "does not match", fault.ServerAuth, 0, func(i *issuing) {
			i.metadata = text(`{"issuer": "https://other.example", "token_endpoint": %q, "code_challenge_methods_supported": ["S256"]}`, i.as.URL+"/token")
		}},
		{"no token endpoint", "does not say where tokens are", fault.ServerAuth, 0, func(i *issuing) {
			i.metadata = text(`{"issuer": %q, "code_challenge_methods_supported": ["S256"]}`, i.as.URL)
		}},
		{"a token endpoint on a metadata service", "non-public address", fault.ServerAuth, 0, func(i *issuing) {
			i.metadata = text(`{"issuer": %q, "token_endpoint": "https://169.254.169.254/token", "code_challenge_methods_supported": ["S256"]}`, i.as.URL)
		}},
		{"a wrong secret", "gives no token: invalid_client (HTTP 401)", fault.ServerAuth, 1, func(i *issuing) {
			i.token = answer(401, `{"error": "invalid_client", "error_description": "`+clientsSecret+`"}`)
		}},
		{"an error that repeats the secret", "gives no token: *** (HTTP 400)", fault.ServerAuth, 1, func(i *issuing) {
			i.token = answer(400, `{"error": "`+clientsSecret+`"}`)
		}},
		{"a failure without words", "gives no token: no reason given (HTTP 500)", fault.ServerAuth, 1, func(i *issuing) { i.token = answer(500, "") }},
		{"no token in it", "gives an answer that cannot be used", fault.ServerAuth, 1, func(i *issuing) { i.token = answer(200, `{}`) }},
		{"not JSON", "gives an answer that cannot be used", fault.ServerAuth, 1, func(i *issuing) { i.token = answer(200, `<html>`) }},
		{"another type", "gives a token that cannot be used", fault.ServerAuth, 1, func(i *issuing) {
			i.token = answer(200, `{"access_token": "x", "token_type": "mac"}`)
		}},
		{"a huge answer", "gives an answer that cannot be used", fault.ServerAuth, 1, func(i *issuing) {
			i.token = answer(200, `{"access_token": "`+strings.Repeat("x", 2*maxDocument)+`"}`)
		}},
		{"silence", "did not answer in time", fault.ServerUnavailable, 1, func(i *issuing) {
			i.token = func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
		}},
		{"a redirect", "it redirects", fault.ServerAuth, 1, func(i *issuing) {
			i.token = func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, i.as.URL+"/elsewhere", http.StatusTemporaryRedirect)
			}
		}},
		{"a token that is not taken", "does not accept the token (HTTP 401)", fault.ServerAuth, 1, func(i *issuing) {
			i.token = answer(200, `{"access_token": "unknown", "token_type": "Bearer"}`)
		}},
		{"a challenge that leads elsewhere", "non-public address", fault.ServerAuth, 0, func(i *issuing) {
			i.challenge = text(`Bearer resource_metadata="https://169.254.169.254/x"`)
		}},
		{"nobody there", "cannot be reached: connection refused", fault.ServerUnavailable, 0, func(i *issuing) { i.as.Close() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			i := startIssuing(t)
			srv := i.server()
			if c.name == "silence" {
				srv.Timeout = 500 * time.Millisecond
			}
			c.prepare(i)
			_, err := callX(t, pool(t, Options{}), srv)
			require.ErrorContains(t, err, c.message)
			require.True(t, fault.Is(err, c.kind), "%v", err)
			var f *Failure
			require.ErrorAs(t, err, &f)
			require.NotEqual(t, Unknown, f.Outcome, "no tool has run")
			require.Len(t, i.asked(), c.tokens)
		})
	}
}

// The authorization server is reached within the egress list only.
func TestTokens_EgressList(t *testing.T) {
	t.Parallel()
	i := startIssuing(t)
	list, err := egress.Parse("127.0.0.1")
	require.NoError(t, err)
	srv := i.server()
	srv.OAuth.Issuer = strings.Replace(i.as.URL, "127.0.0.1", "localhost", 1)
	i.describe = func() string {
		return fmt.Sprintf(`{"resource": %q, "authorization_servers": [%q]}`, i.mcp.URL+"/mcp", srv.OAuth.Issuer)
	}
	_, err = callX(t, pool(t, Options{Egress: egress.Policy{List: list}}), srv)
	require.ErrorContains(t, err, "host 'localhost' is not allowed by aidb.egress_allowlist")
	require.ErrorIs(t, err, egress.ErrDenied)
}
