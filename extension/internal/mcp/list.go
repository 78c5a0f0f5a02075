package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
)

const (
	maxPages       = 50
	maxTools       = 1000
	maxToolName    = 128
	maxDescription = 4000
	maxSchema      = 64 << 10
)

// Definition is a tool as its server describes it, cleaned. Hash is of all that a model could be shown of it, and of its
// name, as the server sent it: whoever has seen the one knows whether it is still the same.
type Definition struct {
	Name        string
	Description string
	Schema      json.RawMessage
	Output      json.RawMessage // schema of its structured content; nil: none is told
	Hash        string
}

// Info is what a server says of itself.
type Info struct {
	Name     string `json:"name"`
	Version  string `json:"version"`
	Protocol string `json:"protocol"`
}

// Listing is a server's list of tools. LeftOut are tools that cannot be used, with the reason.
type Listing struct {
	Tools   []Definition
	LeftOut []string
	Info    Info
}

// List fetches the list of a server's tools, all pages of it.
func (p *Pool) List(ctx context.Context, srv *Server) (*Listing, error) {
	var l *Listing
	err := p.exchange(ctx, srv, "list", func(ctx context.Context, s *session) error {
		s.changed.Store(false) // what changes while the list comes is seen the next time
		l = &Listing{}
		if r := s.cs.InitializeResult(); r != nil {
			l.Info.Protocol = line(r.ProtocolVersion, 40)
			if r.ServerInfo != nil {
				l.Info.Name, l.Info.Version = line(r.ServerInfo.Name, 100), line(r.ServerInfo.Version, 100)
			}
		}
		return l.fetch(ctx, srv, s.cs)
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (l *Listing) fetch(ctx context.Context, srv *Server, cs *sdk.ClientSession) error {
	seen := map[string]bool{}
	cursors := map[string]bool{}
	cursor, total := "", 0
	for page := 1; ; page++ {
		if page > maxPages {
			return fault.New(fault.LimitExceeded, "its list of tools has more than %d pages", maxPages)
		}
		r, err := cs.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		if err != nil {
			return err
		}
		for _, t := range r.Tools {
			if total++; total > maxTools {
				return fault.New(fault.LimitExceeded, "it offers more than %d tools", maxTools)
			}
			if t == nil {
				continue
			}
			d, problem := define(t)
			if problem == "" && seen[d.Name] {
				problem = "it is listed twice"
			}
			if problem != "" {
				l.LeftOut = append(l.LeftOut, fault.Name(line(t.Name, maxToolName))+": "+problem)
				continue
			}
			seen[d.Name] = true
			l.Tools = append(l.Tools, d)
		}
		if cursor = r.NextCursor; cursor == "" {
			return nil
		}
		if cursors[cursor] || len(cursor) > 64<<10 {
			return fault.New(fault.ServerProtocol, "its list of tools goes round in a circle")
		}
		cursors[cursor] = true
	}
}

// define cleans one tool, or says why it cannot be used.
func define(t *sdk.Tool) (Definition, string) {
	d := Definition{Name: t.Name}
	if !usableName(t.Name) {
		return d, "its name is not made of letters, digits, underscores, hyphens and dots, or is longer than 128"
	}
	schema := t.InputSchema
	if schema == nil {
		schema = map[string]any{"type": "object"}
	}
	object, ok := schema.(map[string]any)
	if !ok {
		return d, "its input schema is not an object"
	}
	if kind, given := object["type"]; given && kind != "object" {
		return d, "its input schema does not describe an object"
	}
	text, err := json.Marshal(object)
	if err != nil {
		return d, "its input schema cannot be read"
	}
	if len(text) > maxSchema {
		return d, "its input schema is too long"
	}
	d.Schema = json.RawMessage(conversation.CleanJSON(string(text)))
	if output, ok := t.OutputSchema.(map[string]any); ok {
		if text, err := json.Marshal(output); err == nil && len(text) <= maxSchema { // nobody is shown one that is longer
			d.Output = json.RawMessage(conversation.CleanJSON(string(text)))
		}
	}
	d.Description = t.Description
	if d.Description == "" {
		d.Description = t.Title
	}
	d.Description = fault.Cut(visible(d.Description), maxDescription)
	// Maps are written in the order of their keys, so that the same definition has the same hash.
	whole, err := json.Marshal([]any{1, t.Name, t.Title, t.Description, object, t.OutputSchema})
	if err != nil {
		return d, "its definition cannot be read"
	}
	sum := sha256.Sum256(whole)
	d.Hash = hex.EncodeToString(sum[:])
	return d, ""
}

func usableName(s string) bool {
	if s == "" || len(s) > maxToolName {
		return false
	}
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && c != '_' && c != '-' && c != '.' {
			return false
		}
	}
	return true
}
