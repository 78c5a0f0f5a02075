package mcp

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"aidb/extension/internal/fault"
)

const (
	// defaultRedirect is where the browser is sent when the registration does not say: the loopback address of whoever has the
	// browser, where nobody need listen (RFC 8252, 7.3). The address that it shows then is what Finish takes.
	defaultRedirect = "http://127.0.0.1:27431/callback"
	// offlineAccess is the scope with which some authorization servers give a refresh token.
	offlineAccess = "offline_access"
	// toAnswer is how long the person may take.
	toAnswer = time.Hour
	// early is how long before its end a token is replaced.
	early = 10 * time.Second
)

// Authorization is what a person has allowed, or is being asked for. The database keeps it, as JSON, among its secrets.
type Authorization struct {
	ID string `json:"id"`
	// Serial goes up with each token: of two, the higher one is in force.
	Serial int64 `json:"serial"`

	Issuer       string `json:"issuer,omitempty"`
	TokenURL     string `json:"token_url"`
	Audience     string `json:"audience,omitempty"`
	Resource     string `json:"resource"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret,omitempty"` // of a client that has registered itself
	AuthMethod   string `json:"auth_method"`
	Scope        string `json:"scope,omitempty"`

	// While the person is asked.
	State       string    `json:"state,omitempty"`
	Verifier    string    `json:"verifier,omitempty"`
	RedirectURI string    `json:"redirect_uri,omitempty"`
	SaysIssuer  bool      `json:"says_issuer,omitempty"`
	Asked       time.Time `json:"asked"`

	// Afterwards.
	AccessToken  string    `json:"access_token,omitempty"`
	RefreshToken string    `json:"refresh_token,omitempty"`
	Expiry       time.Time `json:"expiry"`

	code string // for a token, once
}

// ParseAuthorization reads what the database keeps; nil when that is nothing.
func ParseAuthorization(text json.RawMessage) (*Authorization, error) {
	if len(text) == 0 {
		return nil, nil
	}
	a := &Authorization{}
	if json.Unmarshal(text, a) != nil || a.ID == "" {
		return nil, fault.New(fault.Internal, "authorization of an MCP server cannot be read")
	}
	return a, nil
}

// RanOut reports whether the token is of no use any more.
func (a *Authorization) RanOut(now time.Time) bool {
	return !a.Expiry.IsZero() && now.After(a.Expiry.Add(-early))
}

func (a *Authorization) secrets() []string {
	if a == nil {
		return nil
	}
	return []string{a.ClientSecret, a.State, a.Verifier, a.AccessToken, a.RefreshToken, a.code}
}

// Granted is the authorization in use; nil: none.
func (o *OAuth) Granted() *Authorization {
	if o == nil {
		return nil
	}
	return o.granted
}

// Use makes requests go out with the token of that authorization.
func (o *OAuth) Use(a *Authorization) { o.granted = a }

// use takes over the token of the authorization in use.
func (t *tokens) use(o *OAuth) {
	if t == nil || !o.ByPerson() || o.granted == nil {
		return
	}
	t.token.Store(&oauth2.Token{AccessToken: o.granted.AccessToken, TokenType: "Bearer"})
}

// Newest returns an authorization as this process knows it: a refresh token may be good for one time only, and the transaction
// that was to store its successor may have been rolled back.
func (p *Pool) Newest(a *Authorization) *Authorization {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.grants[a.ID]; known != nil && known.Serial > a.Serial {
		return known
	}
	return a
}

func (p *Pool) remember(a *Authorization) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.grants) >= 4*maxSessions {
		clear(p.grants)
	}
	p.grants[a.ID] = a
}

// getting returns what gets tokens for the server, apart from what its sessions use.
func (p *Pool) getting(srv *Server) (*tokens, error) {
	u, err := url.Parse(srv.URL)
	if err != nil {
		return nil, fault.New(fault.InvalidArgument, "URL of MCP server %s cannot be read", fault.Name(srv.Name))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.options.Egress.CheckURL(u); err != nil {
		return nil, err
	}
	base, err := p.transport()
	if err != nil {
		return nil, err
	}
	return newTokens(srv, p.options, base), nil
}

// Reachable refuses a server whose address may not be reached.
func (p *Pool) Reachable(srv *Server) error {
	_, err := p.getting(srv)
	return err
}

// Authorize begins to ask a person: it finds out whom and what for, makes a client known there, and returns the address to open
// in a browser. scope is asked for instead of what the server wants; empty: that.
func (p *Pool) Authorize(ctx context.Context, srv *Server, scope string) (*Authorization, string, error) {
	t, err := p.getting(srv)
	if err != nil {
		return nil, "", srv.unusable(err)
	}
	_, err = p.List(ctx, srv) // without a token the server says what it wants
	var wants *challenge
	if srv.tokens != nil {
		wants = srv.tokens.refusal.Load()
	}
	if err != nil && wants == nil {
		return nil, "", err
	}
	from, err := t.discover(ctx, wants)
	if err != nil {
		return nil, "", srv.unusable(err)
	}
	a := &Authorization{
		ID: uuid.NewString(), Issuer: from.name, TokenURL: from.tokenURL, Audience: from.audience, Resource: from.resource,
		State: rand.Text(), Verifier: oauth2.GenerateVerifier(), RedirectURI: srv.OAuth.redirect(), SaysIssuer: from.saysIssuer, Asked: time.Now(),
	}
	scopes := strings.Fields(scope)
	if len(scopes) == 0 {
		scopes = srv.OAuth.scopes(from, wants)
	}
	a.Scope = strings.Join(admissible(scopes), " ")
	if err := t.identify(ctx, from, a); err != nil {
		return nil, "", srv.unusable(err)
	}
	c := &oauth2.Config{ClientID: a.ClientID, Endpoint: oauth2.Endpoint{AuthURL: from.authorizeURL}, RedirectURL: a.RedirectURI, Scopes: strings.Fields(a.Scope)}
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(a.Verifier)}
	for name, value := range srv.OAuth.about(a.Resource) {
		options = append(options, oauth2.SetAuthURLParam(name, value))
	}
	return a, c.AuthCodeURL(a.State, options...), nil
}

func (o *OAuth) redirect() string {
	if o.RedirectURI != "" {
		return o.RedirectURI
	}
	return defaultRedirect
}

// scopes are those to ask for, by the protocol's order: what the registration says, else the refusal, else the description.
func (o *OAuth) scopes(from *issuer, wants *challenge) []string {
	var scopes []string
	switch {
	case o.Scope != "":
		return strings.Fields(o.Scope)
	case wants != nil && len(wants.scopes) > 0:
		scopes = slices.Clone(wants.scopes)
	default:
		scopes = slices.Clone(from.scopes)
	}
	if from.offline && !slices.Contains(scopes, offlineAccess) {
		scopes = append(scopes, offlineAccess)
	}
	return scopes
}

// admissible are the scopes that are some (RFC 6749, 3.3): they may be a server's words, and are shown in hints.
func admissible(scopes []string) []string {
	var list []string
	length := 0
	for _, s := range scopes {
		bad := strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' || r == '\'' })
		if length += len(s) + 1; bad || length > maxOAuth || len(list) >= maxScopes || slices.Contains(list, s) {
			continue
		}
		list = append(list, s)
	}
	return list
}

// identify settles which client asks: the one of the registration, the one that a document describes where such are known, or
// one that registers itself now (RFC 7591).
func (t *tokens) identify(ctx context.Context, from *issuer, a *Authorization) error {
	o := t.oauth
	document := o.clientSecret == "" && strings.HasPrefix(o.ClientID, "https://")
	if o.ClientID != "" && (!document || from.documents || from.registerURL == "") {
		a.ClientID, a.AuthMethod = o.ClientID, o.AuthMethod
		switch {
		case o.clientSecret == "":
			a.AuthMethod = none
		case a.AuthMethod == "":
			a.AuthMethod = preferred(from.methods, basic, post)
		}
		return nil
	}
	if from.registerURL == "" {
		return fault.New(fault.ServerAuth, "authorization server %s does not register clients by itself", host(from.name)).
			WithHint(`Register one there, with the redirect URI %s, and give its "client_id" in oauth.`, a.RedirectURI)
	}
	ask := &asker{base: t.base}
	wanted := o.AuthMethod
	if wanted == "" {
		wanted = preferred(from.methods, basic, post, none)
	}
	got, err := oauthex.RegisterClient(ctx, from.registerURL, &oauthex.ClientRegistrationMetadata{
		ClientName: "aidb", RedirectURIs: []string{a.RedirectURI}, TokenEndpointAuthMethod: wanted, Scope: a.Scope,
		GrantTypes: []string{byPerson, "refresh_token"}, ResponseTypes: []string{"code"}, ApplicationType: "native",
	}, ask.staying())
	var refused *oauthex.ClientRegistrationError
	switch {
	case errors.As(err, &refused):
		return fault.New(fault.ServerAuth, "authorization server %s does not register aidb: %s", host(from.registerURL), o.scrub(refused.ErrorCode)).
			WithHint(`Register a client there, with the redirect URI %s, and give its "client_id" in oauth.`, a.RedirectURI)
	case err != nil:
		return t.failure(ctx, ask, from.registerURL, err)
	case len(got.ClientID) > maxOAuth || len(got.ClientSecret) > maxHeader:
		return fault.New(fault.ServerAuth, "authorization server %s registers a client that cannot be used", host(from.registerURL))
	}
	a.ClientID, a.ClientSecret, a.AuthMethod = got.ClientID, got.ClientSecret, got.TokenEndpointAuthMethod
	switch {
	case a.ClientSecret == "":
		a.AuthMethod = none
	case a.AuthMethod != basic && a.AuthMethod != post:
		a.AuthMethod = preferred([]string{wanted}, basic, post)
	}
	return nil
}

// preferred is the first of the choices that is offered; the first one of all where nothing is said.
func preferred(offered []string, choices ...string) string {
	for _, c := range choices {
		if slices.Contains(offered, c) {
			return c
		}
	}
	return choices[0]
}

// Finish takes the address that the browser was sent to, and gets the first token for the code in it.
func (p *Pool) Finish(ctx context.Context, srv *Server, a *Authorization, redirected string) (*Authorization, error) {
	u, err := url.Parse(strings.TrimSpace(redirected))
	if err != nil || len(redirected) > maxRedirected {
		return nil, fault.New(fault.InvalidArgument, "redirected_url cannot be read").
			WithHint("Give the whole address that the browser shows after the authorization server has sent it to %s.", a.RedirectURI)
	}
	said := u.Query()
	switch {
	case subtle.ConstantTimeCompare([]byte(said.Get("state")), []byte(a.State)) != 1:
		return nil, fault.New(fault.InvalidArgument, "redirected_url does not belong to the authorization of MCP server %s under way", fault.Name(srv.Name)).
			WithHint("Only the newest address of aidb.authorize_mcp_server counts. Give the whole address that the browser shows.")
	case time.Since(a.Asked) > toAnswer:
		return nil, fault.New(fault.WrongState, "authorization of MCP server %s was begun too long ago", fault.Name(srv.Name)).WithHint("%s", srv.Again(""))
	case a.SaysIssuer && said.Get("iss") == "", said.Get("iss") != "" && said.Get("iss") != a.Issuer:
		return nil, fault.New(fault.ServerAuth, "redirected_url is not from authorization server %s", host(a.Issuer)).WithHint("%s", srv.Again(""))
	case said.Get("error") != "":
		return nil, fault.New(fault.ServerAuth, "MCP server %s was not authorized: %s", fault.Name(srv.Name), srv.scrub(said.Get("error"))).WithHint("%s", srv.Again(""))
	case said.Get("code") == "":
		return nil, fault.New(fault.InvalidArgument, "redirected_url has no code").WithHint("Give the whole address that the browser shows.")
	}
	granted := *a
	granted.code = said.Get("code")
	return p.obtain(ctx, srv, &granted, url.Values{
		"grant_type": {byPerson}, "code": {granted.code}, "redirect_uri": {a.RedirectURI}, "code_verifier": {a.Verifier},
	})
}

const maxRedirected = 16 << 10

// Refresh gets a new token for the refresh token of the authorization in use.
func (p *Pool) Refresh(ctx context.Context, srv *Server) (*Authorization, error) {
	a := *srv.OAuth.granted
	return p.obtain(ctx, srv, &a, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {a.RefreshToken}})
}

// obtain asks for a token and returns the authorization with it.
func (p *Pool) obtain(ctx context.Context, srv *Server, a *Authorization, params url.Values) (*Authorization, error) {
	srv.OAuth.Use(a)
	t, err := p.getting(srv)
	if err != nil {
		return nil, srv.unusable(err)
	}
	c := &clientcredentials.Config{ClientID: a.ClientID, ClientSecret: a.ClientSecret, TokenURL: a.TokenURL, AuthStyle: oauth2.AuthStyleInHeader, EndpointParams: params}
	if c.ClientSecret == "" && a.ClientID == srv.OAuth.ClientID {
		c.ClientSecret = srv.OAuth.clientSecret
	}
	if a.AuthMethod != basic {
		c.AuthStyle = oauth2.AuthStyleInParams
	}
	for name, value := range srv.OAuth.about(a.Resource) {
		params.Set(name, value)
	}
	token, err := t.ask(ctx, c, a.Audience)
	if err != nil {
		failed := srv.unusable(err)
		var f *fault.Error
		if errors.As(failed, &f) && f.Kind == fault.ServerAuth && f.Hint == "" {
			return nil, f.WithHint("%s", srv.Again(""))
		}
		return nil, failed
	}
	fresh := *a
	fresh.Serial++
	fresh.State, fresh.Verifier, fresh.code = "", "", ""
	fresh.AccessToken, fresh.Expiry = token.AccessToken, token.Expiry
	if token.RefreshToken != "" && len(token.RefreshToken) <= maxHeader {
		fresh.RefreshToken = token.RefreshToken
	}
	if scope, ok := token.Extra("scope").(string); ok && scope != "" {
		fresh.Scope = strings.Join(admissible(strings.Fields(scope)), " ")
	}
	p.remember(&fresh)
	srv.OAuth.Use(&fresh)
	return &fresh, nil
}
