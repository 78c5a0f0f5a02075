package mcp

import (
	"errors"
	"net/http"
	"strings"

	"aidb/extension/internal/fault"
)

// NotAuthorized is the failure of a call of a server that nobody has authorized.
func (s *Server) NotAuthorized() error {
	return &Failure{Outcome: NeverSent, Err: fault.New(fault.ServerAuth, "MCP server %s is not authorized", fault.Name(s.Name)).WithHint("%s", s.Again(""))}
}

// TokenRefused reports whether a server has refused the token, and another one may do.
func TokenRefused(err error) bool {
	var f *Failure
	return errors.As(err, &f) && f.refused
}

// notAuthorized says what a person would have to allow.
func (s *Server) notAuthorized(status int) error {
	if ch := s.tokens.refusal.Load(); status == http.StatusForbidden && ch != nil && ch.more {
		if more := admissible(ch.scopes); len(more) > 0 {
			var all []string
			if a := s.OAuth.granted; a != nil {
				all = strings.Fields(a.Scope)
			}
			return fault.New(fault.ServerAuth, "MCP server %s wants scopes that it was not authorized with: %s", fault.Name(s.Name), strings.Join(more, " ")).
				WithHint("%s", s.Again(strings.Join(admissible(append(all, more...)), " ")))
		}
	}
	return fault.New(fault.ServerAuth, "MCP server %s does not accept the token (HTTP %d)", fault.Name(s.Name), status).WithHint("%s", s.Again(""))
}

// Again says how a person is asked.
func (s *Server) Again(scope string) string {
	if scope != "" {
		scope = ", scope => '" + scope + "'"
	}
	return "Its owner can ask for an authorization: SELECT aidb.authorize_mcp_server('" + line(s.Name, 64) + "'" + scope + ")."
}

// unusable is an error of what comes before a server is spoken to.
func (s *Server) unusable(err error) error {
	var refused *fault.Error
	if !errors.As(err, &refused) {
		return err
	}
	return fault.Wrap(refused, refused.Kind, "MCP server %s cannot be used: %s", fault.Name(s.Name), refused.Message).WithHint("%s", refused.Hint)
}
