// Package mcp asks, through SQL as a user would, whether tools of MCP servers work as the reference says, with servers that
// behave and with servers that do not.
package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/cluster"
	"aidb/tests/fakemcp"
	"aidb/tests/servertest"
)

var (
	server *servertest.Server
	fake   *fakemcp.Server
	// folder holds secret files that the server may read.
	folder string
)

// secret must turn up in no text that anybody sees.
const secret = "mcp-9b1fe2-must-not-be-seen"

func TestMain(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "aidb-mcp"); err == nil {
		err = os.Chmod(folder, 0o755)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Setenv("AIDB_MCP_TEST", `{"X-From-Env": "`+secret+`"}`)
	os.Setenv("AIDB_MCP_CLIENT", `{"client_secret": "`+secret+`"}`)
	fake = fakemcp.Start()
	servertest.Main(m, cluster.Options{Conf: []string{"aidb.k8s_secret_allowed_path_prefix = '" + folder + "'", "aidb.tool_timeout = '20s'"}}, &server)
}

// register makes a server of that name, with prefix.tool names for what others have already, and removes it at the end.
func register(t *testing.T, conn *pgx.Conn, name, url string, args ...string) {
	t.Helper()
	servertest.Exec(t, conn, `SELECT aidb.import_mcp_tools($1, $2`+strings.Join(append([]string{""}, args...), ", ")+`)`, name, url)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), waitFor)
		defer cancel()
		require.NoError(t, server.Exec(ctx, servertest.Database, `SELECT aidb.delete_tool('`+name+`')`))
	})
}

// result is what run_tool gives, decoded.
type result struct {
	Content []struct {
		Type, Text, MIMEType, URI, Name, Description string
		Data                                         []byte
		Size                                         *int64
		Truncated                                    bool
	}
	StructuredContent json.RawMessage
	Truncated         bool
}

func run(t *testing.T, conn *pgx.Conn, tool, arguments string) result {
	t.Helper()
	var r result
	text := servertest.Value(t, conn, `SELECT aidb.run_tool($1, $2::jsonb)`, tool, arguments)
	require.NoError(t, json.Unmarshal([]byte(text), &r), text)
	return r
}

// text is the one text of a result.
func text(t *testing.T, conn *pgx.Conn, tool, arguments string) string {
	t.Helper()
	r := run(t, conn, tool, arguments)
	require.Len(t, r.Content, 1)
	require.Equal(t, "text", r.Content[0].Type)
	return r.Content[0].Text
}

// fails runs a statement that must fail with this SQLSTATE and returns its message.
func fails(t *testing.T, conn *pgx.Conn, state, sql string, args ...any) string {
	t.Helper()
	_, err := conn.Exec(t.Context(), sql, args...)
	require.Error(t, err, sql)
	require.Equal(t, state, servertest.State(err), "%s: %v", sql, err)
	require.NotContains(t, err.Error(), secret)
	return err.Error()
}

const (
	importTools = `SELECT aidb.import_mcp_tools($1, $2)`
	runTool     = `SELECT aidb.run_tool($1, $2::jsonb)`
)

// decision is the newest record of an MCP call.
func decision(t *testing.T) map[string]any {
	t.Helper()
	rows := servertest.Rows(t, server.Admin(t), `SELECT * FROM aidb.decisions WHERE interaction_point = 'mcp_call' ORDER BY at DESC, decision_id DESC LIMIT 1`)
	require.Len(t, rows, 1)
	return rows[0]
}

// logged is the newest line of the server's log about an MCP call: where the record of a call goes that raised.
func logged(t *testing.T) string {
	t.Helper()
	return loggedOf(t, "")
}

// loggedOf is that of one server, while others are called, too.
func loggedOf(t *testing.T, name string) string {
	t.Helper()
	newest := ""
	for line := range strings.Lines(server.Log()) {
		if _, about, ok := strings.Cut(line, " point=mcp_call "); ok && (name == "" || strings.Contains(about, ` object="`+name+`" `)) {
			newest = about
		}
	}
	require.NotEmpty(t, newest)
	return newest
}

// raw starts a server that misbehaves and registers it; a name of its own for each test.
func raw(t *testing.T, conn *pgx.Conn, name string, answer func(m fakemcp.Message, w http.ResponseWriter, r *http.Request) bool, args ...string) *fakemcp.Raw {
	t.Helper()
	s := fakemcp.StartRaw(t, answer)
	register(t, conn, name, s.URL, args...)
	return s
}

// How long a test waits for something that another process does.
const (
	waitFor = 20 * time.Second
	tick    = 10 * time.Millisecond
)
