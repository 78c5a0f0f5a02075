package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"aidb/extension/internal/fault"
)

// issuer is what is known of the authorization server and of what it is asked for.
type issuer struct {
	name     string
	tokenURL string
	audience string // of assertions
	style    oauth2.AuthStyle
	scopes   []string // that the MCP server has use for
	resource string

	// for what a person is asked
	authorizeURL, registerURL string
	methods                   []string // in which clients may say who they are; nil: not said
	documents                 bool     // the id of a client may be the address of a document about it
	saysIssuer                bool     // what it redirects to has its name
	offline                   bool     // there is a scope for refresh tokens
}

// discover looks up what the registration does not say: the MCP server's description of itself (RFC 9728), then that of the
// issuer (RFC 8414, or OpenID Connect's). What the MCP server says decides nothing but whether the issuer is one of its own.
func (t *tokens) discover(ctx context.Context, ch *challenge) (*issuer, error) {
	o := t.oauth
	from := &issuer{
		name: o.Issuer, tokenURL: o.TokenURL, audience: o.Issuer, style: oauth2.AuthStyleInHeader, resource: t.resource, authorizeURL: o.AuthorizationURL,
	}
	if o.AuthMethod == post {
		from.style = oauth2.AuthStyleInParams
	}
	if o.TokenURL != "" {
		if from.audience == "" {
			from.audience = o.TokenURL
		}
		return from, nil
	}
	described, err := t.described(ctx, ch)
	if err != nil {
		return nil, err
	}
	if described != nil {
		switch {
		case o.Issuer == "" && len(described.AuthorizationServers) == 0:
			return nil, fault.New(fault.ServerAuth, "it names no authorization server").WithHint(`Give "issuer" in oauth.`)
		case o.Issuer == "":
			from.name = described.AuthorizationServers[0]
		case !slices.ContainsFunc(described.AuthorizationServers, func(s string) bool { return sameIssuer(s, o.Issuer) }):
			return nil, fault.New(fault.ServerAuth, "it does not name %s as its authorization server", host(o.Issuer)).
				WithHint("The client's secret is sent to the issuer of the registration only: aidb.update_mcp_server(oauth => …) changes it.")
		}
		from.resource = described.Resource
		from.scopes = described.ScopesSupported[:min(len(described.ScopesSupported), maxScopes)]
	}
	ask := &asker{base: t.base}
	client := &http.Client{Transport: ask, CheckRedirect: t.redirect}
	var meta *oauthex.AuthServerMeta
	if from.name == "" {
		from.name = t.root() // protocol 2025-03-26: the server is its own
		meta, err = ownMetadata(ctx, client, from.name)
	} else {
		meta, err = auth.GetAuthServerMetadata(ctx, from.name, client)
	}
	switch {
	case err != nil:
		return nil, t.failure(ctx, ask, from.name, err)
	case meta == nil && described == nil && o.Issuer == "":
		// The same protocol has addresses for a server that publishes nothing.
		from.tokenURL, from.authorizeURL, from.registerURL = from.name+"/token", from.name+"/authorize", from.name+"/register"
		return from, nil
	case meta == nil || meta.TokenEndpoint == "":
		return nil, fault.New(fault.ServerAuth, "authorization server %s does not say where tokens are", host(from.name)).
			WithHint(`Give "token_url" in oauth.`)
	}
	if o.ByPerson() {
		if err := from.asks(meta); err != nil {
			return nil, err
		}
	}
	from.tokenURL, from.audience = meta.TokenEndpoint, meta.Issuer
	methods := meta.TokenEndpointAuthMethodsSupported
	if o.AuthMethod == "" && slices.Contains(methods, post) && !slices.Contains(methods, basic) {
		from.style = oauth2.AuthStyleInParams
	}
	return from, nil
}

// ownMetadata is what an origin publishes at its root about the authorization server that it is itself. Nobody has named an issuer
// to compare with, so it may be a path of this origin, and nothing else.
func ownMetadata(ctx context.Context, client *http.Client, root string) (*oauthex.AuthServerMeta, error) {
	at := root + "/.well-known/oauth-authorization-server"
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	var says struct {
		Issuer string `json:"issuer"`
	}
	if resp.StatusCode == http.StatusOK && json.NewDecoder(resp.Body).Decode(&says) == nil && strings.HasPrefix(says.Issuer, root+"/") {
		return oauthex.GetAuthServerMeta(ctx, at, says.Issuer, client)
	}
	return auth.GetAuthServerMetadata(ctx, root, client)
}

// asks notes what is published about how a person is asked.
func (i *issuer) asks(meta *oauthex.AuthServerMeta) error {
	switch {
	case meta.AuthorizationEndpoint == "":
		return fault.New(fault.ServerAuth, "authorization server %s does not say where a person is asked", host(i.name)).
			WithHint(`Give "authorization_url" and "token_url" in oauth.`)
	case !slices.Contains(meta.CodeChallengeMethodsSupported, "S256"):
		return fault.New(fault.ServerAuth, "authorization server %s does not know PKCE with S256", host(i.name))
	}
	i.name, i.authorizeURL, i.registerURL = meta.Issuer, meta.AuthorizationEndpoint, meta.RegistrationEndpoint
	i.methods, i.documents = meta.TokenEndpointAuthMethodsSupported, meta.ClientIDMetadataDocumentSupported
	i.saysIssuer = meta.AuthorizationResponseIssParameterSupported
	i.offline = slices.Contains(meta.ScopesSupported, offlineAccess)
	return nil
}

// root is the origin of the server.
func (t *tokens) root() string {
	u, err := url.Parse(t.resource)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
}

// described is what the MCP server says of itself; nil when it says nothing. Where it says something, it must be of itself.
func (t *tokens) described(ctx context.Context, ch *challenge) (*oauthex.ProtectedResourceMetadata, error) {
	u, err := url.Parse(t.resource)
	if err != nil {
		return nil, fault.New(fault.InvalidArgument, "URL of MCP server %s cannot be read", fault.Name(t.server))
	}
	o := t.oauth
	const known = "/.well-known/oauth-protected-resource"
	root := t.root()
	type place struct{ at, of string }
	places := []place{{root + strings.TrimRight(known+u.EscapedPath(), "/"), t.resource}}
	if u.Path != "" && u.Path != "/" {
		places = append(places, place{root + known, root})
	}
	if ch != nil && ch.metadata != "" {
		places = []place{{ch.metadata, t.resource}, {ch.metadata, root}} // it has said where
	}
	var last error
	for _, p := range places {
		ask := &asker{base: t.base}
		d, err := oauthex.GetProtectedResourceMetadata(ctx, p.at, p.of, &http.Client{Transport: ask, CheckRedirect: t.redirect})
		if err == nil {
			return d, nil
		}
		if ask.status < 400 || ask.status >= 500 {
			last = undescribed(o, ask, err)
		}
	}
	return nil, last
}

func undescribed(o *OAuth, ask *asker, err error) error {
	var refused *fault.Error
	if errors.As(ask.err, &refused) || errors.As(err, &refused) {
		return fault.Wrap(refused, refused.Kind, "its description cannot be read: %s", refused.Message).WithHint("%s", refused.Hint)
	}
	if ask.err != nil {
		err = ask.err
	}
	return fault.New(fault.ServerAuth, "its description cannot be read: %s", o.scrub(reason(err)))
}

// sameIssuer compares as the protocol's library does.
func sameIssuer(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }

// asker bounds what authorization servers say, and notes how it went: the errors of those who read it are texts.
type asker struct {
	base   http.RoundTripper
	status int
	err    error
}

// RoundTrip implements http.RoundTripper.
func (a *asker) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", "aidb")
	resp, err := a.base.RoundTrip(r)
	if a.err = err; err != nil {
		return nil, err
	}
	a.status = resp.StatusCode
	resp.Body = &body{ReadCloser: resp.Body, mark: &mark{}, cancel: func() {}, left: maxDocument}
	return resp, nil
}
