package openai

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/wire"
)

// fast retries at once.
var fast = wire.Retry{Base: time.Millisecond, Max: 2 * time.Millisecond}

// server answers the n-th request, from 0, with the n-th handler, and with the last from then on.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
	heads  []http.Header
	paths  []string
}

func serve(t testing.TB, handlers ...http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		n := len(s.bodies)
		s.bodies, s.heads, s.paths = append(s.bodies, string(b)), append(s.heads, r.Header.Clone()), append(s.paths, r.Method+" "+r.URL.String())
		s.mu.Unlock()
		handlers[min(n, len(handlers)-1)](w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bodies)
}

func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

var (
	hi    = says(200, message(`{"role":"assistant","content":"hi"}`))
	ask   = agent.Request{Messages: []msg{user("p")}}
	reset = func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
		}
	}
)

// open opens a model at the address; config may add members.
func open(t testing.TB, o wire.Options, url, more string, cred wire.Credentials) *Model {
	t.Helper()
	if o.Retry == (wire.Retry{}) {
		o.Retry = fast
	}
	tr := wire.NewTransport(o)
	t.Cleanup(tr.Close)
	m, err := NewProvider(tr).Open(agent.ModelRef{Name: "m", Config: json.RawMessage(`{"model":"gpt-6-sol","url":"` + url + `/v1"` + more + `}`)}, cred, nil)
	require.NoError(t, err)
	return m.(*Model)
}

func TestComplete_AnswersWithWhatTheServerSays(t *testing.T) {
	t.Parallel()
	s := serve(t, says(200, `{"model":"real","choices":[{"message":{"content":"see","tool_calls":[{"id":"c1","function":{"name":"count","arguments":{}}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":"5","completion_tokens":2.0}}`))
	m := open(t, wire.Options{}, s.URL, `,"temperature":0.5,"max_tokens":{"size":5}`, wire.Credentials{APIKey: "sk-1"})
	got, err := m.Complete(t.Context(), agent.Request{Messages: []msg{user("p")}, Tools: testTools})
	require.NoError(t, err)
	in, out := int64(5), int64(2)
	require.Equal(t, agent.Reply{
		Content: "see", ToolCalls: []tc{{ID: "c1", Name: "count", Arguments: "{}"}}, Finish: agent.FinishToolCalls, Model: "real",
		Usage: conversation.Usage{Input: &in, Output: &out},
	}, got)
	require.Equal(t, []string{"POST /v1/chat/completions"}, s.paths)
	require.Equal(t, "Bearer sk-1", s.heads[0].Get("Authorization"))
	require.Equal(t, "application/json", s.heads[0].Get("Content-Type"))
	require.Contains(t, s.bodies[0], `"model":"gpt-6-sol"`)
	require.Contains(t, s.bodies[0], `"temperature":0.5,"max_completion_tokens":5`)
	require.NotContains(t, s.bodies[0], "stream")
}

func TestComplete_NoCredentialsNoHeader(t *testing.T) {
	t.Parallel()
	s := serve(t, hi)
	_, err := open(t, wire.Options{}, s.URL, "", wire.Credentials{}).Complete(t.Context(), ask)
	require.NoError(t, err)
	require.Empty(t, s.heads[0].Values("Authorization"))
}

func TestComplete_Retries(t *testing.T) {
	t.Parallel()
	drop := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"choices":[`)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	for name, c := range map[string]struct {
		handlers []http.HandlerFunc
		requests int
		kind     fault.Kind
		text     string
	}{
		"none needed":       {[]http.HandlerFunc{hi}, 1, 0, ""},
		"500":               {[]http.HandlerFunc{says(500, "x"), hi}, 2, 0, ""},
		"three of a kind":   {[]http.HandlerFunc{says(529, "x"), says(408, "x"), says(429, "x"), hi}, 4, 0, ""},
		"error in 200":      {[]http.HandlerFunc{says(200, `{"error":{"code":429,"message":"x"}}`), hi}, 2, 0, ""},
		"empty body":        {[]http.HandlerFunc{says(200, ""), hi}, 2, 0, ""},
		"no choices":        {[]http.HandlerFunc{says(200, `{"choices":null}`), hi}, 2, 0, ""},
		"cut JSON":          {[]http.HandlerFunc{says(200, `{"choices":[`), hi}, 2, 0, ""},
		"reset":             {[]http.HandlerFunc{reset, hi}, 2, 0, ""},
		"dropped":           {[]http.HandlerFunc{drop, hi}, 2, 0, ""},
		"for ever":          {[]http.HandlerFunc{says(429, `{"error":{"message":"slow down"}}`)}, 4, fault.ModelRateLimited, "slow down (tried 4 times)"},
		"for ever, reset":   {[]http.HandlerFunc{reset}, 4, fault.ModelUnavailable, "tried 4 times"},
		"for ever, dropped": {[]http.HandlerFunc{drop}, 4, fault.ModelUnavailable, "broke in the middle"},
		"not a bad request": {[]http.HandlerFunc{says(400, `{"error":{"message":"no"}}`)}, 1, fault.ModelRejected, "HTTP 400: no"},
		"not a bad key":     {[]http.HandlerFunc{says(401, `{"error":{"message":"no"}}`)}, 1, fault.ModelAuth, "HTTP 401"},
		"not a full one":    {[]http.HandlerFunc{says(400, `{"error":{"message":"no","code":"context_length_exceeded"}}`)}, 1, fault.ModelOverflow, "context"},
		"not a poor one":    {[]http.HandlerFunc{says(429, `{"error":{"message":"no","code":"insufficient_quota"}}`)}, 1, fault.ModelQuota, "quota"},
		"not a page":        {[]http.HandlerFunc{says(200, "<html>Login please</html>")}, 1, fault.ModelProtocol, "answered with text/html, not JSON (HTTP 200): Login please"},
		"not a wrong path":  {[]http.HandlerFunc{says(404, "404 page not found\n")}, 1, fault.ModelRejected, "HTTP 404: 404 page not found"},
		"not a refusal":     {[]http.HandlerFunc{says(200, message(`{"content":null,"refusal":"I cannot assist"}`))}, 1, fault.ModelRefused, "refused to answer: I cannot assist"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, c.handlers...)
			m := open(t, wire.Options{}, s.URL, "", wire.Credentials{})
			got, err := m.Complete(t.Context(), ask)
			require.Equal(t, c.requests, s.count())
			if c.kind == 0 {
				require.NoError(t, err)
				require.Equal(t, "hi", got.Content)
				require.Len(t, got.Retries, c.requests-1)
				return
			}
			require.Equal(t, c.kind, fault.KindOf(err), "%v", err)
			require.ErrorContains(t, err, c.text)
		})
	}
}

func TestComplete_WaitsAsTold(t *testing.T) {
	t.Parallel()
	limited := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After-Ms", "120")
		w.WriteHeader(429)
	}
	s := serve(t, limited, hi)
	start := time.Now()
	_, err := open(t, wire.Options{}, s.URL, "", wire.Credentials{}).Complete(t.Context(), ask)
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(start), 120*time.Millisecond)

	forLong := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(429)
	}
	s = serve(t, forLong, hi)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	start = time.Now()
	_, err = open(t, wire.Options{}, s.URL, "", wire.Credentials{}).Complete(ctx, ask)
	require.Less(t, time.Since(start), 5*time.Second)
	require.True(t, fault.Is(err, fault.ModelRateLimited))
	var f *fault.Error
	require.True(t, errors.As(err, &f))
	require.Contains(t, f.Hint, "1h0m0s")
	require.Equal(t, 1, s.count())
	_, err = open(t, wire.Options{}, s.URL, "", wire.Credentials{}).Complete(t.Context(), ask)
	require.NoError(t, err, "the second request is answered")
}

func TestComplete_EndsWithTheContext(t *testing.T) {
	t.Parallel()
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	trickle := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, " ")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	for name, h := range map[string]http.HandlerFunc{"no headers": hang, "a trickle": trickle, "retries": says(500, "")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, h)
			m := open(t, wire.Options{Retry: wire.Retry{Tries: 1000, Base: 50 * time.Millisecond}}, s.URL, "", wire.Credentials{})
			ctx, cancel := context.WithTimeout(t.Context(), 80*time.Millisecond)
			defer cancel()
			start := time.Now()
			_, err := m.Complete(ctx, ask)
			require.Less(t, time.Since(start), 5*time.Second)
			if name != "retries" {
				require.True(t, fault.Is(err, fault.Timeout), "%v", err)
				require.ErrorContains(t, err, "timeout")
				require.ErrorIs(t, err, context.DeadlineExceeded)
			}
			ctx, cancel = context.WithCancel(t.Context())
			time.AfterFunc(30*time.Millisecond, cancel)
			_, err = m.Complete(ctx, ask)
			require.True(t, fault.Is(err, fault.Canceled), "%v", err)
			require.ErrorIs(t, err, context.Canceled)
		})
	}
	s := serve(t, trickle)
	_, err := open(t, wire.Options{RequestTimeout: 30 * time.Millisecond}, s.URL, "", wire.Credentials{}).Complete(t.Context(), ask)
	require.True(t, fault.Is(err, fault.ModelUnavailable))
	require.ErrorContains(t, err, "timeout: no complete answer within 30ms (tried 4 times)")
}

func TestComplete_BodiesAreCapped(t *testing.T) {
	t.Parallel()
	big := message(`{"content":"` + strings.Repeat("x", 4<<20) + `"}`)
	bomb := func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "gzip", r.Header.Get("Accept-Encoding"))
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		for range 64 {
			if _, err := io.WriteString(z, strings.Repeat("x", 1<<20)); err != nil {
				return
			}
		}
		_ = z.Close()
	}
	small := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, message(`{"content":"hi"}`))
		_ = z.Close()
	}
	brotli := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "br")
		_, _ = io.WriteString(w, "xx")
	}
	o := wire.Options{MaxBodyBytes: 1 << 20}
	for _, h := range []http.HandlerFunc{says(200, big), bomb} {
		s := serve(t, h)
		_, err := open(t, o, s.URL, "", wire.Credentials{}).Complete(t.Context(), ask)
		require.ErrorContains(t, err, "larger than the limit of 1 MiB")
		require.Equal(t, 1, s.count())
	}
	s := serve(t, small)
	got, err := open(t, o, s.URL, "", wire.Credentials{}).Complete(t.Context(), ask)
	require.NoError(t, err)
	require.Equal(t, "hi", got.Content)
	s = serve(t, brotli)
	_, err = open(t, o, s.URL, "", wire.Credentials{}).Complete(t.Context(), ask)
	require.ErrorContains(t, err, "content encoding br")
	s = serve(t, says(400, `{"error":{"message":"`+strings.Repeat("x", 4<<20)+`"}}`))
	_, err = open(t, wire.Options{}, s.URL, "", wire.Credentials{}).Complete(t.Context(), ask)
	require.ErrorContains(t, err, "400")
	require.Less(t, len(err.Error()), 2000)
	s = serve(t, hi)
	_, err = open(t, o, s.URL, "", wire.Credentials{}).Complete(t.Context(), agent.Request{Messages: []msg{user(strings.Repeat("x", 1<<20))}})
	require.True(t, fault.Is(err, fault.ModelOverflow))
	require.Zero(t, s.count())
}

func TestComplete_ShowsNoSecret(t *testing.T) {
	t.Parallel()
	key := "fixture-secret-0001"
	for _, h := range []http.HandlerFunc{
		says(401, `{"error":"invalid token 'Bearer `+key+`'"}`),
		says(400, `{"error":{"message":"`+strings.Repeat("y", 990)+key+`"}}`),
		says(200, `{"error":{"message":"`+key+`"}}`),
		says(200, "<html>"+key+"</html>"),
		says(200, strings.Repeat("z", 190)+key),
		func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Request-Id", key)
			w.WriteHeader(400)
		},
	} {
		s := serve(t, h)
		_, err := open(t, wire.Options{}, s.URL, "", wire.Credentials{APIKey: key}).Complete(t.Context(), ask)
		var f *fault.Error
		require.True(t, errors.As(err, &f))
		require.NotContains(t, f.Message+f.Detail+f.Hint, "fixture")
	}
	s := serve(t, says(200, message(`{"content":"your key is `+key+`"}`)))
	got, err := open(t, wire.Options{}, s.URL, "", wire.Credentials{APIKey: key}).Complete(t.Context(), ask)
	require.NoError(t, err)
	require.Equal(t, "your key is [redacted]", got.Content)
}

func TestComplete_UnreachableServers(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	closed := l.Addr().String()
	require.NoError(t, l.Close())
	_, err = open(t, wire.Options{}, "http://"+closed, "", wire.Credentials{}).Complete(t.Context(), ask)
	require.True(t, fault.Is(err, fault.ModelUnavailable))
	require.ErrorContains(t, err, "could not get an answer from model server http://"+closed+"/v1/chat/completions")
	require.ErrorContains(t, err, "refused (tried 4 times)")
	require.NotContains(t, err.Error(), "Post ")

	_, err = open(t, wire.Options{}, "https://no-such-host.invalid", "", wire.Credentials{}).Complete(t.Context(), ask)
	require.True(t, fault.Is(err, fault.ModelUnavailable))
	require.ErrorContains(t, err, "cannot be resolved")

	s := serve(t, hi)
	_, err = open(t, wire.Options{}, strings.Replace(s.URL, "http:", "https:", 1), "", wire.Credentials{}).Complete(t.Context(), ask)
	require.ErrorContains(t, err, "does not speak TLS")
}
