// Command conformance is the client that the protocol's own conformance tests start: it does with a server what the scenario
// asks for, through SQL. AIDB_TEST_DATABASE says where, MCP_CONFORMANCE_SCENARIO what; the address comes last.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx, os.Getenv("MCP_CONFORMANCE_SCENARIO"), os.Args[len(os.Args)-1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, scenario, url string) error {
	conn, err := pgx.Connect(ctx, os.Getenv("AIDB_TEST_DATABASE"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	// Scenarios run at the same time, and their servers' tools have the same names.
	name := "c_" + strings.NewReplacer("/", "_").Replace(scenario)
	defer func() { _, _ = conn.Exec(context.WithoutCancel(ctx), `SELECT aidb.delete_tool($1)`, name) }()
	if strings.HasPrefix(scenario, "auth/") {
		return authorised(ctx, conn, name, url)
	}
	_, err = conn.Exec(ctx, `SELECT aidb.import_mcp_tools($1, $2)`, name, url)
	if scenario == "initialize" {
		var e *pgconn.PgError
		if errors.As(err, &e) && e.Code == "42704" {
			return nil // its server has no tools, which is said after the handshake
		}
		return fmt.Errorf("a server without tools was taken: %w", err)
	}
	if err != nil {
		return err
	}
	call, known := map[string]string{
		"tools_call":                          `SELECT aidb.run_tool('add_numbers', '{"a": 5, "b": 3}')`,
		"sse-retry":                           `SELECT aidb.run_tool('test_reconnection')`,
		"elicitation-sep1034-client-defaults": `SELECT aidb.run_tool('test_client_elicitation_defaults')`,
	}[scenario]
	if !known {
		return fmt.Errorf("scenario %q is not known here", scenario)
	}
	_, err = conn.Exec(ctx, call)
	return err
}

// authorised registers a server that wants tokens as an administrator would: with what the authorization server has given the
// client (MCP_CONFORMANCE_CONTEXT), and with that server's address, which he knows. Here it is in the server's description.
func authorised(ctx context.Context, conn *pgx.Conn, name, url string) error {
	var client struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
		Key    string `json:"private_key_pem"`
		With   string `json:"signing_algorithm"`
	}
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &client); err != nil {
			return err
		}
	}
	if client.ID == "" {
		client.ID, client.Secret = "no-client", "no-secret" // the scenario is not about one that is registered
	}
	secret := map[string]string{"client_secret": client.Secret}
	if client.Key != "" {
		secret = map[string]string{"private_key": client.Key}
	}
	settings := map[string]string{"client_id": client.ID, "issuer": issuer(ctx, url), "algorithm": client.With}
	_, err := conn.Exec(ctx, `SELECT aidb.import_mcp_tools($1, $2, headers => $3, oauth => $4)`, name, url, secret, settings)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, `SELECT aidb.run_tool(t.name) FROM aidb.mcp_tools t WHERE t.server = $1 LIMIT 1`, name)
	return err
}

// issuer is the authorization server that a server names, else the server itself.
func issuer(ctx context.Context, url string) string {
	root, path, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
	root = "http://" + root
	places := []string{root + "/.well-known/oauth-protected-resource/" + path, root + "/.well-known/oauth-protected-resource"}
	if resp, err := send(ctx, http.MethodPost, url); err == nil {
		_ = resp.Body.Close()
		if _, at, ok := strings.Cut(resp.Header.Get("Www-Authenticate"), `resource_metadata="`); ok {
			at, _, _ = strings.Cut(at, `"`)
			places = []string{at}
		}
	}
	for _, at := range places {
		resp, err := send(ctx, http.MethodGet, at)
		if err != nil {
			continue
		}
		var d struct {
			Servers []string `json:"authorization_servers"`
		}
		err = json.NewDecoder(resp.Body).Decode(&d)
		_ = resp.Body.Close()
		if err == nil && len(d.Servers) > 0 {
			return d.Servers[0]
		}
	}
	return root
}

func send(ctx context.Context, method, url string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return nil, err
	}
	return http.DefaultClient.Do(r)
}
