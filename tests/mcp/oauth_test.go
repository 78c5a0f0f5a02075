package mcp

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/tests/fakemcp"
	"aidb/tests/servertest"
)

// Whoever registers a server that wants tokens says who the client is and whom to ask; the rest goes by itself, and no secret
// turns up anywhere.
func TestOAuth_TokensAreGotAndNeverShown(t *testing.T) {
	token, before := secret+"-token", len(server.Log())
	var withdrawn, repeats atomic.Bool
	as := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if id, password, _ := r.BasicAuth(); r.URL.Path != "/token" || id != "client" || password != secret || r.FormValue("grant_type") != "client_credentials" {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error": "invalid_client", "error_description": "`+password+`"}`)
			return
		}
		withdrawn.Store(false)
		_, _ = io.WriteString(w, `{"access_token": "`+token+`", "token_type": "Bearer", "expires_in": 3600}`)
	}))
	t.Cleanup(as.Close)
	wants := fakemcp.StartRaw(t, func(m fakemcp.Message, w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") != "Bearer "+token || withdrawn.Load() {
			w.Header().Set("WWW-Authenticate", `Bearer realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		if m.Method == "tools/call" && repeats.Load() {
			fakemcp.JSON(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"error":{"code":-32000,"message":"`+r.Header.Get("Authorization")+`"}}`)
			return true
		}
		return false
	})
	file := filepath.Join(folder, "client")
	require.NoError(t, os.WriteFile(file, []byte(`{"client_secret": "`+secret+`"}`), 0o644))
	oauth := fmt.Sprintf(`oauth => '{"client_id": "client", "token_url": "%s/token"}'`, as.URL)
	stored := `headers => '{"client_secret": "` + secret + `"}'`
	for _, c := range []struct{ name, source string }{
		{"oauth_stored", stored}, {"oauth_env", `headers_env => 'AIDB_MCP_CLIENT'`}, {"oauth_file", `headers_k8s_secret => '` + file + `'`},
	} {
		t.Run(c.name, func(t *testing.T) {
			ann, admin := server.Conn(t, "ann"), server.Admin(t)
			register(t, ann, c.name, wants.URL, c.source, oauth)
			require.Equal(t, "called", text(t, ann, "x", `{}`))
			withdrawn.Store(true)
			require.Equal(t, "called", text(t, ann, "x", `{}`), "with a new one")
			for _, r := range wants.Requests() {
				require.Empty(t, r.Header.Get("client_secret"), "the client's secret is not for the server")
			}
			require.Equal(t, "client", servertest.Value(t, ann, `SELECT oauth ->> 'client_id' FROM aidb.mcp_registry WHERE name = $1`, c.name))
			require.NotContains(t, servertest.Value(t, admin, `SELECT string_agg(r::text, '') FROM aidb.mcp_registry r`)+
				servertest.Value(t, admin, `SELECT string_agg(r::text, '') FROM aidb.decisions r`), secret)
		})
	}
	ann, admin := server.Conn(t, "ann"), server.Admin(t)
	stored = `headers_k8s_secret => '` + file + `'` // a statement that fails is in the server's log
	register(t, ann, "oauth_changes", wants.URL, stored, oauth)
	repeats.Store(true)
	require.Contains(t, fails(t, ann, "38000", runTool, "x", `{}`), "answered with an error: Bearer ***", "nor is the token")
	repeats.Store(false)

	// within the egress list, and asked for once
	servertest.Exec(t, admin, "SET aidb.egress_allowlist = '127.0.0.1'")
	servertest.Exec(t, ann, `SELECT aidb.update_mcp_server('oauth_changes', oauth => $1::jsonb)`,
		fmt.Sprintf(`{"client_id": "client", "token_url": "%s/token"}`, strings.Replace(as.URL, "127.0.0.1", "localhost", 1)))
	require.Contains(t, fails(t, admin, "42501", runTool, "x", `{}`),
		"MCP server 'oauth_changes' cannot be used: authorization server 'localhost:")
	require.Contains(t, logged(t), "status=denied reason=egress_denied")

	for _, c := range []struct{ state, message, args string }{
		{"08004", "gives no token: invalid_client (HTTP 401)", strings.Replace(oauth, `"client"`, `"other"`, 1) + ", " + stored},
		{"08004", "gives no token: invalid_client (HTTP 401)", strings.Replace(oauth, "/token", "/elsewhere", 1) + ", " + stored},
		{"08004", "does not accept the headers (HTTP 401)", stored},
		{"22023", "oauth needs either client_secret or private_key beside the headers", oauth},
		{"22023", "oauth must not hold the secret", `oauth => '{"client_id": "c", "issuer": "https://x.example", "client_secret": "x"}'`},
		{"22023", "oauth needs issuer or token_url", `oauth => '{"client_id": "c"}', ` + stored},
		{"22023", "oauth must be a JSON object", `oauth => '7', ` + stored},
	} {
		require.Contains(t, fails(t, ann, c.state, `SELECT aidb.import_mcp_tools('oauth_no', $1, `+c.args+`)`, wants.URL), c.message)
	}
	require.Equal(t, "0", servertest.Value(t, admin, "SELECT count(*) FROM aidb_internal.mcp_servers WHERE name = 'oauth_no'"))
	require.Contains(t, fails(t, ann, "08004", `SELECT aidb.update_mcp_server('oauth_changes', oauth => '{}')`), "does not accept the headers")
	require.NotContains(t, server.Log()[before:], secret)
}

// Two servers with tools of the same name that are registered at the same time have them under two names.
func TestNames_AreGivenOnce(t *testing.T) {
	ann, bob := server.Conn(t, "ann"), server.Conn(t, "bob")
	ours := func(name string) string {
		return servertest.Value(t, ann, `SELECT string_agg(name, ',' ORDER BY name) FROM aidb.mcp_tools WHERE server = $1`, name)
	}
	s := fakemcp.Start()
	t.Cleanup(s.Close)
	s.Tool("same_name", "One of two.", nil, fakemcp.Echo)
	servertest.Exec(t, ann, "BEGIN")
	servertest.Exec(t, ann, `SELECT aidb.import_mcp_tools('sooner', $1, tool_filter => '{same_name}')`, s.URL("/mcp"))
	done := make(chan error, 1)
	go func() {
		_, err := bob.Exec(t.Context(), `SELECT aidb.import_mcp_tools('later', $1, tool_filter => '{same_name}')`, s.URL("/mcp"))
		done <- err
	}()
	require.Eventually(t, func() bool {
		return servertest.Value(t, ann, `SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'`) != "0"
	}, waitFor, tick, "the later one waits for the name")
	servertest.Exec(t, ann, "COMMIT")
	require.NoError(t, <-done)
	require.Equal(t, "same_name", ours("sooner"))
	require.Equal(t, "later.same_name", ours("later"))
	servertest.Exec(t, ann, `SELECT aidb.delete_tool('sooner')`)
	servertest.Exec(t, bob, `SELECT aidb.delete_tool('later')`)
}
