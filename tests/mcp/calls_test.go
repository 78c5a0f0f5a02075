package mcp

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// What a tool gives is the same whatever it came over.
func TestCalls_OverEveryTransport(t *testing.T) {
	for _, c := range []struct{ name, path, transport string }{
		{"streamed", "/mcp", "streamable_http"}, {"answered", "/json", "streamable_http"}, {"old", "/sse", "sse"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ann := server.Conn(t, "ann")
			register(t, ann, c.name, fake.URL(c.path), "transport => '"+c.transport+"'")
			require.Equal(t, "echo: hello", text(t, ann, "echo", `{"text": "hello"}`))
			require.Equal(t, c.name, decision(t)["object"])
			require.Equal(t, "allowed", decision(t)["status"])

			kinds := run(t, ann, "kinds", `{}`)
			require.Len(t, kinds.Content, 6)
			require.Equal(t, "plain  text", kinds.Content[0].Text, "a text without its NUL")
			require.Equal(t, []byte("image"), kinds.Content[1].Data)
			require.Equal(t, "audio/wav", kinds.Content[2].MIMEType)
			require.Equal(t, "file:///x", kinds.Content[3].URI)
			require.Equal(t, "inside", kinds.Content[4].Text)
			require.Equal(t, []byte("blob"), kinds.Content[5].Data)
			require.JSONEq(t, `{"n": 1}`, string(kinds.StructuredContent))

			structured := run(t, ann, "structured", `{}`)
			require.Empty(t, structured.Content)
			require.Equal(t, `{"a": [1, null], "big": 9007199254740993}`, string(structured.StructuredContent), "with all digits")

			require.Contains(t, fails(t, ann, "38000", runTool, "fail", `{"text": "never"}`), "tool 'fail' failed: no: never")
			require.Contains(t, logged(t), "status=allowed")
			require.Contains(t, logged(t), "sqlstate=38000")
			require.Contains(t, fails(t, ann, "22023", runTool, "echo", `{"txt": 1}`), "unknown argument 'txt'")
			require.NotEmpty(t, text(t, ann, "echo", `{"text": "one session"}`))
		})
	}
}

// A session is kept, and is nobody else's.
func TestCalls_KeepTheirSession(t *testing.T) {
	ann := server.Conn(t, "ann")
	register(t, ann, "kept", fake.URL("/mcp"))
	first := text(t, ann, "session", `{}`)
	require.NotEmpty(t, first)
	require.Equal(t, first, text(t, ann, "session", `{}`))
	servertest.Exec(t, ann, "SET aidb.principal = 'somebody else'")
	require.NotEqual(t, first, text(t, ann, "session", `{}`))
}

// What is too long is cut, and says so, on both sides of the limit.
func TestCalls_AreCutWithAMark(t *testing.T) {
	ann, admin := server.Conn(t, "ann"), server.Admin(t)
	register(t, ann, "cut", fake.URL("/mcp"))
	servertest.Exec(t, admin, "SET aidb.max_tool_bytes = 1000")
	whole := run(t, admin, "big", `{"bytes": 900}`)
	require.Len(t, whole.Content[0].Text, 900)
	require.False(t, whole.Truncated)
	cut := run(t, admin, "big", `{"bytes": 5000}`)
	require.Less(t, len(cut.Content[0].Text), 1001)
	require.True(t, cut.Truncated)
	require.True(t, cut.Content[0].Truncated)

	servertest.Exec(t, admin, "SET aidb.max_mcp_bytes = 4096")
	require.Contains(t, fails(t, admin, "53400", runTool, "big", `{"bytes": 100000}`), "larger than aidb.max_mcp_bytes")
	require.Equal(t, "echo: on", text(t, admin, "echo", `{"text": "on"}`), "and the session goes on")
}

// An agent sees the same tools, in words.
func TestAgent_UsesTools(t *testing.T) {
	ann, notices := server.ConnNoting(t, "ann")
	register(t, ann, "agents", fake.URL("/mcp"))
	server.Agent(t, ann, "mcp_agent", []string{"echo", "kinds", "fail", "progress", "structured"},
		fakemodel.Call("echo", map[string]any{"text": "hi"}), fakemodel.Call("kinds", map[string]any{}), fakemodel.Call("fail", map[string]any{"text": "no"}),
		fakemodel.Call("progress", map[string]any{}), fakemodel.Call("structured", map[string]any{}), fakemodel.Say("done"))
	o := servertest.MustAsk(t, ann, "mcp_agent", "go", "debug => true")
	require.Equal(t, "done", o.Message)
	requests := server.Model.Requests("mcp_agent")
	var seen []string
	for _, e := range requests[len(requests)-1].Turn() {
		seen = append(seen, e.Result)
	}
	require.Equal(t, "echo: hi", seen[0])
	require.Equal(t, "plain  text\n[image image/png 5 bytes]\n[audio audio/wav 6 bytes]\n[resource link x file:///x text/plain 7 bytes] a link\n"+
		"[resource file:///t text/plain]\ninside\n[resource file:///b application/zip 4 bytes]\n{\"n\":1}", seen[1])
	require.Equal(t, "Tool error: no: no", seen[2])
	require.Equal(t, "done", seen[3])
	require.Equal(t, `{"big":9007199254740993,"a":[1,null]}`, seen[4])
	require.Contains(t, notices.Lines("NOTICE"), "[tool_progress] progress 3 of 3: step of work")

	rows := servertest.Rows(t, ann, `SELECT tool, status, sqlstate FROM aidb.decisions WHERE conversation_id = $1::uuid AND interaction_point = 'mcp_call' ORDER BY at`, o.Conversation)
	require.Len(t, rows, 5)
	require.Equal(t, "echo", rows[0]["tool"])
	require.Equal(t, "38000", rows[2]["sqlstate"])
	require.Empty(t, servertest.Rows(t, server.Admin(t), "SELECT * FROM aidb.verify_decisions()"))
}

// Whoever cancels does not wait for the server, and the server hears of it.
func TestCancel_EndsTheCallAndTellsTheServer(t *testing.T) {
	for _, c := range []struct{ name, path, transport string }{{"cancel_new", "/mcp", "streamable_http"}, {"cancel_old", "/sse", "sse"}} {
		t.Run(c.name, func(t *testing.T) {
			ann := server.Conn(t, "ann")
			register(t, ann, c.name, fake.URL(c.path), "transport => '"+c.transport+"'")
			before, called := fake.Cancelled(), fake.NextCall()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				select {
				case <-called:
					_ = ann.PgConn().CancelRequest(ctx)
				case <-ctx.Done():
				}
			}()
			require.Contains(t, fails(t, ann, "57014", runTool, "wait", `{}`), "canceling statement")
			// the server signals the backend and its process group: the second signal may come later than the error
			<-sent
			require.Eventually(t, func() bool { return fake.Cancelled() > before }, waitFor, tick)
			require.Equal(t, "echo: again", text(t, ann, "echo", `{"text": "again"}`))
		})
	}
}

// Secrets go where they belong, from where they are.
func TestHeaders_AreSentAndNeverShown(t *testing.T) {
	file := filepath.Join(folder, "headers")
	require.NoError(t, os.WriteFile(file, []byte(`{"X-From-File": "`+secret+`"}`), 0o644))
	for _, c := range []struct{ name, header, args string }{
		{"stored", "X-Stored", `headers => '{"X-Stored": "` + secret + `"}'`},
		{"environment", "X-From-Env", `headers_env => 'AIDB_MCP_TEST'`},
		{"file", "X-From-File", `headers_k8s_secret => '` + file + `'`},
	} {
		t.Run(c.name, func(t *testing.T) {
			ann, admin := server.Conn(t, "ann"), server.Admin(t)
			before := len(fake.Headers())
			register(t, ann, "secret_"+c.name, fake.URL("/mcp"), c.args)
			text(t, ann, "echo", `{"text": "x"}`)
			for _, h := range fake.Headers()[before:] {
				require.Equal(t, secret, h.Get(c.header), "every request has it")
			}
			all := servertest.Value(t, admin, `SELECT string_agg(r::text, '') FROM aidb.mcp_registry r`) +
				servertest.Value(t, admin, `SELECT string_agg(r::text, '') FROM aidb.decisions r`)
			require.NotContains(t, all, secret)
			require.Contains(t, fails(t, ann, "42501", `SELECT headers FROM aidb.mcp_registry`), "permission denied for view mcp_registry")
			fails(t, ann, "42501", `SELECT headers_env FROM aidb.mcp_registry`)
			fails(t, ann, "42501", `SELECT * FROM aidb_internal.mcp_credentials`)
			servertest.Exec(t, ann, `SELECT name, url, transport, headers_k8s_secret, tool_filter, created_at, updated_at FROM aidb.mcp_registry`)
		})
	}
	require.NotContains(t, server.Log(), secret)

	ann := server.Conn(t, "ann")
	require.Contains(t, fails(t, ann, "42501", `SELECT aidb.import_mcp_tools('no', $1, headers_env => 'PATH')`, fake.URL("/mcp")),
		"environment variable name 'PATH' does not start with the required prefix 'AIDB_' (see the aidb.env_var_allowed_prefix GUC)")
	require.Contains(t, fails(t, ann, "42501", `SELECT aidb.import_mcp_tools('no', $1, headers_k8s_secret => '/etc/passwd')`, fake.URL("/mcp")), "secret path '/etc/passwd'")
	require.Contains(t, fails(t, ann, "22023", `SELECT aidb.import_mcp_tools('no', $1, headers => '{}', headers_env => 'AIDB_X', headers_k8s_secret => '/x')`, fake.URL("/mcp")),
		`Only one of "headers", "headers_env", "headers_k8s_secret" may be provided`)
	for _, bad := range []string{`["x"]`, `{"a": 1}`, `{"Host": "x"}`, `{"a b": "x"}`, `{"Mcp-Session-Id": "x"}`, `{"X": "` + secret + `\r\nY: z"}`} {
		fails(t, ann, "22023", `SELECT aidb.import_mcp_tools('no', $1, headers => $2::jsonb)`, fake.URL("/mcp"), bad)
	}
	require.Empty(t, servertest.Rows(t, server.Admin(t), "SELECT * FROM aidb_internal.mcp_servers WHERE name = 'no'"))
	require.False(t, strings.Contains(server.Log(), secret))
}

// A call's span says where it went, without what the address keeps secret, and in which session.
func TestCalls_AreTraced(t *testing.T) {
	admin := server.Admin(t)
	servertest.Exec(t, admin, "GRANT SET ON PARAMETER aidb.otel_client TO ann")
	ann := server.Conn(t, "ann")
	servertest.Exec(t, ann, "SET aidb.otel_client = 'database'")
	register(t, ann, "traced", fake.URL("/mcp")+"?key="+secret, "tool_filter => '{session}'")
	server.Agent(t, ann, "traced", []string{"session"}, fakemodel.Call("session", map[string]any{}), fakemodel.Say("done"))
	o := servertest.MustAsk(t, ann, "traced", "go")
	rows := servertest.Rows(t, admin, `SELECT t.mcp_session_id, (SELECT jsonb_object_agg(a ->> 'key', coalesce(a #> '{value,stringValue}', a #> '{value,intValue}')) FROM
		jsonb_path_query(t.payload_json, '$.resourceSpans[0].scopeSpans[0].spans[0].attributes[*]') a) AS attributes
		FROM aidb_otel.traces t WHERE t.gen_ai_conversation_id = $1 ORDER BY t.id`, o.Conversation)
	calls := 0
	for _, r := range rows {
		a := r["attributes"].(map[string]any)
		require.NotContains(t, fmt.Sprint(a), secret)
		switch a["aidb.agent.decision.interaction_point"] {
		case nil:
			require.Equal(t, "1", a["aidb.tool.call_count"])
		case "model_call":
			require.Equal(t, "traced", a["aidb.model.name"])
		case "mcp_call":
			calls++
			require.Equal(t, "traced", a["aidb.mcp.server_name"])
			require.Equal(t, fake.URL("/mcp"), a["aidb.mcp.url"])
			require.Equal(t, "streamable_http", a["aidb.mcp.transport"])
			require.Equal(t, "session", a["gen_ai.tool.name"])
			require.NotEmpty(t, a["mcp.session.id"])
			require.Equal(t, a["mcp.session.id"], r["mcp_session_id"])
			steps := servertest.Log(t, ann, o.Conversation)
			require.Contains(t, fmt.Sprint(steps), a["mcp.session.id"], "it is the one that the tool was called in")
		}
	}
	require.Equal(t, 1, calls)
}

// An agent's time reaches into what it waits for: a server that does not answer, and a statement that goes on.
func TestDeadline_ReachesIntoACall(t *testing.T) {
	ann := server.Conn(t, "ann")
	register(t, ann, "late", fake.URL("/mcp"), "tool_filter => '{wait}'", "timeout_ms => 60000")
	for name, call := range map[string]fakemodel.Reply{
		"late server": fakemodel.Call("wait", map[string]any{}), "late statement": fakemodel.Query("SELECT pg_sleep(60)"),
	} {
		t.Run(name, func(t *testing.T) {
			before, begun := fake.Cancelled(), time.Now()
			server.Agent(t, ann, name, []string{"wait", "run_sql_query"}, call, fakemodel.Say("too late"))
			servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent($1, timeout => 2)", name)
			o, err := servertest.Ask(t.Context(), ann, name, "go")
			require.NoError(t, err)
			require.Equal(t, "time budget exceeded: the call took longer than 2 seconds", o.Error)
			require.Less(t, time.Since(begun), 50*time.Second, "it did not wait for the end of the call")
			require.Equal(t, "TIMEOUT", servertest.Value(t, ann, "SELECT status FROM aidb.agent_tasks WHERE agent_id = (SELECT id FROM aidb.agents WHERE name = $1)", name))
			if name == "late server" {
				require.Eventually(t, func() bool { return fake.Cancelled() == before+1 }, waitFor, tick, "the server is told")
			}
		})
	}
}
