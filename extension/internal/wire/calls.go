package wire

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
)

// Call is a tool call as it was received.
type Call struct{ ID, Name, Arguments Text }

// Calls makes the calls of a reply of what was received: each with the tool that it means, an id of its own, and its
// arguments tidied where their meaning is certain.
func (n *Names) Calls(received []Call) []conversation.ToolCall {
	calls := make([]conversation.ToolCall, 0, len(received))
	ids := make([]string, 0, len(received))
	for i := range received {
		c := &received[i]
		id := c.ID.String()
		// A result finds its call by the id: one that is missing, or there already, is replaced.
		for id == "" || slices.Contains(ids, id) {
			id = n.FreshID()
		}
		ids = append(ids, id)
		calls = append(calls, conversation.ToolCall{ID: id, Name: n.Offered(c.Name.String()), Arguments: TidyArguments(c.Arguments).String()})
	}
	return calls
}

// WireArguments are a call's arguments as every server takes them: an object. Arguments that never were one are an empty
// object in the history; the result beside them says what was wrong.
func WireArguments(s string) string {
	if s == "{}" || IsObject(s) {
		return conversation.CleanJSON(s)
	}
	return "{}"
}

// SystemText is the one system message of a conversation, after a first text of the model's config: some servers take no
// second one, and none after the beginning.
func SystemText(first string, messages []conversation.Message) string {
	s := first
	for i := range messages {
		if messages[i].Role != conversation.System || messages[i].Content == "" {
			continue
		}
		if s != "" {
			s += "\n\n"
		}
		s += messages[i].Content
	}
	return s
}

// PastTools makes tools of the calls in the history, for servers that want every call's tool declared.
func PastTools(messages []conversation.Message) []agent.ToolSpec {
	var tools []agent.ToolSpec
	for i := range messages {
		for _, c := range messages[i].ToolCalls {
			if !slices.ContainsFunc(tools, func(t agent.ToolSpec) bool { return t.Name == c.Name }) {
				tools = append(tools, agent.ToolSpec{Name: c.Name, Description: "Not available any more.", Parameters: EmptySchema})
			}
		}
	}
	return tools
}

// Locate applies the rule for a config's url: a base, or the whole address when it ends in the path. It returns the address
// that requests go to and the one of the list of models.
func Locate(text, path string) (endpoint, models string, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return "", "", fault.New(fault.InvalidArgument, "url %s is not an http or https URL", fault.Name(WithoutSecrets(text)))
	}
	if u.User != nil {
		return "", "", fault.New(fault.InvalidArgument, "url must not contain a user or a password").
			WithHint("Pass them as credentials: {\"basic_auth\": \"user:password\"}.")
	}
	base := u.Scheme + "://" + u.Host + strings.TrimSuffix(strings.TrimRight(u.EscapedPath(), "/"), path)
	query := ""
	if u.RawQuery != "" {
		query = "?" + u.RawQuery
	}
	return base + path + query, base + "/models" + query, nil
}

// AppendMembers writes the members of an object, each with its leading comma, but those that are reserved.
func AppendMembers(b []byte, members map[string]json.RawMessage, reserved ...string) []byte {
	names := make([]string, 0, len(members))
	for name := range members {
		if !slices.Contains(reserved, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		b = append(AppendString(append(b, ','), name), ':')
		b = append(b, conversation.CleanJSON(string(members[name]))...)
	}
	return b
}

// Schema reads the JSON Schema out of a response_format as chat completions write it.
func Schema(format json.RawMessage) (name string, schema json.RawMessage, err error) {
	var f struct {
		Type   string `json:"type"`
		Schema *struct {
			Name   string          `json:"name"`
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	}
	if json.Unmarshal(format, &f) != nil || f.Type != "json_schema" || f.Schema == nil || len(f.Schema.Schema) == 0 {
		return "", nil, fault.New(fault.InvalidArgument, "response_format must be {\"type\": \"json_schema\", \"json_schema\": {\"schema\": …}}")
	}
	if f.Schema.Name == "" {
		f.Schema.Name = "answer"
	}
	return f.Schema.Name, f.Schema.Schema, nil
}

// Probe finds out whether a server can be reached and accepts the credentials: by its list of models, which costs nothing,
// and where there is none, by asking for the smallest answer.
func (l *Line) Probe(ctx context.Context, models string, ping func(context.Context) error, headers ...string) error {
	none := false
	_, err := l.Do(ctx, 0, func(ctx context.Context) (int64, *Failure) {
		f := l.Get(ctx, models, headers...)
		if none = f != nil && f.Cause == nil && slices.Contains(noList, f.Status); none {
			f = nil
		}
		return 0, f
	}, nil)
	if err == nil && none {
		if err = ping(ctx); fault.Is(err, fault.ModelRefused, fault.ModelOutput) {
			return nil
		}
	}
	return err
}

// noList are the answers of servers that have no list of models, or do not show it to every key.
var noList = []int{400, 403, 404, 405, 501}
