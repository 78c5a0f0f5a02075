// Command mcpcall measures what one call of an MCP server's tool costs beyond the time that the server itself takes.
//
//	go run ./tests/bench/mcpcall [-quick] [-n 20] [-calls 200]      (after make install; make bench runs it, too)
//
// The server is one of this program's own, on loopback over streamable HTTP, with a tool that answers at once. An agent is
// called once with a model that answers at once and once with one that asks for N calls first, all in one reply. The
// difference of the two medians, divided by N, is what a call costs; the time from the server's first sight of a request to
// the end of its answer, median too, is taken off.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"aidb/tests/bench/measure"
	"aidb/tests/cluster"
)

const goal = time.Millisecond

func main() {
	n := flag.Int("n", 20, "tool calls in one agent call")
	measure.Calls("mcpcall", 200, func(ctx context.Context, calls int) error { return run(ctx, *n, calls) })
}

// timed is the server with a clock around each tool call.
type timed struct {
	http.Handler
	mu   sync.Mutex
	took []time.Duration
}

func (s *timed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	s.Handler.ServeHTTP(w, r)
	if r.Method == http.MethodPost {
		s.mu.Lock()
		s.took = append(s.took, time.Since(start))
		s.mu.Unlock()
	}
}

func (s *timed) median() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return measure.Median(s.took)
}

type noted struct {
	Text string `json:"text" jsonschema:"what to note"`
}

func newServer() *timed {
	server := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "note", Description: "Notes a text."}, func(_ context.Context, _ *mcp.CallToolRequest, in noted) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "noted: " + in.Text}}}, nil, nil
	})
	return &timed{Handler: mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{JSONResponse: true})}
}

func run(ctx context.Context, n, calls int) error {
	c, err := cluster.New(ctx, cluster.Options{})
	if err != nil {
		return err
	}
	defer c.Remove()
	server := newServer()
	web := httptest.NewServer(server)
	defer web.Close()
	if err := prepare(ctx, c, web.URL, n); err != nil {
		return err
	}
	conn, err := c.Connect(ctx, "bench_caller", "postgres")
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	without, with, err := measure.InTurn(20, calls,
		func() (time.Duration, error) { return ask(ctx, conn, "none", 0) },
		func() (time.Duration, error) { return ask(ctx, conn, "many", n) })
	if err != nil {
		return err
	}
	one := (measure.Median(with) - measure.Median(without)) / time.Duration(n)
	us := func(d time.Duration) string { return measure.Micros(d, 0) }
	fmt.Printf("One call of an MCP tool; medians of %d agent calls, %d tool calls in each. Goal: under %s beyond the server's own time.\n\n", calls, n, us(goal))
	fmt.Printf("%12s %14s %10s %12s %10s\n%12s %14s %10s %12s %10s\n", "no tool call", fmt.Sprintf("%d of them", n), "one costs", "the server's", "beyond",
		us(measure.Median(without)), us(measure.Median(with)), us(one), us(server.median()), us(one-server.median()))
	return nil
}

// prepare registers the server and two agents on scripted models.
func prepare(ctx context.Context, c *cluster.Cluster, url string, n int) error {
	var asks []map[string]any
	for i := range n { // the same call again and again would end the run
		asks = append(asks, map[string]any{"name": "note", "arguments": map[string]string{"text": fmt.Sprintf("text %d", i)}})
	}
	script := func(replies ...any) string {
		text, err := json.Marshal(map[string]any{"scope": "call", "responses": replies})
		if err != nil {
			panic(err) // made of strings
		}
		return strings.ReplaceAll(string(text), "'", "''")
	}
	done := map[string]string{"response": "done"}
	return c.Exec(ctx, "postgres", `CREATE EXTENSION aidb`, `CREATE ROLE bench_caller LOGIN IN ROLE aidb_users`,
		`SELECT aidb.import_mcp_tools('bench', '`+url+`')`,
		`SELECT aidb.create_model('none', 'dummy', '`+script(done)+`', validate => false)`,
		`SELECT aidb.create_model('many', 'dummy', '`+script(map[string]any{"tool_calls": asks}, done)+`', validate => false)`,
		`SELECT aidb.create_agent(m, 'You are measured.', m, tools => '{note}') FROM unnest('{none,many}'::text[]) m`)
}

func ask(ctx context.Context, conn *pgx.Conn, agent string, want int) (time.Duration, error) {
	took, id, err := measure.Ask(ctx, conn, agent)
	if err != nil {
		return 0, err
	}
	// Not a measurement of refusals.
	var got int
	err = conn.QueryRow(ctx, `SELECT count(*) FROM aidb.decisions WHERE conversation_id = $1::uuid AND interaction_point = 'mcp_call' AND status = 'allowed'`, id).Scan(&got)
	if err == nil && got != want {
		err = fmt.Errorf("agent %s made %d tool calls instead of %d", agent, got, want)
	}
	return took, err
}
