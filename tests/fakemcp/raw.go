package fakemcp

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Message is a request of the client as a Raw sees it.
type Message struct {
	Method string          `json:"method"`
	ID     json.RawMessage `json:"id"`
	Params json.RawMessage `json:"params"`
	// Answer is what it says to a request of the server's own: a message without a method.
	Answer json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// Result is an answer to the message.
func (m Message) Result(result string) string {
	return `{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + result + `}`
}

// Raw is a streamable HTTP server of which each answer can be anything. What Answer leaves alone is answered as a server would
// that has one tool, x, and sessions.
type Raw struct {
	*httptest.Server
	// Answer returns true when it has answered.
	Answer func(m Message, w http.ResponseWriter, r *http.Request) bool

	mu       sync.Mutex
	methods  []string
	requests []*http.Request
}

// StartRaw starts one for the length of a test.
func StartRaw(t testing.TB, answer func(m Message, w http.ResponseWriter, r *http.Request) bool) *Raw {
	t.Helper()
	s := &Raw{Answer: answer}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// Methods are what was asked of it, in order: names of the protocol's methods, else those of HTTP.
func (s *Raw) Methods() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.methods...)
}

// Requests are the requests so far.
func (s *Raw) Requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*http.Request(nil), s.requests...)
}

func (s *Raw) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	m := Message{Method: r.Method}
	if r.Method == http.MethodPost {
		m.Method = ""
		if json.Unmarshal(body, &m) != nil {
			http.Error(w, "not JSON", http.StatusBadRequest)
			return
		}
	}
	s.mu.Lock()
	s.methods, s.requests = append(s.methods, m.Method), append(s.requests, r)
	s.mu.Unlock()
	if s.Answer != nil && s.Answer(m, w, r) {
		return
	}
	switch m.Method {
	case "initialize":
		w.Header().Set("Mcp-Session-Id", "one")
		JSON(w, m.Result(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"raw","version":"0"}}`))
	case "tools/list":
		JSON(w, m.Result(`{"tools":[{"name":"x","description":"A tool.","inputSchema":{"type":"object"}}]}`))
	case "tools/call":
		JSON(w, m.Result(`{"content":[{"type":"text","text":"called"}]}`))
	case http.MethodGet:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	default:
		if m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		JSON(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"error":{"code":-32601,"message":"no such method"}}`)
	}
}

// JSON answers with a JSON text.
func JSON(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, text)
}

// Events answers with pieces of an event stream, each flushed.
func Events(w http.ResponseWriter, pieces ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, p := range pieces {
		_, _ = io.WriteString(w, p)
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
	}
}
