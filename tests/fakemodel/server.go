package fakemodel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Brain answers a request from what it says, without a memory of its own.
type Brain func(Request) Reply

// Options of a server; the zero value is a free port and no recording limit.
type Options struct {
	Addr    string // loopback address, "127.0.0.1:0" when empty
	Default Brain  // what answers a model without script; nil = HTTP 404, as a server without that model says it
	// Forget stops the recording of requests (benchmarks, stress tests with large prompts).
	Forget bool
}

// Server is a running fake. All its methods may be called from any goroutine.
type Server struct {
	listener net.Listener
	http     *http.Server
	opts     Options

	mu        sync.Mutex
	changed   chan struct{} // closed and replaced whenever something below changes
	scripts   map[string][]Reply
	position  map[string]int
	brains    map[string]Brain
	requests  []Request
	count     int
	inFlight  map[int]Request // by number
	abandoned map[string]int
}

// Start listens and serves until Close.
func Start(opts Options) (*Server, error) {
	if opts.Addr == "" {
		opts.Addr = "127.0.0.1:0"
	}
	host, _, err := net.SplitHostPort(opts.Addr)
	if err != nil {
		return nil, fmt.Errorf("address %q: %w", opts.Addr, err)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("address %q is not a loopback address", opts.Addr)
	}
	listener, err := net.Listen("tcp", opts.Addr)
	if err != nil {
		return nil, err
	}
	s := &Server{
		listener: listener, opts: opts, changed: make(chan struct{}),
		scripts: map[string][]Reply{}, position: map[string]int{}, brains: map[string]Brain{},
		inFlight: map[int]Request{}, abandoned: map[string]int{},
	}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.http.Serve(listener) }()
	return s, nil
}

// URL is the base URL for a client, with /v1.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() + "/v1" }

// Close ends the server and every connection.
func (s *Server) Close() { _ = s.http.Close() }

// Script gives a model its replies: the n-th request gets the n-th, the last one repeats. Calling it again starts anew.
func (s *Server) Script(model string, replies ...Reply) {
	s.update(func() { s.scripts[model], s.position[model] = replies, 0 })
}

// Answer gives a model a brain.
func (s *Server) Answer(model string, b Brain) { s.update(func() { s.brains[model] = b }) }

// Requests lists what was sent to a model ("" = to any), oldest first.
func (s *Server) Requests(model string) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Request
	for _, r := range s.requests {
		if model == "" || r.Model == model {
			out = append(out, r)
		}
	}
	return out
}

// Saw says whether a request of that model with that prompt has arrived.
func (s *Server) Saw(model, prompt string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.requests) - 1; i >= 0; i-- { // mostly asked about the newest
		if s.requests[i].Model == model && s.requests[i].LastUser() == prompt {
			return true
		}
	}
	return false
}

// Served is how many requests arrived, recorded or not.
func (s *Server) Served() int { s.mu.Lock(); defer s.mu.Unlock(); return s.count }

// InFlight is how many requests of a model are neither answered nor abandoned.
func (s *Server) InFlight(model string) int {
	return s.held(func(r Request) bool { return r.Model == model })
}

// Holds says whether a request of that model with that prompt is in flight.
func (s *Server) Holds(model, prompt string) bool {
	return s.held(func(r Request) bool { return r.Model == model && r.LastUser() == prompt }) > 0
}

func (s *Server) held(match func(Request) bool) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.inFlight {
		if match(r) {
			n++
		}
	}
	return n
}

// Abandoned is how many requests of a model ended because the client went away.
func (s *Server) Abandoned(model string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.abandoned[model]
}

// WaitFor returns when the condition holds, or with an error when the context ends first. The condition is looked at
// again after each change of the server's state and may call the methods above.
func (s *Server) WaitFor(ctx context.Context, what string, condition func() bool) error {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if condition() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		}
	}
}

// update changes the state under the lock and wakes everyone who waits for a change.
func (s *Server) update(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	close(s.changed)
	s.changed = make(chan struct{})
}

// paths are those of the APIs that it speaks.
var paths = []string{"/chat/completions", "/messages", "/responses"}

// ServeHTTP is the endpoints.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/models"):
		writeJSON(w, 200, mustJSON(map[string]any{"object": "list", "data": s.models()}))
	case r.Method == http.MethodPost && slices.ContainsFunc(paths, func(p string) bool { return strings.HasSuffix(r.URL.Path, p) }):
		s.chat(w, r)
	default:
		writeJSON(w, 404, mustJSON(map[string]any{"error": map[string]any{"message": "no such path: " + r.URL.Path}}))
	}
}

func (s *Server) models() []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []map[string]any{}
	for name := range s.scripts {
		list = append(list, map[string]any{"id": name, "object": "model"})
	}
	for name := range s.brains {
		list = append(list, map[string]any{"id": name, "object": "model"})
	}
	if len(list) == 0 && s.opts.Default != nil {
		list = append(list, map[string]any{"id": "any", "object": "model"})
	}
	return list
}

func (s *Server) chat(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	request, err := decode(body)
	if err != nil {
		writeJSON(w, 400, Fail(400, "the body is not JSON: "+err.Error()).Body)
		return
	}
	request.Path, request.Header = r.URL.Path, r.Header.Clone()

	var reply Reply
	var brain Brain
	s.update(func() {
		s.count++
		request.Number = s.count
		s.inFlight[request.Number] = request
		if !s.opts.Forget {
			s.requests = append(s.requests, request)
		}
		reply, brain = s.next(request.Model)
	})
	if brain != nil {
		reply = brain(request)
	}
	err = reply.send(w, r, request)
	s.update(func() {
		delete(s.inFlight, request.Number)
		if errors.Is(err, errAbandoned) {
			s.abandoned[request.Model]++
		}
	})
	if errors.Is(err, http.ErrAbortHandler) {
		panic(http.ErrAbortHandler) // net/http's way to say: drop the connection
	}
}

// next picks what answers a model. The caller holds the lock.
func (s *Server) next(model string) (Reply, Brain) {
	for _, name := range []string{model, "*"} {
		if b, ok := s.brains[name]; ok {
			return Reply{}, b
		}
		if script := s.scripts[name]; len(script) > 0 {
			at := s.position[name]
			s.position[name]++
			return script[min(at, len(script)-1)], nil
		}
	}
	if s.opts.Default != nil {
		return Reply{}, s.opts.Default
	}
	return Fail(404, fmt.Sprintf("The model `%s` does not exist", model)), nil
}

func writeJSON(w http.ResponseWriter, status int, body json.RawMessage) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
