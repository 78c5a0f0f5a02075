package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aidb/tests/servertest"
)

// install fetches the servers of others with npm, once. Where npm cannot be had or cannot reach its registry, the tests that
// need them are skipped, and say so.
var install = sync.OnceValues(func() (string, error) {
	if _, err := exec.LookPath("npm"); err != nil {
		return "", err
	}
	dir, err := filepath.Abs("../../build/mcp-npm")
	if err != nil {
		return "", err
	}
	wanted, err := os.ReadFile("npm/package.json")
	if err != nil {
		return "", err
	}
	done := filepath.Join(dir, "installed.json")
	if have, err := os.ReadFile(done); err == nil && bytes.Equal(have, wanted) {
		return dir, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), wanted, 0o644); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--no-package-lock")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm install: %w: %s", err, out)
	}
	return dir, os.WriteFile(done, wanted, 0o644)
})

func modules(t *testing.T) string {
	t.Helper()
	dir, err := install()
	if err != nil {
		t.Skipf("npm is not reachable: %v", err)
	}
	return filepath.Join(dir, "node_modules", "@modelcontextprotocol")
}

// node is the Node.js that npm has brought, where it has one for this machine, because Debian's is too old for the conformance
// tests; else the machine's.
func node(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(modules(t), "..", "node-linux-*", "bin", "node"))
	require.NoError(t, err)
	if len(found) == 0 {
		return "node"
	}
	return found[0]
}

// everything starts server-everything on loopback and returns its address.
func everything(t *testing.T, transport, path string) string {
	t.Helper()
	main := filepath.Join(modules(t), "server-everything", "dist", "index.js")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.Addr().String()
	port := free.Addr().(*net.TCPAddr).Port
	require.NoError(t, free.Close())
	cmd := exec.Command(node(t), "-e", loopback, main, transport)
	cmd.Env = append(os.Environ(), "PORT="+strconv.Itoa(port))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	})
	require.Eventually(t, func() bool {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, time.Minute, 20*time.Millisecond, "server-everything does not listen")
	return "http://" + address + path
}

// loopback starts a program whose servers listen on loopback only, which they have no option for.
const loopback = `
const net = require('net'), listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, ...rest) {
	if (typeof port === 'object' && port !== null) return listen.call(this, {...port, host: '127.0.0.1'}, ...rest);
	return listen.call(this, port, '127.0.0.1', ...rest.filter((r) => typeof r === 'function'));
};
import(require('url').pathToFileURL(process.argv[1]).href);`

// The protocol's own example server, with all it can do, over both transports.
func TestEverything(t *testing.T) {
	for _, c := range []struct{ name, transport, path, as string }{
		{"everything_http", "streamableHttp", "/mcp", "streamable_http"}, {"everything_sse", "sse", "/sse", "sse"},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := everything(t, c.transport, c.path)
			ann, notices := server.ConnNoting(t, "ann")
			register(t, ann, c.name, url, "transport => '"+c.as+"'")
			require.Equal(t, "Echo: hello", text(t, ann, "echo", `{"message": "hello"}`))
			require.Equal(t, "The sum of 2 and 3 is 5.", text(t, ann, "get-sum", `{"a": 2, "b": 3}`))

			image := run(t, ann, "get-tiny-image", `{}`)
			require.Equal(t, "image", image.Content[1].Type)
			require.Equal(t, []byte("\x89PNG"), image.Content[1].Data[:4])
			require.Equal(t, "resource", run(t, ann, "get-resource-reference", `{"resourceType": "Text", "resourceId": 1}`).Content[1].Type)
			require.Equal(t, "resource_link", run(t, ann, "get-resource-links", `{"count": 2}`).Content[1].Type)
			var weather map[string]any
			require.NoError(t, json.Unmarshal(run(t, ann, "get-structured-content", `{"location": "Chicago"}`).StructuredContent, &weather))
			require.Contains(t, weather, "temperature")
			require.Equal(t, "number", servertest.Value(t, ann, "SELECT output_schema #>> '{properties,temperature,type}' FROM aidb.get_mcp_tools() WHERE name = 'get-structured-content'"))
			require.Contains(t, fails(t, ann, "22023", runTool, "echo", `{}`), "missing argument 'message'")

			// progress, and a call that is cancelled
			servertest.Exec(t, ann, `SELECT aidb.create_model($1, 'dummy', '{"scope": "call", "responses": [{"tool_calls": [
				{"name": "trigger-long-running-operation", "arguments": {"duration": 1, "steps": 2}}]}, {"response": "done"}]}', validate => false)`, c.name)
			servertest.Exec(t, ann, `SELECT * FROM aidb.create_agent($1, 'x', $1, tools => '{trigger-long-running-operation}')`, c.name)
			servertest.MustAsk(t, ann, c.name, "go", "debug => true")
			require.Contains(t, strings.Join(notices.Lines("NOTICE"), "\n"), "[tool_progress] trigger-long-running-operation 1 of 2")
			servertest.Exec(t, ann, "SET statement_timeout = '500ms'")
			fails(t, ann, "57014", runTool, "trigger-long-running-operation", `{"duration": 600, "steps": 600}`)
			servertest.Exec(t, ann, "RESET statement_timeout")
			require.Equal(t, "Echo: again", text(t, ann, "echo", `{"message": "again"}`))
		})
	}
}
