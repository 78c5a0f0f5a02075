package fakemodel

import (
	"fmt"
	"strings"
)

// The other two APIs that the server speaks: what a Reply looks like on their paths.

// message is the reply as the messages API has it (POST …/messages).
func (r Reply) message(request Request) []byte {
	blocks := []any{}
	text := r.Content + strings.Repeat("x", max(0, r.Size-len(r.Content)))
	if text != "" {
		blocks = append(blocks, map[string]any{"type": "text", "text": text})
	}
	stop := "end_turn"
	for i, c := range r.ToolCalls {
		stop = "tool_use"
		blocks = append(blocks, map[string]any{"type": "tool_use", "id": r.callID(i, request), "name": c.Name, "input": rawArguments(c.Arguments)})
	}
	switch r.Finish {
	case "":
	case "length":
		stop = "max_tokens"
	default:
		stop = r.Finish
	}
	in, out := r.counts(request, text)
	return mustJSON(map[string]any{
		"id": fmt.Sprintf("msg_%d", request.Number), "type": "message", "role": "assistant", "model": request.Model, "content": blocks,
		"stop_reason": stop, "stop_sequence": nil,
		"usage": map[string]any{"input_tokens": in, "output_tokens": out, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0},
	})
}

// response is the reply as the responses API has it (POST …/responses).
func (r Reply) response(request Request) []byte {
	items := []any{}
	text := r.Content + strings.Repeat("x", max(0, r.Size-len(r.Content)))
	if text != "" {
		items = append(items, map[string]any{"type": "message", "role": "assistant", "content": []any{map[string]any{"type": "output_text", "text": text}}})
	}
	for i, c := range r.ToolCalls {
		items = append(items, map[string]any{"type": "function_call", "call_id": r.callID(i, request), "name": c.Name, "arguments": argumentText(c.Arguments)})
	}
	in, out := r.counts(request, text)
	status, why := "completed", any(nil)
	if r.Finish == "length" {
		status, why = "incomplete", map[string]any{"reason": "max_output_tokens"}
	}
	return mustJSON(map[string]any{
		"id": fmt.Sprintf("resp_%d", request.Number), "object": "response", "status": status, "incomplete_details": why, "error": nil, "model": request.Model, "output": items,
		"usage": map[string]any{"input_tokens": in, "output_tokens": out, "input_tokens_details": map[string]any{"cached_tokens": 0},
			"output_tokens_details": map[string]any{"reasoning_tokens": 0}},
	})
}

func (r Reply) callID(i int, request Request) string {
	if id := r.ToolCalls[i].ID; id != "" {
		return id
	}
	return fmt.Sprintf("call_%d_%d", request.Number, i+1)
}

// counts are the tokens of the reply, guessed where it does not say.
func (r Reply) counts(request Request, text string) (in, out int) {
	in, out = r.Input, r.Output
	if in == 0 {
		in = len(request.Body)/4 + 1
	}
	if out == 0 {
		out = len(text)/4 + 8*len(r.ToolCalls) + 1
	}
	return in, out
}

func rawArguments(v any) any {
	if v == nil {
		return map[string]any{}
	}
	return v
}
