// Package mock is a model that answers at once and costs next to nothing: it looks at a request no closer than it must.
// The model's name says what it does: mock-r10-l50 asks for a query nine times and then answers, taking 50 ms a reply.
package mock

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Start serves on a free loopback port and returns the base URL.
func Start() (url string, stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: http.HandlerFunc(chat), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	return "http://" + listener.Addr().String() + "/v1", func() { _ = server.Close() }, nil
}

var served atomic.Int64

func number(model, key string, otherwise int) int {
	for part := range strings.SplitSeq(model, "-") {
		if digits, ok := strings.CutPrefix(part, key); ok {
			if n, err := strconv.Atoi(digits); err == nil {
				return n
			}
		}
	}
	return otherwise
}

func chat(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var in struct {
		Model    string
		Messages []struct {
			Role      string
			ToolCalls json.RawMessage `json:"tool_calls"`
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		http.Error(w, `{"error":{"message":"bad json"}}`, http.StatusBadRequest)
		return
	}
	asked := 0 // queries since the newest user message
	for i := len(in.Messages) - 1; i >= 0 && in.Messages[i].Role != "user"; i-- {
		if calls := in.Messages[i].ToolCalls; len(calls) > 2 && !bytes.Equal(calls, []byte("null")) {
			asked++
		}
	}
	n := served.Add(1)
	message, finish := `{"role":"assistant","content":"There are 1000 orders in the table."}`, "stop"
	if asked < number(in.Model, "r", 2)-1 {
		// Another query each time: an agent that repeats itself is stopped.
		message = fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"call_%d","type":"function","function":{"name":"run_sql_query","arguments":"{\"query\":\"SELECT count(*), %d AS round FROM orders\"}"}}]}`, n, asked+1)
		finish = "tool_calls"
	}
	reply := fmt.Sprintf(`{"id":"chatcmpl-%d","object":"chat.completion","created":%d,"model":%q,"choices":[{"index":0,"message":%s,"logprobs":null,"finish_reason":%q}],"usage":{"prompt_tokens":%d,"completion_tokens":20,"total_tokens":%d}}`,
		n, start.Unix(), in.Model, message, finish, len(body)/4, len(body)/4+20)
	if wait := time.Duration(number(in.Model, "l", 0))*time.Millisecond - time.Since(start); wait > 0 {
		time.Sleep(wait)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(reply)))
	_, _ = io.WriteString(w, reply)
}
