// Command conformance is the client that the protocol's own conformance tests start: it does with a server what the scenario
// asks for, through SQL. AIDB_TEST_DATABASE says where, MCP_CONFORMANCE_SCENARIO what; the address comes last.
package main

import (
	"context"
	"errors"
	"fmt"
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
	_, err = conn.Exec(ctx, `SELECT aidb.import_mcp_tools('conformance', $1)`, url)
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
	if strings.HasPrefix(scenario, "auth/") {
		return fmt.Errorf("a server that wants a token let us in: %s", scenario)
	}
	defer func() { _, _ = conn.Exec(ctx, `SELECT aidb.delete_tool('conformance')`) }()
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
