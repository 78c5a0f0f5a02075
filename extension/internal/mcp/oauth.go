package mcp

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"aidb/extension/internal/fault"
)

// OAuth is how aidb gets tokens for a server: by the client credentials grant, in which nobody is asked; by the authorization
// code that a person was given in a browser; or by what an identity provider asserts of a person (assertion.go). Where a client's
// secret may go is settled by whoever registers the server, never by
// the server: Issuer or TokenURL must be given with one.
type OAuth struct {
	// Grant is client_credentials, authorization_code or identity_assertion; empty: the first.
	Grant string `json:"grant,omitempty"`
	// ClientID may be the address of the client's metadata document. Empty: with authorization_code aidb registers itself.
	ClientID string `json:"client_id"`
	// Issuer is the authorization server. Its token endpoint is looked up, and the MCP server must name it.
	Issuer string `json:"issuer"`
	// TokenURL is the token endpoint; nothing is looked up then.
	TokenURL string `json:"token_url"`
	// AuthorizationURL is where the person is asked, and RedirectURI where the browser is sent from there.
	AuthorizationURL string `json:"authorization_url,omitempty"`
	RedirectURI      string `json:"redirect_uri,omitempty"`
	// Scope replaces what the server asks for.
	Scope string `json:"scope"`
	// Audience is a parameter that some authorization servers want.
	Audience string `json:"audience"`
	// Resource is the resource indicator; nil: the server's address; empty: none is sent.
	Resource *string `json:"resource"`
	// AuthMethod is client_secret_basic or client_secret_post; empty: what the authorization server prefers.
	AuthMethod string `json:"auth_method"`
	// Algorithm and KeyID go into the header of the assertions that are signed with a private key.
	Algorithm string `json:"algorithm"`
	KeyID     string `json:"key_id"`
	// IDPTokenURL is the token endpoint of the identity provider, and IDPClientID who aidb is there.
	IDPTokenURL string `json:"idp_token_url,omitempty"`
	IDPClientID string `json:"idp_client_id,omitempty"`

	clientSecret, privateKey string
	idToken, idpSecret       string         // for the identity provider
	granted                  *Authorization // in use; nil: nobody has given one
}

// The grants.
const (
	byItself = "client_credentials"
	byPerson = "authorization_code"
	asserted = "identity_assertion"
)

// ByPerson reports whether a person has to authorize the use of the server.
func (o *OAuth) ByPerson() bool { return o != nil && o.Grant == byPerson }

// What the JSON of the headers holds besides headers when there is an OAuth.
const (
	clientSecret = "client_secret"
	privateKey   = "private_key"
	idToken      = "id_token"
	idpSecret    = "idp_client_secret"
)

// maxOAuth bounds a setting.
const maxOAuth = 2000

// ParseOAuth reads the settings of a registration, and takes the client's secret out of the JSON of its headers.
func ParseOAuth(settings json.RawMessage, secrets string) (o *OAuth, headers map[string]string, err error) {
	if len(settings) == 0 {
		headers, err = ParseHeaders(secrets)
		return nil, headers, err
	}
	o = &OAuth{}
	if err := o.settings(settings); err != nil {
		return nil, nil, err
	}
	values, err := decodeHeaders(secrets)
	if err != nil {
		return nil, nil, err
	}
	for name, to := range map[string]*string{clientSecret: &o.clientSecret, privateKey: &o.privateKey, idToken: &o.idToken, idpSecret: &o.idpSecret} {
		*to = values[name]
		delete(values, name)
	}
	if err := o.secretFits(); err != nil {
		return nil, nil, err
	}
	if o.privateKey != "" && o.AuthMethod != "" {
		return nil, nil, fault.New(fault.InvalidArgument, "oauth member 'auth_method' is for a client_secret")
	}
	for name := range values {
		if http.CanonicalHeaderKey(name) == "Authorization" {
			return nil, nil, fault.New(fault.InvalidArgument, "headers must not have Authorization when oauth is given")
		}
	}
	return o, values, checkHeaders(values)
}

// secretFits looks at the secret, which is not in the settings, and at where it may go.
func (o *OAuth) secretFits() error {
	if o.ByPerson() && o.clientSecret == "" && o.privateKey == "" {
		return nil // a public client, or one that registers itself
	}
	if (o.clientSecret == "") == (o.privateKey == "") {
		return fault.New(fault.InvalidArgument, "oauth needs either client_secret or private_key beside the headers").
			WithHint("It belongs into the JSON that headers, headers_env or headers_k8s_secret gives, not into oauth.")
	}
	switch {
	case o.ClientID == "":
		return noClient
	case o.Issuer == "" && o.TokenURL == "":
		return noIssuer
	case o.Grant == asserted && o.idToken == "":
		return fault.New(fault.InvalidArgument, "oauth needs id_token beside the headers for the grant identity_assertion").
			WithHint("It belongs into the JSON that headers, headers_env or headers_k8s_secret gives; a file is read at each use, so it can be renewed there.")
	case o.Grant != asserted && (o.idToken != "" || o.idpSecret != ""):
		return fault.New(fault.InvalidArgument, "id_token and idp_client_secret are for the grant identity_assertion of oauth")
	}
	return nil
}

var (
	noClient = fault.New(fault.InvalidArgument, "oauth member 'client_id' is missing")
	noIssuer = fault.New(fault.InvalidArgument, "oauth needs issuer or token_url").
			WithHint("They say where the client's secret may be sent, which is not the MCP server's to say.")
)

func (o *OAuth) settings(text json.RawMessage) error {
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil || members == nil {
		return fault.New(fault.InvalidArgument, "oauth must be a JSON object")
	}
	if members[clientSecret] != nil || members[privateKey] != nil || members[idToken] != nil || members[idpSecret] != nil {
		return fault.New(fault.InvalidArgument, "oauth must not hold the secret: everybody may read it").
			WithHint("Put client_secret, private_key, id_token and idp_client_secret into the JSON that headers, headers_env or headers_k8s_secret gives.")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if d.Decode(o) != nil {
		return fault.New(fault.InvalidArgument, "oauth has a member that is not known or not a text").
			WithHint("Known are grant, client_id, issuer, token_url, authorization_url, redirect_uri, scope, audience, resource, auth_method, algorithm, key_id, idp_token_url and idp_client_id.")
	}
	switch {
	case o.Grant != "" && o.Grant != byItself && o.Grant != byPerson && o.Grant != asserted:
		return fault.New(fault.InvalidArgument, "oauth member 'grant' must be client_credentials, authorization_code or identity_assertion")
	case o.Grant == asserted && (o.IDPTokenURL == "" || o.IDPClientID == ""), o.Grant != asserted && o.IDPTokenURL+o.IDPClientID != "":
		return fault.New(fault.InvalidArgument, "oauth members 'idp_token_url' and 'idp_client_id' belong to the grant identity_assertion, which needs both")
	case o.ClientID == "" && (!o.ByPerson() || o.TokenURL != ""):
		return noClient
	case !o.ByPerson() && o.Issuer == "" && o.TokenURL == "":
		return noIssuer
	case !o.ByPerson() && (o.AuthorizationURL != "" || o.RedirectURI != ""):
		return fault.New(fault.InvalidArgument, "oauth members 'authorization_url' and 'redirect_uri' are for the grant authorization_code")
	case o.ByPerson() && (o.TokenURL == "") != (o.AuthorizationURL == ""):
		return fault.New(fault.InvalidArgument, "oauth members 'authorization_url' and 'token_url' belong together")
	case o.AuthMethod != "" && o.AuthMethod != basic && o.AuthMethod != post:
		return fault.New(fault.InvalidArgument, "oauth member 'auth_method' must be client_secret_basic or client_secret_post")
	}
	for _, address := range []string{o.Issuer, o.TokenURL, o.AuthorizationURL, o.RedirectURI, o.IDPTokenURL} {
		u, err := url.Parse(address)
		if address != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.Fragment != "") {
			return fault.New(fault.InvalidArgument, "oauth members 'issuer', 'token_url', 'authorization_url', 'redirect_uri' and 'idp_token_url' must be http or https addresses without user information")
		}
	}
	for _, value := range []string{o.ClientID, o.Issuer, o.TokenURL, o.AuthorizationURL, o.RedirectURI, o.Scope, o.Audience, o.Algorithm, o.KeyID, o.IDPTokenURL, o.IDPClientID} {
		if len(value) > maxOAuth || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return fault.New(fault.InvalidArgument, "oauth has a value that cannot be sent")
		}
	}
	return nil
}

// id is what makes tokens those of another client.
func (o *OAuth) id() string {
	if o == nil {
		return ""
	}
	settings, _ := json.Marshal(o) // texts only
	whose := ""
	if o.granted != nil {
		whose = o.granted.ID
	}
	sum := sha256.Sum256([]byte(string(settings) + "\x00" + o.clientSecret + "\x00" + o.privateKey + "\x00" + o.idToken + "\x00" + o.idpSecret + "\x00" + whose))
	return hex.EncodeToString(sum[:])
}
