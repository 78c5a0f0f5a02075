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
		return authorised(ctx, conn, scenario, name, url)
	}
	_, err = conn.Exec(ctx, `SELECT aidb.import_mcp_tools($1, $2, elicitation => 'defaults')`, name, url)
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

// document is the address of a document about a client, which the authorization server of one scenario knows.
const document = "https://conformance-test.local/client-metadata.json"

// authorised registers a server that wants tokens as an administrator would: with what the authorization server has given the
// client (MCP_CONFORMANCE_CONTEXT), and with that server's address, which he knows. Here it is in the server's description. Where
// the client is not one that asks by itself, a person says yes.
func authorised(ctx context.Context, conn *pgx.Conn, scenario, name, url string) error {
	var client struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
		Key    string `json:"private_key_pem"`
		With   string `json:"signing_algorithm"`
		// of the identity provider
		IDPClient string `json:"idp_client_id"`
		IDToken   string `json:"idp_id_token"`
		IDPToken  string `json:"idp_token_endpoint"`
	}
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &client); err != nil {
			return err
		}
	}
	secret, settings := map[string]string{}, map[string]string{}
	if client.Secret != "" {
		secret["client_secret"] = client.Secret
	}
	if client.Key != "" {
		secret["private_key"] = client.Key
	}
	if client.ID != "" {
		settings = map[string]string{"client_id": client.ID, "issuer": issuer(ctx, url), "algorithm": client.With}
	}
	byItself := strings.HasPrefix(scenario, "auth/client-credentials")
	if client.IDToken != "" {
		byItself = true
		secret["id_token"] = client.IDToken
		settings["grant"], settings["idp_token_url"], settings["idp_client_id"] = "identity_assertion", client.IDPToken, client.IDPClient
	}
	if !byItself {
		settings["grant"] = "authorization_code"
	}
	if scenario == "auth/basic-cimd" {
		settings["client_id"] = document
	}
	_, err := conn.Exec(ctx, `SELECT aidb.import_mcp_tools($1, $2, headers => $3, oauth => $4)`, name, url, secret, settings)
	if err != nil {
		return err
	}
	if byItself {
		return callFirst(ctx, conn, name)
	}
	var scope *string
	for range 3 {
		if err = saysYes(ctx, conn, name, scope); err == nil {
			err = callFirst(ctx, conn, name)
		}
		var e *pgconn.PgError
		if !errors.As(err, &e) {
			return err
		}
		_, after, more := strings.Cut(e.Hint, "scope => '")
		if !more {
			return err
		}
		wanted, _, _ := strings.Cut(after, "'")
		scope = &wanted
	}
	return err
}

func callFirst(ctx context.Context, conn *pgx.Conn, name string) error {
	_, err := conn.Exec(ctx, `SELECT aidb.run_tool(t.name) FROM aidb.mcp_tools t WHERE t.server = $1 LIMIT 1`, name)
	return err
}

// saysYes is what the person does: opens the address in a browser, here one that says yes by itself, and gives back the address
// that it ends at.
func saysYes(ctx context.Context, conn *pgx.Conn, name string, scope *string) error {
	var address string
	if err := conn.QueryRow(ctx, `SELECT aidb.authorize_mcp_server($1, $2)`, name, scope).Scan(&address); err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := browser.Do(r)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	_, err = conn.Exec(ctx, `SELECT aidb.finish_mcp_authorization($1, $2)`, name, resp.Header.Get("Location"))
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
