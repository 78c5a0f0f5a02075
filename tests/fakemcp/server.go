// Package fakemcp has MCP servers for tests, on loopback: Server is made with the protocol's own library and behaves, as far
// as it is not told otherwise; Raw is an HTTP handler that may answer whatever it likes.
package fakemcp

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Server is a server with both transports: streamable HTTP at /mcp, SSE at /sse.
type Server struct {
	http *httptest.Server
	mcp  *mcp.Server

	mu        sync.Mutex
	headers   []http.Header
	calls     []string
	next      chan struct{} // closed by the next call
	cancelled int
	released  chan struct{}
}

// Start starts a server with the tools that Tools adds.
func Start() *Server { return start(nil) }

// StartAt starts one at an address, for the length of a test.
func StartAt(t testing.TB, address string) *Server {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := start(l)
	t.Cleanup(s.Close)
	return s
}

func start(at net.Listener) *Server {
	s := &Server{released: make(chan struct{}), next: make(chan struct{})}
	s.mcp = mcp.NewServer(&mcp.Implementation{Name: "fake", Version: "1"}, nil)
	s.Tools()
	mux := http.NewServeMux()
	mux.Handle("/mcp", mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.mcp }, nil))
	mux.Handle("/json", mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.mcp }, &mcp.StreamableHTTPOptions{JSONResponse: true}))
	mux.Handle("/sse", mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s.mcp }, nil))
	s.http = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.headers = append(s.headers, r.Header.Clone())
		s.mu.Unlock()
		mux.ServeHTTP(w, r)
	}))
	if at != nil {
		_ = s.http.Listener.Close()
		s.http.Listener = at
	}
	s.http.Start()
	return s
}

// URL is the address of one of the paths.
func (s *Server) URL(path string) string { return s.http.URL + path }

// Close stops the server and cuts its connections. A call of the tool wait, whose caller is gone then, would hold it up.
func (s *Server) Close() {
	s.http.CloseClientConnections()
	s.Release()
	s.http.Close()
}

// Headers are those of all requests so far.
func (s *Server) Headers() []http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]http.Header(nil), s.headers...)
}

// Calls are the names of the tools that were called so far.
func (s *Server) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.calls...)
}

// NextCall is closed when a tool is called from now on.
func (s *Server) NextCall() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next
}

// Cancelled is how many calls of the tool wait were told that they are cancelled.
func (s *Server) Cancelled() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cancelled
}

// Release ends the calls of the tool wait.
func (s *Server) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.released)
	s.released = make(chan struct{})
}

// Arguments are those of a call, as text.
type Arguments struct {
	Text  string `json:"text"`
	Bytes int    `json:"bytes"`
}

// Tool adds or replaces a tool. Connected sessions are told that the list has changed.
func (s *Server) Tool(name, description string, properties map[string]any, run func(ctx context.Context, r *mcp.CallToolRequest, a Arguments) (*mcp.CallToolResult, error)) {
	if properties == nil {
		properties = map[string]any{}
	}
	s.mcp.AddTool(&mcp.Tool{Name: name, Description: description, InputSchema: map[string]any{"type": "object", "properties": properties}},
		func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			s.mu.Lock()
			s.calls = append(s.calls, name)
			close(s.next)
			s.next = make(chan struct{})
			s.mu.Unlock()
			var a Arguments
			_ = json.Unmarshal(r.Params.Arguments, &a)
			return run(ctx, r, a)
		})
}

// Remove takes a tool away.
func (s *Server) Remove(name string) { s.mcp.RemoveTools(name) }

// Text is a result of one text.
func Text(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// Echo returns its argument.
func Echo(_ context.Context, _ *mcp.CallToolRequest, a Arguments) (*mcp.CallToolResult, error) {
	return Text("echo: " + a.Text), nil
}

// TextProperty is the schema of the argument text.
var TextProperty = map[string]any{"text": map[string]any{"type": "string"}}

// Tools adds the tools that a server has to begin with.
func (s *Server) Tools() {
	s.Tool("echo", "Echoes.", TextProperty, Echo)
	s.Tool("fail", "Fails.", TextProperty, func(_ context.Context, _ *mcp.CallToolRequest, a Arguments) (*mcp.CallToolResult, error) {
		r := Text("no: " + a.Text)
		r.IsError = true
		return r, nil
	})
	s.Tool("big", "Returns so many bytes.", map[string]any{"bytes": map[string]any{"type": "integer"}},
		func(_ context.Context, _ *mcp.CallToolRequest, a Arguments) (*mcp.CallToolResult, error) {
			return Text(strings.Repeat("0123456789", a.Bytes/10+1)[:a.Bytes]), nil
		})
	s.Tool("kinds", "Returns content of every kind.", nil, func(context.Context, *mcp.CallToolRequest, Arguments) (*mcp.CallToolResult, error) {
		size := int64(7)
		return &mcp.CallToolResult{Content: []mcp.Content{
			&mcp.TextContent{Text: "plain \x00 text"},
			&mcp.ImageContent{Data: []byte("image"), MIMEType: "image/png"},
			&mcp.AudioContent{Data: []byte("sound!"), MIMEType: "audio/wav"},
			&mcp.ResourceLink{URI: "file:///x", Name: "x", MIMEType: "text/plain", Description: "a link", Size: &size},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///t", MIMEType: "text/plain", Text: "inside"}},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///b", MIMEType: "application/zip", Blob: []byte("blob")}},
		}, StructuredContent: map[string]any{"n": 1}}, nil
	})
	s.Tool("structured", "Returns an object.", nil, func(context.Context, *mcp.CallToolRequest, Arguments) (*mcp.CallToolResult, error) {
		text := `{"big": 9007199254740993, "a": [1, null]}`
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, StructuredContent: json.RawMessage(text)}, nil
	})
	s.Tool("wait", "Waits until it is released or cancelled.", nil, func(ctx context.Context, _ *mcp.CallToolRequest, _ Arguments) (*mcp.CallToolResult, error) {
		s.mu.Lock()
		released := s.released
		s.mu.Unlock()
		select {
		case <-released:
			return Text("released"), nil
		case <-ctx.Done():
			s.mu.Lock()
			s.cancelled++
			s.mu.Unlock()
			return nil, ctx.Err()
		case <-time.After(time.Minute):
			return Text("nobody came"), nil
		}
	})
	s.Tool("progress", "Says how far it is.", nil, func(ctx context.Context, r *mcp.CallToolRequest, _ Arguments) (*mcp.CallToolResult, error) {
		for i := 1; i <= 3 && r.Params.GetProgressToken() != nil; i++ {
			_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: r.Params.GetProgressToken(), Progress: float64(i), Total: 3, Message: "step\u200b\nof work"})
		}
		_ = r.Session.Ping(ctx, nil) // answered after what came before it
		return Text("done"), nil
	})
	s.Tool("session", "Says which session it is.", nil, func(_ context.Context, r *mcp.CallToolRequest, _ Arguments) (*mcp.CallToolResult, error) {
		return Text(r.Session.ID()), nil
	})
}
