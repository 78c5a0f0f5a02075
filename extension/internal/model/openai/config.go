package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"sort"
	"strings"

	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/wire"
)

// DefaultURL is the base that a config without url means.
const DefaultURL = "https://api.openai.com/v1"

const chatPath = "/chat/completions"

// config is a model's config as far as this adapter reads it.
type config struct {
	Model                 string                     `json:"model"`
	URL                   string                     `json:"url"`
	MaxConcurrentRequests *int                       `json:"max_concurrent_requests"`
	MaxTokens             *maxTokens                 `json:"max_tokens"`
	SystemPrompt          string                     `json:"system_prompt"`
	Temperature           *json.Number               `json:"temperature"`
	TopP                  *json.Number               `json:"top_p"`
	Seed                  *json.Number               `json:"seed"`
	RepeatPenalty         *json.Number               `json:"repeat_penalty"`
	RepeatLastN           *json.Number               `json:"repeat_last_n"`
	Thinking              *bool                      `json:"thinking"`
	ExtraArgs             map[string]json.RawMessage `json:"extra_args"`
	TLS                   *wire.TLSConfig            `json:"tls_config"`
	RequestsPerMinute     *int                       `json:"requests_per_minute"`
	TokensPerMinute       *int64                     `json:"tokens_per_minute"`
	Stream                *bool                      `json:"stream"`
	StructuredOutput      *bool                      `json:"structured_output"`

	base     string // URL without the chat path
	endpoint string // URL with it
	models   string // URL of the list of models
	fixed    []byte // the members that never change, each with its leading comma
}

// maxTokens is a bound on the reply: a number, or aidb.max_tokens_config's object. The format says by which name
// the server knows it.
type maxTokens struct {
	Size   int
	Format string
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *maxTokens) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &m.Size) == nil {
		return nil
	}
	var o struct {
		Size   *int   `json:"size"`
		Format string `json:"format"`
	}
	if err := json.Unmarshal(b, &o); err != nil {
		return err
	}
	if o.Size == nil {
		return fmt.Errorf("max_tokens has no size")
	}
	switch o.Format {
	case "", "default", "legacy", "both":
	default:
		return fmt.Errorf("max_tokens format %q is not default, legacy or both", o.Format)
	}
	m.Size, m.Format = *o.Size, o.Format
	return nil
}

// keys are the config's members. is_hcp_model means something to other products only and is ignored.
var keys = []string{
	"model", "url", "max_concurrent_requests", "max_tokens", "system_prompt", "temperature", "top_p", "seed",
	"repeat_penalty", "repeat_last_n", "thinking", "extra_args", "tls_config", "is_hcp_model",
	"requests_per_minute", "tokens_per_minute", "fallback", "stream", "structured_output",
}

// CheckConfig is the strict reading of a config, for the moment when a model is registered: it also refuses
// members that the adapter would ignore.
func CheckConfig(raw json.RawMessage) error {
	if _, err := parseConfig(raw); err != nil {
		return err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return fault.New(fault.InvalidArgument, "config is not a JSON object")
	}
	unknown := make([]string, 0, 1)
	for k := range all {
		if !slices.Contains(keys, k) {
			unknown = append(unknown, k)
		}
	}
	if len(unknown) > 0 {
		sort.Strings(unknown)
		return fault.New(fault.InvalidArgument, "config has an unexpected member %s", fault.Name(unknown[0])).
			WithHint("The members are %s.", strings.Join(keys, ", "))
	}
	return nil
}

func parseConfig(raw json.RawMessage) (*config, error) {
	c := &config{}
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	if err := json.Unmarshal(raw, c); err != nil {
		var t *json.UnmarshalTypeError
		if errors.As(err, &t) && t.Field != "" {
			return nil, fault.New(fault.InvalidArgument, "config member %s must not be a JSON %s", fault.Name(t.Field), t.Value)
		}
		return nil, fault.New(fault.InvalidArgument, "config cannot be read: %s", fault.Cut(wire.OneLine(err.Error()), wire.MaxExcerpt))
	}
	if c.Model == "" {
		return nil, fault.New(fault.InvalidArgument, "config has no model").
			WithHint("aidb.completions_config(model => …) makes one.")
	}
	if err := c.locate(); err != nil {
		return nil, err
	}
	if c.MaxTokens != nil && c.MaxTokens.Size <= 0 {
		return nil, fault.New(fault.InvalidArgument, "max_tokens must be above zero, not %d", c.MaxTokens.Size)
	}
	if err := c.limits().Check(); err != nil {
		return nil, err
	}
	return c, c.fix()
}

// streams says whether answers are asked for as streams. Where the config leaves it open, OpenAI's own server is asked to:
// elsewhere a stream is the more fragile form, of tool calls most of all, and seldom paid for.
func (c *config) streams() bool {
	if c.Stream != nil {
		return *c.Stream
	}
	return strings.HasPrefix(c.endpoint, DefaultURL+"/")
}

// structures says whether the schema of a typed answer is sent as response_format. Where the config leaves it open, OpenAI's
// own server gets it: of the others many refuse it, and some that take it answer no tool calls any more.
func (c *config) structures() bool {
	if c.StructuredOutput != nil {
		return *c.StructuredOutput
	}
	return strings.HasPrefix(c.endpoint, DefaultURL+"/")
}

// forces says whether an answer that was not valid is asked for again as the call of a tool, where it is not asked for as
// response_format.
func (c *config) forces() bool {
	return (c.StructuredOutput == nil || *c.StructuredOutput) && c.ExtraArgs["tool_choice"] == nil
}

// limits are the config's.
func (c *config) limits() wire.Limits {
	return wire.LimitsOf(c.MaxConcurrentRequests, c.RequestsPerMinute, c.TokensPerMinute)
}

// locate applies the rule for url: a base, or the whole address when it ends in /chat/completions.
func (c *config) locate() error {
	text := c.URL
	if text == "" {
		text = DefaultURL
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return fault.New(fault.InvalidArgument, "url %s is not an http or https URL", fault.Name(wire.WithoutSecrets(text)))
	}
	if u.User != nil {
		return fault.New(fault.InvalidArgument, "url must not contain a user or a password").
			WithHint("Pass them as credentials: {\"basic_auth\": \"user:password\"}.")
	}
	u.Fragment = ""
	path := strings.TrimRight(u.EscapedPath(), "/")
	base := strings.TrimSuffix(path, chatPath)
	query := ""
	if u.RawQuery != "" {
		query = "?" + u.RawQuery
	}
	root := u.Scheme + "://" + u.Host
	c.base, c.endpoint, c.models = root+base, root+base+chatPath+query, root+base+"/models"+query
	return nil
}

// reserved are the members of a request that are ours.
var reserved = []string{"model", "messages", "tools", "stream"}

// fix writes the members that the config sets. Nothing else is sent: every member is refused by some server.
func (c *config) fix() error {
	var b []byte
	number := func(name string, n *json.Number) error {
		if n == nil {
			return nil
		}
		if f, err := n.Float64(); err != nil || math.IsInf(f, 0) {
			return fault.New(fault.InvalidArgument, "%s is not a number: %s", name, fault.Name(n.String()))
		}
		b = append(append(append(append(b, `,"`...), name...), `":`...), n.String()...)
		return nil
	}
	for _, m := range []struct {
		name string
		n    *json.Number
	}{{"temperature", c.Temperature}, {"top_p", c.TopP}, {"seed", c.Seed}, {"repeat_penalty", c.RepeatPenalty}, {"repeat_last_n", c.RepeatLastN}} {
		if _, again := c.ExtraArgs[m.name]; again {
			continue
		}
		if err := number(m.name, m.n); err != nil {
			return err
		}
	}
	if c.Thinking != nil && c.ExtraArgs["chat_template_kwargs"] == nil {
		b = fmt.Appendf(b, `,"chat_template_kwargs":{"enable_thinking":%t}`, *c.Thinking)
	}
	names := make([]string, 0, len(c.ExtraArgs))
	for name := range c.ExtraArgs {
		if slices.Contains(reserved, name) {
			return fault.New(fault.InvalidArgument, "extra_args must not contain %s", fault.Name(name))
		}
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		b = append(b, ',')
		b = wire.AppendString(b, name)
		b = append(b, ':')
		b = append(b, c.ExtraArgs[name]...)
	}
	c.fixed = []byte(conversation.CleanJSON(string(b)))
	return nil
}
