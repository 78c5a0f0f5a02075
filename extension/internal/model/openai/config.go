package openai

import (
	"bytes"
	"encoding/base64"
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
	TLS                   *tlsConfig                 `json:"tls_config"`

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

type tlsConfig struct {
	InsecureSkipVerify bool   `json:"insecure_skip_verify"`
	CAPath             string `json:"ca_path"`
}

// keys are the config's members. is_hcp_model means something to other products only and is ignored.
var keys = []string{
	"model", "url", "max_concurrent_requests", "max_tokens", "system_prompt", "temperature", "top_p", "seed",
	"repeat_penalty", "repeat_last_n", "thinking", "extra_args", "tls_config", "is_hcp_model",
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
		return nil, fault.New(fault.InvalidArgument, "config cannot be read: %s", fault.Cut(oneLine(err.Error()), maxExcerpt))
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
	if n := c.MaxConcurrentRequests; n != nil && *n <= 0 {
		return nil, fault.New(fault.InvalidArgument, "max_concurrent_requests must be above zero, not %d", *n)
	}
	return c, c.fix()
}

// locate applies the rule for url: a base, or the whole address when it ends in /chat/completions.
func (c *config) locate() error {
	text := c.URL
	if text == "" {
		text = DefaultURL
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return fault.New(fault.InvalidArgument, "url %s is not an http or https URL", fault.Name(withoutSecrets(text)))
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

// withoutSecrets drops what may be secret from a URL that is shown.
func withoutSecrets(text string) string {
	text, _, _ = strings.Cut(text, "?")
	if at := strings.LastIndex(text, "@"); at >= 0 {
		text = text[at+1:]
	}
	return text
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
		b = appendString(b, name)
		b = append(b, ':')
		b = append(b, c.ExtraArgs[name]...)
	}
	c.fixed = []byte(conversation.CleanJSON(string(b)))
	return nil
}

// Credentials are what the server wants to see. At most one of the two is set; both empty means that none are sent.
type Credentials struct {
	APIKey    string
	BasicAuth string
}

// String hides the secret, should credentials ever meet a %v.
func (Credentials) String() string { return "(credentials)" }

// GoString hides the secret from %#v.
func (Credentials) GoString() string { return "(credentials)" }

// MarshalJSON hides the secret from encoders.
func (Credentials) MarshalJSON() ([]byte, error) { return []byte(`"(credentials)"`), nil }

// ParseCredentials reads a secret in the forms it is kept in: a JSON object with api_key or basic_auth, or, as
// environment variables and mounted files have it, a bare key. White space around a bare key is not part of it.
func ParseCredentials(secret string) (Credentials, error) {
	trimmed := strings.TrimSpace(secret)
	if trimmed == "" || trimmed == "null" {
		return Credentials{}, nil
	}
	if !strings.HasPrefix(trimmed, "{") {
		return Credentials{APIKey: trimmed}, nil
	}
	var o struct {
		APIKey    *string `json:"api_key"`
		BasicAuth *string `json:"basic_auth"`
	}
	// The decoder's error would show a piece of the secret.
	if json.Unmarshal([]byte(trimmed), &o) != nil {
		return Credentials{}, fault.New(fault.InvalidArgument, "credentials cannot be read: they must be {\"api_key\": text} or {\"basic_auth\": text}")
	}
	c := Credentials{}
	if o.APIKey != nil {
		c.APIKey = *o.APIKey
	}
	if o.BasicAuth != nil {
		c.BasicAuth = *o.BasicAuth
	}
	if c.APIKey != "" && c.BasicAuth != "" {
		return Credentials{}, fault.New(fault.InvalidArgument, "credentials must have api_key or basic_auth, not both")
	}
	return c, nil
}

// header returns the value of the Authorization header, "" for none.
func (c Credentials) header() (string, error) {
	secret, name := c.APIKey, "api_key"
	if secret == "" {
		secret, name = c.BasicAuth, "basic_auth"
	}
	for _, r := range secret {
		if r < ' ' || r > '~' {
			return "", fault.New(fault.InvalidArgument, "credentials cannot be used: %s has a character that is not allowed in an HTTP header", name).
				WithHint("Only printable ASCII is; look for a line break or a typographic quote.")
		}
	}
	switch {
	case secret == "":
		return "", nil
	case name == "api_key":
		return "Bearer " + strings.TrimSpace(secret), nil
	case strings.Contains(secret, ":"):
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(secret)), nil
	}
	return "Basic " + strings.TrimSpace(secret), nil
}
