package mcp

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"aidb/tests/fakemcp"
	"aidb/tests/servertest"
)

// asking is an MCP server with its own authorization server, whose refresh tokens are good once: it takes the second use of one
// for theft and ends everything, as such servers do.
type asking struct {
	mcp *fakemcp.Raw
	as  *httptest.Server

	mu       sync.Mutex
	forms    []url.Values
	n        int
	access   string // the one that is taken
	refresh  string // likewise; "": none is any more
	expires  int
	wants    string // a scope without which no tool is called
	scope    string // that was granted
	noClient bool   // clients do not register themselves
}

func startAsking(t *testing.T) *asking {
	t.Helper()
	a := &asking{expires: 3600}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		register := fmt.Sprintf(`"registration_endpoint": "%s/register",`, a.as.URL)
		if a.noClient {
			register = ""
		}
		_, _ = fmt.Fprintf(w, `{"issuer": %q, "authorization_endpoint": %q, "token_endpoint": %q, %s "scopes_supported": ["offline_access"],
			"authorization_response_iss_parameter_supported": true, "code_challenge_methods_supported": ["S256"]}`,
			a.as.URL, a.as.URL+"/authorize", a.as.URL+"/token", register)
	})
	mux.HandleFunc("/register", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, `{"client_id": "registered", "client_secret": "%s-client", "redirect_uris": ["http://127.0.0.1:27431/callback"]}`, secret)
	})
	mux.HandleFunc("/token", a.token)
	a.as = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(a.as.Close)
	a.mcp = fakemcp.StartRaw(t, func(m fakemcp.Message, w http.ResponseWriter, r *http.Request) bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		switch {
		case a.access == "" || r.Header.Get("Authorization") != "Bearer "+a.access:
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer resource_metadata="%s/described", scope="read"`, a.as.URL))
			w.WriteHeader(http.StatusUnauthorized)
		case m.Method == "tools/call" && a.wants != "" && !strings.Contains(" "+a.scope+" ", " "+a.wants+" "):
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+a.wants+` ba'd"`)
			w.WriteHeader(http.StatusForbidden)
		default:
			return false
		}
		return true
	})
	mux.HandleFunc("/described", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"resource": %q, "authorization_servers": [%q]}`, a.mcp.URL, a.as.URL)
	})
	return a
}

func (a *asking) token(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = r.ParseForm()
	id, password, _ := r.BasicAuth()
	r.Form.Set("basic", id+":"+password)
	a.forms = append(a.forms, r.Form)
	ok := r.Form.Get("grant_type") == "authorization_code" && r.Form.Get("code") == secret+"-code"
	if r.Form.Get("grant_type") == "refresh_token" {
		if ok = a.refresh != "" && r.Form.Get("refresh_token") == a.refresh; !ok {
			a.access, a.refresh = "", ""
		}
	}
	if !ok {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"error": "invalid_grant", "error_description": "%s"}`, r.Form.Encode())
		return
	}
	a.n++
	a.access, a.refresh = fmt.Sprintf("%s-access-%d", secret, a.n), fmt.Sprintf("%s-refresh-%d", secret, a.n)
	_, _ = fmt.Fprintf(w, `{"access_token": %q, "refresh_token": %q, "token_type": "Bearer", "expires_in": %d}`, a.access, a.refresh, a.expires)
}

func (a *asking) set(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

func (a *asking) last() url.Values {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.forms[len(a.forms)-1]
}

// begin asks for an authorization and returns what the person's browser is asked to open.
func (a *asking) begin(t *testing.T, conn *pgx.Conn, name string, scope any) url.Values {
	t.Helper()
	u, err := url.Parse(servertest.Value(t, conn, `SELECT aidb.authorize_mcp_server($1, $2)`, name, scope))
	require.NoError(t, err)
	require.Equal(t, a.as.URL+"/authorize", u.Scheme+"://"+u.Host+u.Path)
	return u.Query()
}

// yes is where the browser is sent when the person says yes.
func (a *asking) yes(asked url.Values) string {
	a.set(func() { a.scope = asked.Get("scope") })
	return asked.Get("redirect_uri") + "?" + url.Values{"code": {secret + "-code"}, "state": {asked.Get("state")}, "iss": {a.as.URL}}.Encode()
}

const (
	askPerson = `oauth => '{"grant": "authorization_code"}'`
	finish    = `SELECT aidb.finish_mcp_authorization($1, $2)`
)

// A person authorizes a server once; from then on its tools are used, and tokens replaced, by whoever's agent it is.
func TestAuthorization_OfAPersonIsUsedAndRenewed(t *testing.T) {
	a, before := startAsking(t), len(server.Log())
	ann, bob, admin := server.Conn(t, "ann"), server.Conn(t, "bob"), server.Admin(t)
	register(t, ann, "asks", a.mcp.URL, askPerson)
	require.Contains(t, fails(t, ann, "08004", `SELECT aidb.refresh_mcp_tools('asks')`), "MCP server 'asks' is not authorized")
	require.Contains(t, fails(t, bob, "42501", `SELECT aidb.authorize_mcp_server('asks')`), "only its owner may authorize it")
	require.Contains(t, fails(t, bob, "42501", finish, "asks", "x"), "only its owner may authorize it")
	require.Contains(t, fails(t, ann, "55000", finish, "asks", "x"), "no authorization of MCP server 'asks' is under way")
	require.Contains(t, fails(t, ann, "22023", `SELECT aidb.authorize_mcp_server('asks', E'a\nb')`), "scope must be a list of OAuth scopes")

	first := a.begin(t, ann, "asks", nil)
	asked := a.begin(t, ann, "asks", nil)
	require.Equal(t, "registered", asked.Get("client_id"))
	require.Equal(t, "code", asked.Get("response_type"))
	require.Equal(t, "S256", asked.Get("code_challenge_method"))
	require.NotEmpty(t, asked.Get("code_challenge"))
	require.Equal(t, a.mcp.URL, asked.Get("resource"))
	require.Equal(t, "read offline_access", asked.Get("scope"))
	require.Equal(t, "http://127.0.0.1:27431/callback", asked.Get("redirect_uri"))
	yes := a.yes(asked)
	for _, c := range []struct{ state, message, address string }{
		{"22023", "does not belong to the authorization of MCP server 'asks' under way", a.yes(first)},
		{"22023", "does not belong to the authorization of MCP server 'asks' under way", "http://127.0.0.1:27431/callback?code=x"},
		{"22023", "redirected_url cannot be read", "http://[::1"},
		{"08004", "redirected_url is not from authorization server", strings.Replace(yes, "iss=", "iss=x", 1)},
		{"08004", "redirected_url is not from authorization server", strings.Replace(yes, "iss=", "ssi=", 1)},
		{"22023", "redirected_url has no code", strings.Replace(yes, "code=", "coat=", 1)},
		{"08004", "MCP server 'asks' was not authorized: access_denied", strings.Replace(yes, "code=", "error=access_denied&coat=", 1)},
	} {
		require.Contains(t, fails(t, ann, c.state, finish, "asks", c.address), c.message)
	}
	require.Equal(t, "1", servertest.Value(t, ann, finish, "asks", yes))
	require.Equal(t, "registered:"+secret+"-client", a.last().Get("basic"))
	require.Equal(t, a.mcp.URL, a.last().Get("resource"))
	require.NotEmpty(t, a.last().Get("code_verifier"))
	require.Contains(t, fails(t, ann, "55000", finish, "asks", yes), "no authorization of MCP server 'asks' is under way", "once")
	require.Equal(t, "called", text(t, ann, "x", `{}`))
	require.Equal(t, "called", text(t, bob, "x", `{}`))
	require.Equal(t, "read offline_access", servertest.Value(t, bob, `SELECT authorized_scope FROM aidb.mcp_registry WHERE name = 'asks' AND authorized_at <= now()`))

	// One that the server does not take any more is replaced, and so is one that has run out; also where the transaction that did
	// so came to nothing, though the old refresh token is of no use then.
	a.set(func() { a.access = "withdrawn" })
	require.Equal(t, "called", text(t, ann, "x", `{}`))
	require.Equal(t, secret+"-refresh-1", a.last().Get("refresh_token"))
	require.Equal(t, "called", text(t, bob, "x", `{}`), "what ann's session has got is there for his")
	a.set(func() { a.expires = 1; a.access = "withdrawn" })
	servertest.Exec(t, ann, "BEGIN")
	require.Equal(t, "called", text(t, ann, "x", `{}`))
	servertest.Exec(t, ann, "ROLLBACK")
	a.set(func() { a.expires = 3600 })
	require.Equal(t, "called", text(t, ann, "x", `{}`))
	require.Equal(t, secret+"-refresh-3", a.last().Get("refresh_token"))
	require.Equal(t, "called", text(t, bob, "x", `{}`))

	// A tool that wants more says what to ask for; what the server says is not put into a statement unseen.
	a.set(func() { a.wants = "write" })
	_, err := ann.Exec(t.Context(), runTool, "x", `{}`)
	require.ErrorContains(t, err, "wants scopes that it was not authorized with: write")
	require.Contains(t, hint(err), "SELECT aidb.authorize_mcp_server('asks', scope => 'read offline_access write').")
	servertest.Exec(t, ann, finish, "asks", a.yes(a.begin(t, ann, "asks", "read offline_access write")))
	require.Equal(t, "called", text(t, bob, "x", `{}`))

	// nothing of it is seen, and nobody but a superuser reads it
	fails(t, ann, "42501", `SELECT * FROM aidb_internal.mcp_authorizations`)
	require.NotContains(t, servertest.Value(t, admin, `SELECT string_agg(r::text, '') FROM aidb.mcp_registry r`)+
		servertest.Value(t, admin, `SELECT string_agg(r::text, '') FROM aidb.decisions r`), secret)
	require.Equal(t, "0", servertest.Value(t, admin, `SELECT count(*) FROM pg_extension e, unnest(e.extconfig) c
		WHERE e.extname = 'aidb' AND c = 'aidb_internal.mcp_authorizations'::regclass`))

	// a refresh token that is refused ends it
	a.set(func() { a.access, a.refresh = "", "" })
	_, err = ann.Exec(t.Context(), runTool, "x", `{}`)
	require.Equal(t, "08004", servertest.State(err))
	require.ErrorContains(t, err, "gives no token: invalid_grant (HTTP 400)")
	require.Contains(t, hint(err), "SELECT aidb.authorize_mcp_server('asks')")
	servertest.Exec(t, ann, `SELECT aidb.update_mcp_server('asks', oauth => '{"grant": "authorization_code", "scope": "other"}')`)
	require.Contains(t, fails(t, ann, "08004", runTool, "x", `{}`), "is not authorized")
	require.Equal(t, "other", a.begin(t, ann, "asks", nil).Get("scope"))
	// the redirects are in statements that failed, and so in the server's log; what the database keeps is not
	said := strings.ReplaceAll(server.Log()[before:], secret+"-code", "")
	require.NotContains(t, said, secret)
}

// Sessions whose token has run out at the same time use the refresh token once.
func TestAuthorization_IsRenewedOnce(t *testing.T) {
	a := startAsking(t)
	ann := server.Conn(t, "ann")
	register(t, ann, "asks_once", a.mcp.URL, askPerson)
	servertest.Exec(t, ann, finish, "asks_once", a.yes(a.begin(t, ann, "asks_once", nil)))
	var conns []*pgx.Conn
	for range 4 {
		conns = append(conns, server.Conn(t, "ann"))
	}
	a.set(func() { a.access = "withdrawn" })
	failed := make(chan error, len(conns))
	for _, conn := range conns {
		go func() {
			_, err := conn.Exec(t.Context(), runTool, "x", `{}`)
			failed <- err
		}()
	}
	for range conns {
		require.NoError(t, <-failed)
	}
	a.set(func() { require.Len(t, a.forms, 2) })
}

func TestAuthorization_CannotBegin(t *testing.T) {
	a := startAsking(t)
	a.noClient = true
	ann := server.Conn(t, "ann")
	for _, c := range []struct{ message, oauth string }{
		{"'grant' must be client_credentials, authorization_code or identity_assertion", `{"grant": "implicit"}`},
		{"'authorization_url' and 'token_url' belong together", `{"grant": "authorization_code", "client_id": "c", "token_url": "https://x.example/t"}`},
		{"'client_id' is missing", `{"grant": "authorization_code", "authorization_url": "https://x.example/a", "token_url": "https://x.example/t"}`},
		{"are for the grant authorization_code", `{"client_id": "c", "issuer": "https://x.example", "redirect_uri": "https://x.example/t"}`},
	} {
		require.Contains(t, fails(t, ann, "22023", `SELECT aidb.import_mcp_tools('asks_no', $1, oauth => $2::jsonb)`, a.mcp.URL, c.oauth), c.message)
	}
	require.Contains(t, fails(t, ann, "22023", `SELECT aidb.import_mcp_tools('asks_no', $1, headers => '{"client_secret": "x"}', `+
		`oauth => '{"grant": "authorization_code", "client_id": "c"}')`, a.mcp.URL), "oauth needs issuer or token_url")
	fails(t, ann, "42501", `SELECT aidb.import_mcp_tools('asks_no', 'https://169.254.169.254/mcp', `+askPerson+`)`)
	register(t, ann, "asks_none", a.mcp.URL, askPerson)
	require.Contains(t, fails(t, ann, "08004", `SELECT aidb.authorize_mcp_server('asks_none')`), "does not register clients by itself")
	servertest.Exec(t, ann, `SELECT aidb.update_mcp_server('asks_none', oauth => '{"grant": "authorization_code", "issuer": "https://other.example"}')`)
	require.Contains(t, fails(t, ann, "08004", `SELECT aidb.authorize_mcp_server('asks_none')`), "does not name 'other.example' as its authorization server")
	servertest.Exec(t, ann, `SELECT aidb.update_mcp_server('asks_none', oauth => '{"grant": "authorization_code", "client_id": "mine", "redirect_uri": "http://localhost:9/x"}')`)
	asked := a.begin(t, ann, "asks_none", nil)
	require.Equal(t, "mine", asked.Get("client_id"))
	require.Equal(t, "http://localhost:9/x", asked.Get("redirect_uri"))
	require.Equal(t, "1", servertest.Value(t, ann, finish, "asks_none", a.yes(asked)))
	require.Equal(t, "mine", a.last().Get("client_id"), "a public client")
	require.Empty(t, a.last().Get("client_secret"))
	open := fakemcp.Start()
	t.Cleanup(open.Close)
	open.Tool("asks_nobody", "Free.", nil, fakemcp.Echo)
	register(t, ann, "asks_nobody_server", open.URL("/mcp"))
	require.Contains(t, fails(t, ann, "55000", `SELECT aidb.authorize_mcp_server('asks_nobody_server')`), "is not authorized by a person")
}

func hint(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Hint
	}
	return ""
}
