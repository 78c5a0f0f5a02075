package pgstore

import (
	"context"
	"encoding/json"
	"time"

	"aidb/extension/internal/fault"
	"aidb/extension/internal/spi"
)

// MCPServer is a registered MCP server.
type MCPServer struct {
	Name        string
	URL         string
	Transport   string
	Headers     json.RawMessage // stored ones; nil: none
	HeadersEnv  string
	HeadersFile string
	OAuth       json.RawMessage // settings without their secret, which is among the headers; nil: none
	Granted     json.RawMessage // what a person has authorized; nil: nothing
	Timeout     time.Duration   // 0: the setting's
	Concurrency int             // 0: the default
	Elicitation bool            // a request for input is answered with its defaults
	Age         time.Duration   // of its list of tools; negative: it was never fetched
}

// MCPTool is a tool of a server and what is to be known before it is called.
type MCPTool struct {
	Server MCPServer
	Tool   string // the server's name for it
	Hash   string // of the definition that was approved
	Waits  bool   // a changed definition waits for approval
	// Allowed says whether the purpose admits the server.
	Allowed bool
}

const serverColumns = `s.name, s.url, s.transport, s.header_source, c.headers, s.headers_env, s.headers_file, s.oauth, a.granted, s.timeout_ms,
       s.max_concurrency, s.elicitation = 'defaults', coalesce(extract(epoch FROM clock_timestamp() - s.fetched_at), -1)::bigint`

const serverSQL = `
SELECT ` + serverColumns + `
FROM aidb_internal.mcp_servers s
LEFT JOIN aidb_internal.mcp_credentials c ON c.server = s.name
LEFT JOIN aidb_internal.mcp_authorizations a ON a.server = s.name
WHERE s.name = $1`

const mcpToolSQL = `
SELECT ` + serverColumns + `, t.tool, t.hash, t.new_hash IS NOT NULL,
       coalesce(s.name = ANY ((SELECT p.allowed_servers FROM aidb_internal.purpose_registry p WHERE p.name = $2)::text[]), true)
FROM aidb_internal.mcp_tools t
JOIN aidb_internal.mcp_servers s ON s.name = t.server
LEFT JOIN aidb_internal.mcp_credentials c ON c.server = s.name
LEFT JOIN aidb_internal.mcp_authorizations a ON a.server = s.name
WHERE t.name = $1 AND t.listed`

func (r *row) server() (MCPServer, error) {
	s := MCPServer{Name: r.text(), URL: r.text(), Transport: r.text()}
	source := r.text()
	s.Headers, s.HeadersEnv, s.HeadersFile, s.OAuth = r.raw(), r.text(), r.text(), r.raw()
	s.Granted = r.raw()
	if ms := r.number(); ms != nil {
		s.Timeout = time.Duration(*ms) * time.Millisecond
	}
	if n := r.number(); n != nil {
		s.Concurrency = *n
	}
	s.Elicitation = r.bool()
	if age := r.number(); age != nil {
		s.Age = time.Duration(*age) * time.Second
	}
	if r.err == nil && source == "stored" && s.Headers == nil {
		return s, fault.New(fault.WrongState, "MCP server %s has no headers in this database", fault.Name(s.Name)).
			WithHint("A dump does not hold them: give them again with aidb.update_mcp_server.")
	}
	return s, r.err
}

// MCPServer returns a registered server; an error of kind NotFound when there is none of that name.
func (s *Store) MCPServer(ctx context.Context, name string) (MCPServer, error) {
	rows, err := s.host.Batch(ctx, spi.Statement{SQL: serverSQL, Args: []any{name}})
	if err != nil {
		return MCPServer{}, err
	}
	r, ok := firstRow(rows)
	if !ok {
		return MCPServer{}, fault.New(fault.NotFound, "MCP server %s not found", fault.Name(name))
	}
	return r.server()
}

// MCPTool returns a tool with its server as they are now; false when there is none of that name any more.
func (s *Store) MCPTool(ctx context.Context, name, purpose string) (MCPTool, bool, error) {
	rows, err := s.host.Batch(ctx, spi.Statement{SQL: mcpToolSQL, Args: []any{name, purpose}})
	if err != nil {
		return MCPTool{}, false, err
	}
	r, ok := firstRow(rows)
	if !ok {
		return MCPTool{}, false, nil
	}
	var t MCPTool
	if t.Server, err = r.server(); err != nil {
		return t, true, err
	}
	t.Tool, t.Hash, t.Waits, t.Allowed = r.text(), r.text(), r.bool(), r.bool()
	return t, true, r.err
}

// MCPAuthorization returns what is kept of the authorization of a server, locked: what a person is being asked for, and what is
// granted. nil: nothing.
func (s *Store) MCPAuthorization(ctx context.Context, server string) (pending, granted json.RawMessage, err error) {
	rows, err := s.host.Batch(ctx, spi.Statement{
		SQL:  `SELECT a.pending, a.granted FROM aidb_internal.mcp_authorizations a WHERE a.server = $1 FOR UPDATE`,
		Args: []any{server},
	})
	if err != nil {
		return nil, nil, err
	}
	r, ok := firstRow(rows)
	if !ok {
		return nil, nil, nil
	}
	pending, granted = r.raw(), r.raw()
	return pending, granted, r.err
}

// BeginMCPAuthorization keeps what a person is asked for, beside what is granted.
func (s *Store) BeginMCPAuthorization(ctx context.Context, server string, pending json.RawMessage) error {
	_, err := s.host.Batch(ctx, spi.Statement{SQL: `
INSERT INTO aidb_internal.mcp_authorizations (server, pending) VALUES ($1, $2::jsonb)
ON CONFLICT (server) DO UPDATE SET pending = excluded.pending`, Args: []any{server, string(pending)}})
	return err
}

// GrantMCPAuthorization keeps what is granted, and since when if it is new.
func (s *Store) GrantMCPAuthorization(ctx context.Context, server string, granted json.RawMessage) error {
	_, err := s.host.Batch(ctx, spi.Statement{SQL: `
UPDATE aidb_internal.mcp_authorizations a SET granted = $2::jsonb,
    pending = CASE WHEN a.pending ->> 'id' = $2::jsonb ->> 'id' THEN NULL ELSE a.pending END,
    granted_at = CASE WHEN a.granted ->> 'id' = $2::jsonb ->> 'id' THEN a.granted_at ELSE clock_timestamp() END
WHERE a.server = $1`, Args: []any{server, string(granted)}})
	return err
}

// Stale returns the servers whose lists are older than that, those first that were fetched longest ago.
func (s *Store) Stale(ctx context.Context, age time.Duration) ([]string, error) {
	rows, err := s.host.Batch(ctx, spi.Statement{SQL: `
SELECT s.name FROM aidb_internal.mcp_servers s
WHERE s.fetched_at IS NULL OR s.fetched_at < clock_timestamp() - make_interval(secs => $1::float8)
ORDER BY s.fetched_at NULLS FIRST LIMIT 10`, Args: []any{age.Seconds()}})
	if err != nil {
		return nil, err
	}
	return column(rows[0]), nil
}

// ToolNames returns the names of all tools.
func (s *Store) ToolNames(ctx context.Context) ([]string, error) {
	rows, err := s.host.Batch(ctx, spi.Statement{SQL: `SELECT DISTINCT t.name FROM aidb.tools t ORDER BY 1`})
	if err != nil {
		return nil, err
	}
	return column(rows[0]), nil
}

func column(rows spi.Rows) []string {
	list := make([]string, 0, len(rows.Values))
	for _, v := range rows.Values {
		if v[0] != nil {
			list = append(list, *v[0])
		}
	}
	return list
}

// MCPOutputSchemas returns the schemas of the structured content of MCP servers' tools, by the name of the tool.
func (s *Store) MCPOutputSchemas(ctx context.Context) (map[string]string, error) {
	rows, err := s.host.Batch(ctx, spi.Statement{
		SQL: `SELECT t.name, t.output_schema::text FROM aidb_internal.mcp_tools t WHERE t.listed AND t.output_schema IS NOT NULL`,
	})
	if err != nil {
		return nil, err
	}
	schemas := make(map[string]string, len(rows[0].Values))
	for _, v := range rows[0].Values {
		schemas[*v[0]] = *v[1]
	}
	return schemas, nil
}

// StoreMCPTools stores the list that a server gave and returns how many of its tools there are now. Definitions is an
// array of {tool, description, schema, output, hash}. Without wait nothing is stored while another transaction is at it: false.
func (s *Store) StoreMCPTools(ctx context.Context, server string, definitions, info json.RawMessage, wait bool) (int, bool, error) {
	rows, err := s.host.Batch(ctx, spi.Statement{
		SQL:  `SELECT aidb_internal.store_mcp_tools($1, $2::jsonb, $3::jsonb, $4::boolean)`,
		Args: []any{server, string(definitions), string(info), wait},
	})
	if err != nil {
		return 0, false, err
	}
	r, ok := firstRow(rows)
	if !ok {
		return 0, false, nil
	}
	n := r.number()
	if n == nil {
		return 0, false, r.err
	}
	return *n, true, nil
}
