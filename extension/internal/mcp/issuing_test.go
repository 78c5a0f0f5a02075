package mcp

// An authorization server, for the tests of grants.

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const clientsSecret = "s3cret-of-the-client"

// issuing is an MCP server that wants tokens, with the authorization server that gives them.
type issuing struct {
	mcp, as *httptest.Server

	mu       sync.Mutex
	requests []url.Values // for tokens; with the user of basic authentication as basic
	tokens   map[string]string
	n        int

	// what it does otherwise than usual; "" and nil: as usual
	challenge func() string
	token     http.HandlerFunc
	describe  func() string
	metadata  func() string
	expires   int
	wants     atomic.Pointer[string] // the scope without which nothing is admitted
}

func startIssuing(t *testing.T) *issuing {
	t.Helper()
	i := &issuing{tokens: map[string]string{}, expires: 3600}
	server := sdk.NewServer(&sdk.Implementation{Name: "s", Version: "0"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "x"}, func(_ context.Context, r *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "echo " + r.Extra.Header.Get("Authorization")}}}, nil, nil
	})
	streamable := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	mux := http.NewServeMux()
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		scope, known := i.tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
		i.mu.Unlock()
		wants := i.wants.Load()
		switch {
		case !known:
			header := "Bearer"
			if i.challenge != nil {
				header = i.challenge()
			}
			w.Header().Set("WWW-Authenticate", header)
			w.WriteHeader(http.StatusUnauthorized)
		case wants != nil && !strings.Contains(" "+scope+" ", " "+*wants+" "):
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+*wants+`"`)
			w.WriteHeader(http.StatusForbidden)
		default:
			streamable.ServeHTTP(w, r)
		}
	})
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if i.describe != nil {
			_, _ = w.Write([]byte(i.describe()))
			return
		}
		_, _ = fmt.Fprintf(w, `{"resource": %q, "authorization_servers": [%q], "scopes_supported": ["a", "b"]}`, i.mcp.URL+"/mcp", i.as.URL)
	})
	i.mcp = httptest.NewServer(mux)
	as := http.NewServeMux()
	as.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if i.metadata != nil {
			_, _ = w.Write([]byte(i.metadata()))
			return
		}
		_, _ = fmt.Fprintf(w, `{"issuer": %q, "token_endpoint": %q, "code_challenge_methods_supported": ["S256"]}`, i.as.URL, i.as.URL+"/token")
	})
	as.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		if user, password, ok := r.BasicAuth(); ok {
			r.Form.Set("basic", user+":"+password)
		}
		i.mu.Lock()
		i.requests = append(i.requests, r.Form)
		i.mu.Unlock()
		if i.token != nil {
			i.token(w, r)
			return
		}
		i.mu.Lock()
		i.n++
		token := fmt.Sprintf("token-%d", i.n)
		i.tokens[token] = r.Form.Get("scope")
		i.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token": %q, "token_type": "bearer", "expires_in": %d}`, token, i.expires)
	})
	i.as = httptest.NewServer(as)
	t.Cleanup(func() {
		i.mcp.CloseClientConnections()
		i.mcp.Close()
		i.as.Close()
	})
	return i
}

func (i *issuing) asked() []url.Values {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]url.Values(nil), i.requests...)
}

func (i *issuing) withdraw() {
	i.mu.Lock()
	defer i.mu.Unlock()
	clear(i.tokens)
}

func (i *issuing) server() *Server {
	return &Server{Name: "s", URL: i.mcp.URL + "/mcp", OAuth: &OAuth{ClientID: "client", Issuer: i.as.URL, clientSecret: clientsSecret}, Timeout: 20 * time.Second}
}
