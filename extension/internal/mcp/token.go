package mcp

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"aidb/extension/internal/egress"
	"aidb/extension/internal/fault"
)

// How a client with a secret says who it is.
const (
	basic = "client_secret_basic"
	post  = "client_secret_post"
	none  = "none" // a client without one
)

const (
	// maxDocument bounds what an authorization server, or the description of one, may say.
	maxDocument = 128 << 10
	// maxScopes bounds the scopes that servers ask for.
	maxScopes = 100
	// assertionLife is how long a signed assertion holds.
	assertionLife = time.Minute
)

// tokens are the tokens for one server of one client: there is one at a time, kept in memory only, for all sessions of the
// process. It is safe for concurrent use.
type tokens struct {
	oauth    *OAuth
	server   string // its name
	resource string // its address
	base     http.RoundTripper
	redirect func(next *http.Request, via []*http.Request) error

	token   atomic.Pointer[oauth2.Token]
	refusal atomic.Pointer[challenge] // the newest, where a person has to be asked
	turn    chan struct{}             // whoever gets a token holds it, and what is below
	from    *issuer                   // nil: not looked up
	asked   []string                  // scopes
}

func newTokens(srv *Server, o Options, base http.RoundTripper) *tokens {
	guard := egress.NewGuard(o.Egress, 0)
	resource := srv.URL
	if u, err := url.Parse(srv.URL); err == nil {
		u.RawQuery, u.Fragment = "", "" // it may hold a secret
		resource = u.String()
	}
	return &tokens{
		oauth: srv.OAuth, server: srv.Name, resource: resource, base: guard.Wrap(base), redirect: guard.Redirect, turn: make(chan struct{}, 1),
	}
}

// current returns the token to send: nil as long as the server has not asked for one and it is to say which.
func (t *tokens) current(ctx context.Context) (*oauth2.Token, error) {
	token := t.token.Load()
	if t.oauth.ByPerson() {
		return token, nil // whoever uses the server has replaced one that has run out
	}
	if token.Valid() || token == nil && t.oauth.TokenURL == "" {
		return token, nil
	}
	return t.renew(ctx, token, nil)
}

// challenge is what a refusal says of the token that is wanted.
type challenge struct {
	metadata string // where the server describes itself
	scopes   []string
	more     bool // the token is good, and not enough
}

// challenged returns what a refusal says; nil when the answer is none.
func challenged(resp *http.Response) *challenge {
	if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
		return nil
	}
	ch := &challenge{}
	said, _ := oauthex.ParseWWWAuthenticate(resp.Header.Values("Www-Authenticate")) // one that cannot be read says nothing
	for _, s := range said {
		if s.Scheme != "bearer" {
			continue
		}
		ch.metadata = s.Params["resource_metadata"]
		ch.scopes = strings.Fields(s.Params["scope"])
		ch.more = s.Params["error"] == "insufficient_scope"
	}
	if resp.StatusCode == http.StatusForbidden && !ch.more {
		return nil // another token would not help
	}
	return ch
}

// renew returns a token in place of an old one, which somebody else may have got meanwhile; nil when there is no other to
// be had. ch is nil when the old one has run out.
func (t *tokens) renew(ctx context.Context, old *oauth2.Token, ch *challenge) (*oauth2.Token, error) {
	if t.oauth.ByPerson() {
		t.refusal.Store(ch)
		return nil, nil
	}
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if now := t.token.Load(); now != old && now.Valid() {
		return now, nil
	}
	if ch != nil && t.oauth.Scope == "" && len(ch.scopes) > 0 {
		before := len(t.asked)
		for _, s := range ch.scopes {
			if !slices.Contains(t.asked, s) && len(t.asked) < maxScopes {
				t.asked = append(t.asked, s)
			}
		}
		if ch.more && len(t.asked) == before {
			return nil, nil // that is what it has
		}
	} else if ch != nil && ch.more {
		return nil, nil
	}
	if t.from == nil {
		from, err := t.discover(ctx, ch)
		if err != nil {
			return nil, err
		}
		t.from = from
	}
	token, err := t.request(ctx)
	if err != nil {
		t.from = nil // it may have moved
		return nil, err
	}
	t.token.Store(token)
	return token, nil
}

// request asks for a token.
func (t *tokens) request(ctx context.Context) (*oauth2.Token, error) {
	o := t.oauth
	c := &clientcredentials.Config{ClientID: o.ClientID, ClientSecret: o.clientSecret, TokenURL: t.from.tokenURL, AuthStyle: t.from.style, EndpointParams: url.Values{}}
	switch scopes := strings.Fields(o.Scope); {
	case len(scopes) > 0:
		c.Scopes = scopes
	case len(t.asked) > 0:
		c.Scopes = t.asked
	default:
		t.asked = slices.Clone(t.from.scopes)
		c.Scopes = t.asked
	}
	for name, value := range o.about(t.from.resource) {
		c.EndpointParams.Set(name, value)
	}
	if o.Grant == asserted {
		assertion, err := t.asserted(ctx, c.Scopes)
		if err != nil {
			return nil, err
		}
		c.EndpointParams = url.Values{"grant_type": {grantJWTBearer}, "assertion": {assertion}}
	}
	return t.ask(ctx, c, t.from.audience)
}

// about are the parameters that say what a token is for.
func (o *OAuth) about(resource string) map[string]string {
	about := map[string]string{"resource": resource}
	if o.Resource != nil {
		about["resource"] = *o.Resource
	}
	if about["resource"] == "" {
		delete(about, "resource")
	}
	if o.Audience != "" {
		about["audience"] = o.Audience
	}
	return about
}

// ask asks for a token, by whatever grant is among the parameters; audience is that of an assertion.
func (t *tokens) ask(ctx context.Context, c *clientcredentials.Config, audience string) (*oauth2.Token, error) {
	o := t.oauth
	if o.privateKey != "" && c.ClientID == o.ClientID {
		signed, err := o.assertion(audience, time.Now())
		if err != nil {
			return nil, err
		}
		c.AuthStyle = oauth2.AuthStyleInParams
		c.EndpointParams.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		c.EndpointParams.Set("client_assertion", signed)
	}
	ask := &asker{base: t.base}
	client := ask.staying()
	token, err := c.Token(context.WithValue(ctx, oauth2.HTTPClient, client))
	if err != nil {
		return nil, t.failure(ctx, ask, c.TokenURL, err)
	}
	if !strings.EqualFold(token.Type(), "Bearer") || len(token.AccessToken) > maxHeader {
		return nil, fault.New(fault.ServerAuth, "authorization server %s gives a token that cannot be used", host(c.TokenURL))
	}
	return token, nil
}

// staying is a client that follows no redirect: it would take the secret elsewhere.
func (a *asker) staying() *http.Client {
	return &http.Client{Transport: a, CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirected }}
}

var errRedirected = errors.New("it redirects, which is not followed")

// failure says why there is no token, without a word of ours that is secret.
func (t *tokens) failure(ctx context.Context, ask *asker, address string, err error) error {
	name := host(address)
	var refused *fault.Error
	var said *oauth2.RetrieveError
	switch {
	case errors.As(ask.err, &refused), errors.As(err, &refused):
		return fault.Wrap(refused, refused.Kind, "authorization server %s cannot be used: %s", name, refused.Message).WithHint("%s", refused.Hint)
	case errors.As(err, &said):
		code := said.ErrorCode
		if code == "" {
			code = "no reason given"
		}
		status := 0
		if said.Response != nil {
			status = said.Response.StatusCode
		}
		return fault.New(fault.ServerAuth, "authorization server %s gives no token: %s (HTTP %d)", name, t.oauth.scrub(code), status)
	case ctx.Err() != nil:
		return fault.New(fault.ServerUnavailable, "authorization server %s did not answer in time", name)
	case ask.err != nil:
		return fault.New(fault.ServerUnavailable, "authorization server %s cannot be reached: %s", name, t.oauth.scrub(reason(ask.err)))
	}
	return fault.New(fault.ServerAuth, "authorization server %s gives an answer that cannot be used: %s", name, t.oauth.scrub(reason(err)))
}

func (o *OAuth) scrub(text string) string {
	return (&Server{OAuth: o}).scrub(text)
}

func host(address string) string {
	if u, err := url.Parse(address); err == nil {
		return fault.Name(u.Host)
	}
	return fault.Name("")
}

// assertion is what proves by a signature who the client is (RFC 7523).
func (o *OAuth) assertion(audience string, now time.Time) (string, error) {
	key, method, err := signer(o.privateKey)
	if err != nil {
		return "", err
	}
	if o.Algorithm != "" {
		method = jwt.GetSigningMethod(o.Algorithm)
	}
	unusable := fault.New(fault.InvalidArgument, "oauth private_key cannot be used with that algorithm")
	if method == nil || strings.HasPrefix(method.Alg(), "HS") || method.Alg() == "none" {
		return "", unusable
	}
	t := jwt.NewWithClaims(method, jwt.RegisteredClaims{
		Issuer: o.ClientID, Subject: o.ClientID, Audience: jwt.ClaimStrings{audience}, ID: uuid.NewString(),
		IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(assertionLife)),
	})
	if o.KeyID != "" {
		t.Header["kid"] = o.KeyID
	}
	signed, err := t.SignedString(key)
	if err != nil {
		return "", unusable
	}
	return signed, nil
}

// signer reads a private key, and says which algorithm is usual for it.
func signer(text string) (crypto.PrivateKey, jwt.SigningMethod, error) {
	unusable := fault.New(fault.InvalidArgument, "oauth private_key cannot be read").
		WithHint("It must be an RSA, EC or Ed25519 key in PEM, without a password.")
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, nil, unusable
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		if key, err = x509.ParsePKCS1PrivateKey(block.Bytes); err != nil {
			if key, err = x509.ParseECPrivateKey(block.Bytes); err != nil {
				return nil, nil, unusable
			}
		}
	}
	switch k := key.(type) {
	case *rsa.PrivateKey:
		return k, jwt.SigningMethodRS256, nil
	case *ecdsa.PrivateKey:
		switch k.Curve.Params().BitSize {
		case 256:
			return k, jwt.SigningMethodES256, nil
		case 384:
			return k, jwt.SigningMethodES384, nil
		case 521:
			return k, jwt.SigningMethodES512, nil
		}
	case ed25519.PrivateKey:
		return k, jwt.SigningMethodEdDSA, nil
	}
	return nil, nil, unusable
}
