package openai

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/egress"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/wire"
)

func TestOpen_ObeysEgress(t *testing.T) {
	t.Parallel()
	list, err := egress.Parse("api.example.com")
	require.NoError(t, err)
	tr := wire.NewTransport(wire.Options{Egress: egress.Policy{List: list}})
	p := NewProvider(tr)
	_, err = p.Open(agent.ModelRef{Name: "m", Config: json.RawMessage(`{"model":"x","url":"http://127.0.0.1:9/v1"}`)}, wire.Credentials{}, nil)
	require.True(t, fault.Is(err, fault.Privilege))
	require.EqualError(t, err, "model 'm' cannot be used: host '127.0.0.1' is not allowed by aidb.egress_allowlist")
	tr.Reconfigure(wire.Options{})
	_, err = p.Open(agent.ModelRef{Name: "m", Config: json.RawMessage(`{"model":"x","url":"http://10.0.0.1/v1"}`)}, wire.Credentials{}, nil)
	require.ErrorContains(t, err, "plain HTTP")
	_, err = p.Open(agent.ModelRef{Name: "m", Config: json.RawMessage(`{"model":"x"}`)}, wire.Credentials{APIKey: "a\nb"}, nil)
	require.ErrorContains(t, err, "model 'm' cannot be used: credentials cannot be used")

	to := serve(t, hi)
	from := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, to.URL+"/moved", http.StatusTemporaryRedirect)
	})
	got, err := open(t, wire.Options{}, from.URL, "", wire.Credentials{APIKey: "k"}).Complete(t.Context(), ask)
	require.NoError(t, err)
	require.Equal(t, "hi", got.Content)
	require.Equal(t, from.bodies[0], to.bodies[0])
	away := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://169.254.169.254/latest", http.StatusTemporaryRedirect)
	})
	_, err = open(t, wire.Options{Egress: egress.Policy{AllowInsecure: true}}, away.URL, "", wire.Credentials{}).Complete(t.Context(), ask)
	require.True(t, fault.Is(err, fault.Privilege), "%v", err)
	require.Equal(t, 1, away.count())
}

func TestOpen_TLS(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(hi)
	defer s.Close()
	s.Config.ErrorLog = nil
	_, err := open(t, wire.Options{}, s.URL, "", wire.Credentials{}).Complete(t.Context(), ask)
	require.ErrorContains(t, err, "certificate is not trusted")
	require.NotContains(t, err.Error(), "tried")

	tr := wire.NewTransport(wire.Options{})
	p := NewProvider(tr)
	_, err = p.Open(agent.ModelRef{Name: "m", Config: json.RawMessage(`{"model":"x","tls_config":{"insecure_skip_verify":true}}`)}, wire.Credentials{}, nil)
	require.ErrorContains(t, err, "insecure_skip_verify is not allowed")
	// Any user may name a file: neither a pipe nor an endless device may hold the session up.
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, file := range []string{"/no/such/file", "/dev/zero", pipe} {
		_, err = p.Open(agent.ModelRef{Name: "m", Config: json.RawMessage(`{"model":"x","tls_config":{"ca_path":"` + file + `"}}`)}, wire.Credentials{}, nil)
		require.ErrorContains(t, err, "no certificate could be read from '"+file+"'")
	}

	_, err = open(t, wire.Options{AllowInsecureTLS: true}, s.URL, `,"tls_config":{"insecure_skip_verify":true}`, wire.Credentials{}).Complete(t.Context(), ask)
	require.NoError(t, err)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600))
	_, err = open(t, wire.Options{}, s.URL, `,"tls_config":{"ca_path":"`+ca+`"}`, wire.Credentials{}).Complete(t.Context(), ask)
	require.NoError(t, err)
	_, err = open(t, wire.Options{CAFile: ca}, s.URL, "", wire.Credentials{}).Complete(t.Context(), ask)
	require.NoError(t, err)
}

func TestProvider_SharesConnections(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(hi)
	var conns atomic.Int64
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	tr := wire.NewTransport(wire.Options{})
	p := NewProvider(tr)
	defer tr.Close()
	list, err := egress.Parse("127.0.0.1")
	require.NoError(t, err)
	again, err := egress.Parse(" 127.0.0.1,")
	require.NoError(t, err)
	ref := agent.ModelRef{Name: "m", Config: json.RawMessage(`{"model":"x","url":"` + s.URL + `"}`)}
	for i := range 4 {
		m, err := p.Open(ref, wire.Credentials{}, nil)
		require.NoError(t, err)
		_, err = m.Complete(t.Context(), ask)
		require.NoError(t, err)
		switch i {
		case 0:
			tr.Reconfigure(wire.Options{MaxBodyBytes: 1 << 20})
			require.EqualValues(t, 1, conns.Load())
		case 1:
			require.EqualValues(t, 1, conns.Load())
			tr.Reconfigure(wire.Options{Egress: egress.Policy{List: list}})
		case 2:
			require.EqualValues(t, 2, conns.Load(), "a new policy must not use old connections")
			tr.Reconfigure(wire.Options{Egress: egress.Policy{List: again}})
		case 3:
			require.EqualValues(t, 2, conns.Load())
		}
	}
}

// turnstile is a gate that tells what it was asked.
type turnstile struct {
	mu     sync.Mutex
	keys   map[string]int
	limits wire.Limits
	tokens int64
	used   []int64
	paused time.Duration
	refuse error
}

func (g *turnstile) Needed(l wire.Limits) bool { return l != (wire.Limits{}) }

func (g *turnstile) Enter(ctx context.Context, key string, l wire.Limits, tokens int64) (func(int64), error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refuse != nil {
		return nil, g.refuse
	}
	g.keys[key]++
	g.limits, g.tokens = l, tokens
	return func(used int64) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.used = append(g.used, used)
	}, ctx.Err()
}

func (g *turnstile) Pause(_ string, d time.Duration) { g.paused = d }

func TestModel_WaitsForItsTurn(t *testing.T) {
	t.Parallel()
	s := serve(t, says(429, `{"error":{"message":"slow down, try again in 2ms"}}`), says(200, `{"choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":7,"completion_tokens":4}}`))
	tr := wire.NewTransport(wire.Options{Retry: fast})
	defer tr.Close()
	g := &turnstile{keys: map[string]int{}}
	ref := agent.ModelRef{Name: "m", Config: json.RawMessage(`{"model":"x","url":"` + s.URL + `","max_concurrent_requests":2,"requests_per_minute":60,"tokens_per_minute":1000}`)}
	m, err := NewProvider(tr).Open(ref, wire.Credentials{APIKey: "sk-secret"}, g)
	require.NoError(t, err)
	got, err := m.Complete(t.Context(), ask)
	require.NoError(t, err)
	require.Equal(t, "hi", got.Content)
	require.Equal(t, wire.Limits{Concurrent: 2, Requests: 60, Tokens: 1000}, g.limits)
	require.Equal(t, []int64{0, 11}, g.used, "each try is a request")
	require.Equal(t, 2*time.Millisecond, g.paused, "what one was told holds for all")
	require.Positive(t, g.tokens)
	for key, n := range g.keys {
		require.Equal(t, 2, n)
		require.NotContains(t, key, "secret")
	}

	g.refuse = fault.New(fault.Busy, "no")
	_, err = m.Complete(t.Context(), ask)
	require.True(t, fault.Is(err, fault.Busy))
	_, err = NewProvider(tr).Open(agent.ModelRef{Name: "m", Config: json.RawMessage(`{"model":"x","tokens_per_minute":0}`)}, wire.Credentials{}, g)
	require.ErrorContains(t, err, "tokens_per_minute must be above zero")
}

func TestProvider_LearnsADialect(t *testing.T) {
	t.Parallel()
	picky := func(w http.ResponseWriter, r *http.Request) {
		var b map[string]any
		_ = json.NewDecoder(r.Body).Decode(&b)
		hi(w, r)
	}
	refuse := says(400, wrapped("Unrecognized request argument supplied: max_completion_tokens", "null"))
	s := serve(t, refuse, picky)
	tr := wire.NewTransport(wire.Options{Retry: wire.Retry{Tries: -1}})
	p := NewProvider(tr)
	defer tr.Close()
	ref := agent.ModelRef{Name: "m", Config: json.RawMessage(`{"model":"x","url":"` + s.URL + `","max_tokens":7}`)}
	for range 2 {
		m, err := p.Open(ref, wire.Credentials{}, nil)
		require.NoError(t, err)
		_, err = m.Complete(t.Context(), ask)
		require.NoError(t, err)
	}
	require.Equal(t, 3, s.count(), "the second model knows already")
	require.Contains(t, s.bodies[0], `"max_completion_tokens":7`)
	require.Contains(t, s.bodies[1], `"max_tokens":7`)
	require.Contains(t, s.bodies[2], `"max_tokens":7`)

	// A server that is never content gets a few tries, not an endless dance.
	s = serve(t, refuse, says(400, wrapped("Unrecognized request argument supplied: max_tokens", "null")), refuse, says(400, wrapped("Unrecognized request argument supplied: max_tokens", "null")))
	m := open(t, wire.Options{}, s.URL, `,"max_tokens":7`, wire.Credentials{})
	_, err := m.Complete(t.Context(), ask)
	require.True(t, fault.Is(err, fault.ModelRejected))
	require.LessOrEqual(t, s.count(), 1+maxAdaptations)
}

func TestModel_SendsBackSignatures(t *testing.T) {
	t.Parallel()
	call := func(id string) http.HandlerFunc {
		return says(200, message(`{"content":null,"reasoning_content":"because `+id+`","tool_calls":[{"id":"`+id+`","function":{"name":"count","arguments":"{}"},"extra_content":{"sig":"`+id+`"}}]}`))
	}
	s := serve(t, call("c1"), call("c2"), hi)
	m := open(t, wire.Options{}, s.URL, "", wire.Credentials{})
	messages := []msg{user("p")}
	for range 3 {
		got, err := m.Complete(t.Context(), agent.Request{Messages: messages, Tools: testTools})
		require.NoError(t, err)
		messages = append(messages, msg{Role: conversation.Assistant, Content: got.Content, ToolCalls: got.ToolCalls})
		for _, c := range got.ToolCalls {
			messages = append(messages, result(c.ID, "1"))
		}
	}
	require.Contains(t, s.bodies[1], `"reasoning_content":"because c1"`)
	require.Contains(t, s.bodies[1], `"extra_content":{"sig":"c1"}`)
	require.Contains(t, s.bodies[2], `"reasoning_content":"because c1"`)
	require.Contains(t, s.bodies[2], `"extra_content":{"sig":"c2"}`)
}

func TestValidate(t *testing.T) {
	t.Parallel()
	list := says(200, `{"object":"list","data":[{"id":"x"}]}`)
	for name, c := range map[string]struct {
		handlers []http.HandlerFunc
		paths    string
		text     string
	}{
		"a list":              {[]http.HandlerFunc{list}, "GET /v1/models", ""},
		"a bare list":         {[]http.HandlerFunc{says(200, `[]`)}, "GET /v1/models", ""},
		"a bad key":           {[]http.HandlerFunc{says(401, `{"error":"no"}`)}, "GET /v1/models", "did not accept the credentials (HTTP 401): no"},
		"a page":              {[]http.HandlerFunc{says(200, "<html>x</html>")}, "GET /v1/models", "not JSON"},
		"an error in 200":     {[]http.HandlerFunc{says(200, `{"error":{"message":"no","code":401}}`)}, "GET /v1/models", "no"},
		"a failure that goes": {[]http.HandlerFunc{says(503, ""), list}, "GET /v1/models|GET /v1/models", ""},
		"no list, a reply":    {[]http.HandlerFunc{says(404, ""), hi}, "GET /v1/models|POST /v1/chat/completions", ""},
		"no list, a refusal":  {[]http.HandlerFunc{says(405, ""), says(200, message(`{"refusal":"no"}`))}, "GET /v1/models|POST /v1/chat/completions", ""},
		"neither":             {[]http.HandlerFunc{says(404, "")}, "GET /v1/models|POST /v1/chat/completions", "HTTP 404"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, c.handlers...)
			err := open(t, wire.Options{}, s.URL, "", wire.Credentials{APIKey: "k"}).Validate(t.Context())
			require.Equal(t, c.paths, strings.Join(s.paths, "|"))
			require.Equal(t, "Bearer k", s.heads[0].Get("Authorization"))
			if c.text == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.text)
			}
			if len(s.bodies) > 1 && s.bodies[1] != "" {
				require.Contains(t, s.bodies[1], `"max_tokens":1`)
			}
		})
	}
}

func TestProvider_UsesTheProxy(t *testing.T) {
	t.Parallel()
	var asked atomic.Value
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(fmt.Sprint(r.Method, " ", r.URL.String(), " ", r.Host))
		hi(w, r)
	}))
	defer proxy.Close()
	m := open(t, wire.Options{Proxy: egress.Proxy{HTTP: proxy.URL}, Egress: egress.Policy{AllowInsecure: true}}, "http://model.example", "", wire.Credentials{})
	_, err := m.Complete(t.Context(), ask)
	require.NoError(t, err)
	require.Equal(t, "POST http://model.example/v1/chat/completions model.example", asked.Load())
}

// wrapped puts a message into the standard error body.
func wrapped(message, code string) string {
	return string(append(wire.AppendString([]byte(`{"error":{"message":`), message), `,"type":"invalid_request_error","param":null,"code":`+code+`}}`...))
}
