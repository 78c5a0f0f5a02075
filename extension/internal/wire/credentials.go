package wire

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"aidb/extension/internal/fault"
)

// tlsConfig is the config's tls_config.
type TLSConfig struct {
	InsecureSkipVerify bool   `json:"insecure_skip_verify"`
	CAPath             string `json:"ca_path"`
}

// WithoutSecrets drops what may be secret from a URL that is shown.
func WithoutSecrets(text string) string {
	text, _, _ = strings.Cut(text, "?")
	if at := strings.LastIndex(text, "@"); at >= 0 {
		text = text[at+1:]
	}
	return text
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

// Header returns the header that carries the credentials, both empty for none. key names the one for an API key, ""
// being Authorization.
func (c Credentials) Header(key string) (name, value string, err error) {
	secret, kind := c.APIKey, "api_key"
	if secret == "" {
		secret, kind = c.BasicAuth, "basic_auth"
	}
	for _, r := range secret {
		if r < ' ' || r > '~' {
			return "", "", fault.New(fault.InvalidArgument, "credentials cannot be used: %s has a character that is not allowed in an HTTP header", kind).
				WithHint("Only printable ASCII is; look for a line break or a typographic quote.")
		}
	}
	secret = strings.TrimSpace(secret)
	switch {
	case secret == "":
		return "", "", nil
	case kind == "api_key" && key != "":
		return key, secret, nil
	case kind == "api_key":
		return authorizationHeader, "Bearer " + secret, nil
	case strings.Contains(secret, ":"):
		return authorizationHeader, "Basic " + base64.StdEncoding.EncodeToString([]byte(c.BasicAuth)), nil
	}
	return authorizationHeader, "Basic " + secret, nil
}

const authorizationHeader = "Authorization"
