package mcp

import (
	"context"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"aidb/extension/internal/fault"
)

// An enterprise may settle at its identity provider who may use which server, instead of asking each person at each: the provider takes
// the token that says who somebody is (OpenID Connect), and gives an assertion for one authorization server, which gives the token
// for the MCP server in exchange (Identity Assertion Authorization Grant; RFC 8693, RFC 7523).

const (
	grantJWTBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	typeIDToken    = "urn:ietf:params:oauth:token-type:id_token"
	typeAssertion  = "urn:ietf:params:oauth:token-type:id-jag"
)

// asserted asks the identity provider for an assertion about the person whose token is registered, for the authorization server in hand.
func (t *tokens) asserted(ctx context.Context, scopes []string) (string, error) {
	o := t.oauth
	about := o.about(t.from.resource)
	if about["resource"] == "" {
		about["resource"] = t.resource // there is no assertion about nothing
	}
	audience := t.from.audience
	if o.Audience != "" {
		audience = o.Audience
	}
	client := &oauthex.ClientCredentials{ClientID: o.IDPClientID}
	if o.idpSecret != "" {
		client.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: o.idpSecret}
	}
	ask := &asker{base: t.base}
	token, err := oauthex.ExchangeToken(ctx, o.IDPTokenURL, &oauthex.TokenExchangeRequest{
		RequestedTokenType: typeAssertion, SubjectToken: o.idToken, SubjectTokenType: typeIDToken,
		Audience: audience, Resource: about["resource"], Scope: scopes,
	}, client, ask.staying())
	if err != nil {
		return "", t.failure(ctx, ask, o.IDPTokenURL, err)
	}
	if token.Extra("issued_token_type") != typeAssertion || len(token.AccessToken) > maxHeader || ask.status != http.StatusOK {
		return "", fault.New(fault.ServerAuth, "identity provider %s gives no assertion that can be used", host(o.IDPTokenURL))
	}
	return token.AccessToken, nil
}
