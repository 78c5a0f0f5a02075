package responses

import (
	"encoding/json"

	"aidb/extension/internal/fault"
	"aidb/extension/internal/wire"
)

const (
	// DefaultURL is the base that a config without url means.
	DefaultURL = "https://api.openai.com/v1"

	path = "/responses"
)

// config is a model's config as far as this adapter reads it.
type config struct {
	Model                 string                     `json:"model"`
	URL                   string                     `json:"url"`
	SystemPrompt          string                     `json:"system_prompt"`
	Temperature           *json.Number               `json:"temperature"`
	TopP                  *json.Number               `json:"top_p"`
	MaxOutputTokens       *int                       `json:"max_output_tokens"`
	MaxTokens             *int                       `json:"max_tokens"` // the name that aidb.inference_config has for it
	ExtraArgs             map[string]json.RawMessage `json:"extra_args"`
	TLS                   *wire.TLSConfig            `json:"tls_config"`
	ResponseFormat        json.RawMessage            `json:"response_format"`
	Tools                 json.RawMessage            `json:"tools"`
	ToolChoice            json.RawMessage            `json:"tool_choice"`
	Stream                *bool                      `json:"stream"`
	MaxConcurrentRequests *int                       `json:"max_concurrent_requests"`
	RequestsPerMinute     *int                       `json:"requests_per_minute"`
	TokensPerMinute       *int64                     `json:"tokens_per_minute"`

	endpoint, models string
	name             string          // of schema
	schema           json.RawMessage // of the answer, nil for free text
}

func (c *config) limits() wire.Limits {
	return wire.LimitsOf(c.MaxConcurrentRequests, c.RequestsPerMinute, c.TokensPerMinute)
}

// most is the bound of a reply: that of the call before that of the config.
func (c *config) most() *int {
	if c.MaxTokens != nil {
		return c.MaxTokens
	}
	return c.MaxOutputTokens
}

func (c *config) streams() bool { return c.Stream == nil || *c.Stream }

func parseConfig(raw json.RawMessage) (*config, error) {
	c := &config{}
	if err := wire.ReadConfig(raw, c); err != nil {
		return nil, err
	}
	switch {
	case c.Model == "":
		return nil, fault.New(fault.InvalidArgument, "config has no model")
	case c.most() != nil && *c.most() <= 0:
		return nil, fault.New(fault.InvalidArgument, "max_output_tokens must be above zero, not %d", *c.most())
	case wire.Present(c.Tools) || wire.Present(c.ToolChoice):
		return nil, wire.NoTools()
	}
	if err := wire.CheckNumbers(map[string]*json.Number{"temperature": c.Temperature, "top_p": c.TopP}); err != nil {
		return nil, err
	}
	if err := c.limits().Check(); err != nil {
		return nil, err
	}
	text := c.URL
	if text == "" {
		text = DefaultURL
	}
	var err error
	if wire.Present(c.ResponseFormat) {
		if c.name, c.schema, err = wire.Schema(c.ResponseFormat); err != nil {
			return nil, err
		}
	}
	c.endpoint, c.models, err = wire.Locate(text, path)
	return c, err
}
