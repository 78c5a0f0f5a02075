package mcp

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"aidb/extension/internal/safego"
)

// answerDefaults answers a server that asks for a person's input, where its owner has said so: with the defaults that it gives itself,
// and no when they do not suffice. It runs in a goroutine of the library.
func (s *session) answerDefaults(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	answer := &sdk.ElicitResult{Action: "decline"}
	content, ok := defaults(r.Params)
	said := "no"
	if ok {
		answer.Action, answer.Content, said = "accept", content, "the defaults"
	}
	s.told(Progress{Message: "asked for input, answered with " + said + ": " + line(r.Params.Message, maxProgressText)})
	return answer, nil
}

// guarded has the library read what a server asks for: whatever that is, it ends no more than the answer.
func guarded(ctx context.Context, next sdk.MethodHandler, method string, r sdk.Request) (result sdk.Result, err error) {
	bad := &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the request cannot be read"}
	if p, ok := r.GetParams().(*sdk.ElicitParams); !ok || p == nil {
		return nil, bad
	}
	if panicked := safego.Call("input for an MCP server", func() { result, err = next(ctx, method, r) }); panicked != nil {
		return nil, bad
	}
	return result, err
}

// defaults are those of the members of what is asked for; false when one that is required has none, or a page is to be opened.
func defaults(asked *sdk.ElicitParams) (map[string]any, bool) {
	if asked.Mode != "" && asked.Mode != "form" {
		return nil, false
	}
	var schema struct {
		Properties map[string]struct {
			Default any `json:"default"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	text, err := json.Marshal(asked.RequestedSchema)
	if err != nil || json.Unmarshal(text, &schema) != nil {
		return nil, false
	}
	content := map[string]any{}
	for name, member := range schema.Properties {
		if member.Default != nil {
			content[name] = member.Default
		}
	}
	for _, name := range schema.Required {
		if _, given := content[name]; !given {
			return nil, false
		}
	}
	return content, true
}

// told has every call that is under way hear of what the server did, which does not say for which of them.
func (s *session) told(p Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.progress {
		_ = safego.Call("progress of an MCP call", func() { f(p) })
	}
}
