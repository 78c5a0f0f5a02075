package mcp

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

const personsToken = "eyJ-of-the-person"

// What an identity provider asserts is exchanged for a token, each time one is needed.
func TestTokens_OfAnAssertion(t *testing.T) {
	t.Parallel()
	i := startIssuing(t)
	var asked []url.Values
	answer := `{"access_token": "the assertion", "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag", "token_type": "N_A"}`
	status := http.StatusOK
	idp := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		asked = append(asked, r.PostForm)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(idp.Close)
	o, _, err := ParseOAuth(json.RawMessage(`{"grant": "identity_assertion", "client_id": "client", "issuer": "`+i.as.URL+`",
		"idp_token_url": "`+idp.URL+`", "idp_client_id": "aidb at the provider"}`),
		`{"client_secret": "`+clientsSecret+`", "id_token": "`+personsToken+`", "idp_client_secret": "another"}`)
	require.NoError(t, err)
	srv := i.server()
	srv.OAuth = o
	text, err := callX(t, pool(t, Options{}), srv)
	require.NoError(t, err)
	require.Equal(t, "echo Bearer token-1", text)
	asked[0].Del("code") // the library's, and without a value
	require.Equal(t, url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "requested_token_type": {"urn:ietf:params:oauth:token-type:id-jag"},
		"subject_token": {personsToken}, "subject_token_type": {"urn:ietf:params:oauth:token-type:id_token"},
		"audience": {i.as.URL}, "resource": {i.mcp.URL + "/mcp"}, "scope": {"a b"}, "client_id": {"aidb at the provider"}, "client_secret": {"another"},
	}, asked[0])
	require.Equal(t, url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {"the assertion"}, "scope": {"a b"}, "basic": {"client:" + clientsSecret},
	}, i.asked()[0])

	for _, c := range []struct {
		status       int
		answer, want string
	}{
		{400, `{"error": "invalid_grant ` + personsToken + `"}`, "gives no token: invalid_grant *** (HTTP 400)"},
		{200, `{"access_token": "x", "issued_token_type": "urn:ietf:params:oauth:token-type:access_token", "token_type": "Bearer"}`, "gives no assertion that can be used"},
		{200, `{"access_token": "x", "token_type": "N_A"}`, "gives an answer that cannot be used"},
		{200, `<html>`, "gives an answer that cannot be used"},
		{200, ``, "gives an answer that cannot be used"},
		{302, ``, "redirects"},
	} {
		status, answer = c.status, c.answer
		if status == http.StatusFound {
			idp.Config.Handler = http.RedirectHandler(i.as.URL+"/token", http.StatusFound)
		}
		_, err = callX(t, pool(t, Options{}), srv)
		require.ErrorContains(t, err, c.want)
		require.NotContains(t, err.Error(), personsToken)
	}
	require.Len(t, i.asked(), 1, "no token is asked for without an assertion")
}

func TestParseOAuth_Assertion(t *testing.T) {
	t.Parallel()
	good := `{"grant": "identity_assertion", "client_id": "c", "issuer": "https://as.example", "idp_token_url": "https://idp.example/token", "idp_client_id": "i"}`
	for _, c := range []struct{ settings, secrets, message string }{
		{good, `{"client_secret": "s"}`, "oauth needs id_token beside the headers"},
		{good, `{"id_token": "t"}`, "oauth needs either client_secret or private_key"},
		{`{"grant": "identity_assertion", "client_id": "c", "issuer": "https://as.example", "idp_client_id": "i"}`, `{}`, "needs both"},
		{`{"client_id": "c", "issuer": "https://as.example", "idp_token_url": "https://idp.example/token", "idp_client_id": "i"}`, `{}`, "belong to the grant identity_assertion"},
		{`{"client_id": "c", "issuer": "https://as.example", "idp_client_id": "i"}`, `{"client_secret": "s"}`, "belong to the grant identity_assertion"},
		{`{"client_id": "c", "issuer": "https://as.example"}`, `{"client_secret": "s", "id_token": "t"}`, "are for the grant identity_assertion"},
		{`{"client_id": "c", "issuer": "https://as.example", "id_token": "t"}`, `{}`, "must not hold the secret"},
		{`{"grant": "identity_assertion", "client_id": "c", "issuer": "https://as.example", "idp_token_url": "idp", "idp_client_id": "i"}`, `{}`, "must be http or https addresses"},
		{`{"grant": "password", "client_id": "c", "issuer": "https://as.example"}`, `{}`, "'grant' must be client_credentials, authorization_code or identity_assertion"},
	} {
		_, _, err := ParseOAuth(json.RawMessage(c.settings), c.secrets)
		require.ErrorContains(t, err, c.message, c.settings)
	}
	_, headers, err := ParseOAuth(json.RawMessage(good), `{"client_secret": "s", "id_token": "t", "X-Other": "y"}`)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"X-Other": "y"}, headers)
}
