package fakemodel

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

var errAbandoned = errors.New("the client went away")

// send answers one request as the reply says. It returns errAbandoned when the client left first, and
// http.ErrAbortHandler when the connection is to be dropped.
func (r Reply) send(w http.ResponseWriter, in *http.Request, request Request) error {
	gone := in.Context().Done()
	if d := r.delay(); d > 0 {
		select {
		case <-time.After(d):
		case <-gone:
			return errAbandoned
		}
	}
	if r.Gate != nil {
		select {
		case <-r.Gate:
		case <-gone:
			return errAbandoned
		}
	}
	if r.Hang {
		<-gone
		return errAbandoned
	}
	if r.Close {
		return http.ErrAbortHandler
	}

	body, kind := r.payload(request)
	for name, value := range r.Header {
		w.Header().Set(name, value)
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	status := r.Status
	if status == 0 {
		status = http.StatusOK
	}
	w.WriteHeader(status)
	switch {
	case r.CloseAfter > 0:
		_, _ = w.Write(body[:min(r.CloseAfter, len(body))])
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		return http.ErrAbortHandler
	case r.Trickle > 0:
		return trickle(w, body, r.Trickle, gone)
	}
	if _, err := w.Write(body); err != nil {
		return errAbandoned
	}
	return nil
}

func trickle(w http.ResponseWriter, body []byte, pause time.Duration, gone <-chan struct{}) error {
	const step = 16
	for len(body) > 0 {
		n := min(step, len(body))
		if _, err := w.Write(body[:n]); err != nil {
			return errAbandoned
		}
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		body = body[n:]
		select {
		case <-time.After(pause):
		case <-gone:
			return errAbandoned
		}
	}
	return nil
}

func (r Reply) payload(request Request) (body []byte, contentType string) {
	switch {
	case r.Raw != "":
		if r.RawType == "" {
			return []byte(r.Raw), "text/html; charset=utf-8"
		}
		return []byte(r.Raw), r.RawType
	case r.Body != nil:
		return r.Body, "application/json"
	}
	switch {
	case strings.HasSuffix(request.Path, "/messages"):
		return r.message(request), "application/json"
	case strings.HasSuffix(request.Path, "/responses"):
		return r.response(request), "application/json"
	}
	return r.completion(request), "application/json"
}

// completion is the reply as a chat.completion object.
func (r Reply) completion(request Request) []byte {
	message := map[string]any{"role": "assistant", "content": nil}
	text := r.Content
	if r.Size > len(text) {
		text += strings.Repeat("x", r.Size-len(text))
	}
	if text != "" || len(r.ToolCalls) == 0 {
		message["content"] = text
	}
	finish := r.Finish
	if len(r.ToolCalls) > 0 {
		calls := make([]map[string]any, len(r.ToolCalls))
		for i, c := range r.ToolCalls {
			calls[i] = map[string]any{"id": r.callID(i, request), "type": "function",
				"function": map[string]any{"name": c.Name, "arguments": argumentText(c.Arguments)}}
		}
		message["tool_calls"] = calls
		if finish == "" {
			finish = "tool_calls"
		}
	}
	if finish == "" {
		finish = "stop"
	}
	in, out := r.counts(request, text)
	return mustJSON(map[string]any{
		"id": fmt.Sprintf("chatcmpl-%d", request.Number), "object": "chat.completion", "created": time.Now().Unix(), "model": request.Model,
		"choices": []any{map[string]any{"index": 0, "message": message, "logprobs": nil, "finish_reason": finish}},
		"usage":   map[string]any{"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out},
	})
}

func argumentText(v any) string {
	switch a := v.(type) {
	case nil:
		return "{}"
	case string:
		return a
	case json.RawMessage:
		return string(a)
	}
	return string(mustJSON(v))
}
