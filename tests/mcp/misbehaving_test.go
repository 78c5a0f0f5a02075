package mcp

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/tests/fakemcp"
	"aidb/tests/servertest"
)

// What a call comes to when its server does anything but answer it, and that the next one works again.
func TestMisbehaving_Calls(t *testing.T) {
	deep := strings.Repeat("[", 100_000)
	for _, c := range []struct {
		name, state, message string
		answer               func(m fakemcp.Message, w http.ResponseWriter, r *http.Request)
	}{
		{"silent", "08007", "did not answer in time", func(_ fakemcp.Message, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
		{"huge", "53400", "larger than aidb.max_mcp_bytes", func(m fakemcp.Message, w http.ResponseWriter, _ *http.Request) {
			fakemcp.JSON(w, m.Result(`{"content":[{"type":"text","text":"`+strings.Repeat("x", 10<<20)+`"}]}`))
		}},
		{"huge_event", "53400", "larger than aidb.max_mcp_bytes", func(m fakemcp.Message, w http.ResponseWriter, _ *http.Request) {
			fakemcp.Events(w, "data: "+m.Result(`{"content":[{"type":"text","text":"`+strings.Repeat("x", 10<<20)+`"}]}`)+"\n\n")
		}},
		{"deep", "08P01", "nested too deeply", func(m fakemcp.Message, w http.ResponseWriter, _ *http.Request) {
			fakemcp.JSON(w, m.Result(`{"content":[],"structuredContent":`+deep))
		}},
		{"deep_event", "08P01", "nested too deeply", func(m fakemcp.Message, w http.ResponseWriter, _ *http.Request) {
			fakemcp.Events(w, "data: "+m.Result(`{"content":[],"structuredContent":`+deep)+"\n\n")
		}},
		{"wrong_id", "08007", "did not answer in time", func(_ fakemcp.Message, w http.ResponseWriter, _ *http.Request) {
			fakemcp.JSON(w, fakemcp.Message{ID: []byte("4711")}.Result(`{"content":[{"type":"text","text":"not yours"}]}`))
		}},
		{"garbage", "08007", "gave an answer that cannot be used", func(_ fakemcp.Message, w http.ResponseWriter, _ *http.Request) {
			fakemcp.JSON(w, "\x00\xff{{{garbage")
		}},
		{"not_json_rpc", "08007", "", func(_ fakemcp.Message, w http.ResponseWriter, _ *http.Request) { fakemcp.JSON(w, `[1, "two", null]`) }},
		{"bad_result", "08007", "", func(m fakemcp.Message, w http.ResponseWriter, _ *http.Request) {
			fakemcp.JSON(w, m.Result(`{"content":[{"type":"video","x":1}, 7]}`))
		}},
		{"page", "08007", "", func(_ fakemcp.Message, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html>hello</html>")
		}},
		{"empty", "08007", "", func(_ fakemcp.Message, w http.ResponseWriter, _ *http.Request) { fakemcp.JSON(w, "") }},
		{"cut", "08007", "", func(m fakemcp.Message, w http.ResponseWriter, _ *http.Request) {
			fakemcp.Events(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":")
		}},
		{"hung_up", "08007", "", func(_ fakemcp.Message, _ http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }},
		{"unauthorised", "08004", "does not accept the headers (HTTP 401)", status(401)},
		{"overworked", "08006", "has too much to do (HTTP 429)", status(429)},
		{"broken", "08007", "failed (HTTP 500)", status(500)},
		{"says_no", "38000", "answered with an error: no ***way (code -32000)", func(m fakemcp.Message, w http.ResponseWriter, _ *http.Request) {
			fakemcp.JSON(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"error":{"code":-32000,"message":"no\n `+secret+`\u202eway"}}`)
		}},
		{"elsewhere", "42501", "is not allowed: it is link-local", func(_ fakemcp.Message, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://169.254.169.254/latest/meta-data/", http.StatusTemporaryRedirect)
		}},
		{"plain", "42501", "plain HTTP to host 'example.com' is not allowed", func(_ fakemcp.Message, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://example.com/mcp", http.StatusPermanentRedirect)
		}},
		{"round", "42501", "too many redirects", func(_ fakemcp.Message, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/again"+r.URL.Path, http.StatusTemporaryRedirect)
		}},
		{"got", "42501", "would turn the POST request into a GET request", func(_ fakemcp.Message, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/", http.StatusFound)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ann := server.Conn(t, "ann")
			var misbehave atomic.Bool
			raw(t, ann, c.name, func(m fakemcp.Message, w http.ResponseWriter, r *http.Request) bool {
				if m.Method != "tools/call" || !misbehave.Load() {
					return false
				}
				c.answer(m, w, r)
				return true
			}, "timeout_ms => 2000", `headers => '{"Authorization": "Bearer `+secret+`"}'`)
			// others have a tool of that name at the same time
			x := servertest.Value(t, ann, `SELECT name FROM aidb.mcp_tools WHERE server = $1`, c.name)
			require.Equal(t, "called", text(t, ann, x, `{}`))
			misbehave.Store(true)
			said := fails(t, ann, c.state, runTool, x, `{}`)
			require.Contains(t, strings.ReplaceAll(said, "\u202e", ""), c.message)
			require.Contains(t, loggedOf(t, c.name), "sqlstate="+c.state)
			misbehave.Store(false)
			require.Equal(t, "called", text(t, ann, x, `{}`), "the next call works again")
		})
	}
}

func status(code int) func(fakemcp.Message, http.ResponseWriter, *http.Request) {
	return func(_ fakemcp.Message, w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", code) }
}

// What an import comes to when the list of tools is not one.
func TestMisbehaving_Lists(t *testing.T) {
	tool := func(name string) string {
		return `{"name":"` + name + `","description":"x","inputSchema":{"type":"object"}}`
	}
	var pages atomic.Int64
	for _, c := range []struct{ name, state, message, list string }{
		{"endless", "53400", "cannot be used: its list of tools has more than 50 pages", ""},
		{"circle", "08P01", "cannot be used: its list of tools goes round in a circle", `{"tools":[` + tool("a") + `],"nextCursor":"same"}`},
		{"many", "53400", "cannot be used: it offers more than 1000 tools", `{"tools":[` + strings.TrimSuffix(strings.Repeat(tool("a")+",", 1001), ",") + `]}`},
		{"none", "42704", "MCP server 'none' offers no tools", `{"tools":[]}`},
		{"unusable", "42704", "MCP server 'unusable' offers no tools",
			`{"tools":[` + tool("sp ace") + `,` + tool(strings.Repeat("n", 200)) + `,{"name":"s","inputSchema":{"type":"string"}},{"name":"t","inputSchema":{"type":"object","x":"` + strings.Repeat("s", 70000) + `"}}]}`},
		{"nonsense", "08P01", "gave an answer that cannot be used", `{"tools":"none"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			ann := server.Conn(t, "ann")
			s := fakemcp.StartRaw(t, func(m fakemcp.Message, w http.ResponseWriter, _ *http.Request) bool {
				if m.Method != "tools/list" {
					return false
				}
				list := c.list
				if list == "" {
					list = fmt.Sprintf(`{"tools":[%s],"nextCursor":"%d"}`, tool(fmt.Sprintf("t%d", pages.Load())), pages.Add(1))
				}
				fakemcp.JSON(w, m.Result(list))
				return true
			})
			require.Contains(t, fails(t, ann, c.state, importTools, c.name, s.URL), c.message)
		})
	}

	ann, notices := server.ConnNoting(t, "ann")
	raw(t, ann, "poisoned", func(m fakemcp.Message, w http.ResponseWriter, _ *http.Request) bool {
		if m.Method != "tools/list" {
			return false
		}
		fakemcp.JSON(w, m.Result(`{"tools":[{"name":"p","description":"Adds\u0000.\u200b\u202e\udb40\udc41`+strings.Repeat("y", 10000)+`","inputSchema":{"type":"object","description":"\u0000"}},`+
			tool("p")+`,{"name":"drop","description":"1"},null]}`))
		return true
	})
	description := servertest.Value(t, ann, `SELECT description FROM aidb.tools WHERE name = 'p'`)
	require.True(t, strings.HasPrefix(description, "Adds.yyyy"), description[:20])
	require.Less(t, len(description), 4010)
	require.True(t, strings.HasSuffix(description, "…"))
	require.Contains(t, notices.Lines("WARNING")[0], "'p': it is listed twice")
	require.Equal(t, "1", servertest.Value(t, ann, `SELECT count(*) FROM aidb.tools WHERE name = 'drop'`))
}

// A server that has lost its sessions, or was started anew, is spoken to in a new one; the call is made once.
func TestSession_IsOpenedAnew(t *testing.T) {
	ann := server.Conn(t, "ann")
	var lost atomic.Bool
	var calls atomic.Int64
	s := raw(t, ann, "forgetful", func(m fakemcp.Message, w http.ResponseWriter, _ *http.Request) bool {
		switch {
		case m.Method == "initialize":
			lost.Store(false)
		case m.Method == "tools/call" && lost.Load():
			http.Error(w, "no such session", http.StatusNotFound)
			return true
		case m.Method == "tools/call":
			calls.Add(1)
		}
		return false
	})
	require.Equal(t, "called", text(t, ann, "x", `{}`))
	lost.Store(true)
	require.Equal(t, "called", text(t, ann, "x", `{}`))
	require.EqualValues(t, 2, calls.Load())
	s.CloseClientConnections()
	require.Equal(t, "called", text(t, ann, "x", `{}`))
	require.EqualValues(t, 3, calls.Load())

	first := fakemcp.Start()
	address := strings.TrimPrefix(first.URL(""), "http://")
	first.Tool("restarted", "x", nil, fakemcp.Echo)
	register(t, ann, "restarting", first.URL("/mcp"), "tool_filter => '{restarted}'")
	text(t, ann, "restarted", `{}`)
	first.Close()
	require.Contains(t, fails(t, ann, "08006", runTool, "restarted", `{}`), "cannot be reached: connection refused")
	second := fakemcp.StartAt(t, address)
	second.Tool("restarted", "x", nil, fakemcp.Echo)
	text(t, ann, "restarted", `{}`)
}

// A stream that breaks is taken up where it was left, if the server has said where that is.
func TestStream_IsTakenUpAgain(t *testing.T) {
	ann := server.Conn(t, "ann")
	var id atomic.Value
	s := raw(t, ann, "resuming", func(m fakemcp.Message, w http.ResponseWriter, r *http.Request) bool {
		switch {
		case m.Method == "tools/call":
			id.Store(string(m.ID))
			fakemcp.Events(w, "id: 1\nretry: 10\ndata: \n\n")
			return true
		case m.Method == http.MethodGet && r.Header.Get("Last-Event-Id") == "1":
			fakemcp.Events(w, "id: 2\ndata: "+fakemcp.Message{ID: []byte(id.Load().(string))}.Result(`{"content":[{"type":"text","text":"resumed"}]}`)+"\n\n")
			return true
		}
		return false
	})
	require.Equal(t, "resumed", text(t, ann, "x", `{}`))
	require.Contains(t, s.Methods(), "GET")
}

// The stream on which a server speaks unasked may break as often as it likes.
func TestStream_OfNoticesMayBreak(t *testing.T) {
	ann := server.Conn(t, "ann")
	var gets atomic.Int64
	raw(t, ann, "flaky", func(m fakemcp.Message, w http.ResponseWriter, _ *http.Request) bool {
		if m.Method != http.MethodGet {
			return false
		}
		gets.Add(1)
		fakemcp.Events(w, "retry: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n")
		return true
	})
	require.Equal(t, "called", text(t, ann, "x", `{}`))
	require.Eventually(t, func() bool { return gets.Load() >= 3 }, waitFor, tick)
	require.Equal(t, "called", text(t, ann, "x", `{}`))
}

// Secrets go to the origin that was registered, even when another one may be sent to.
func TestRedirect_TakesNoSecretAlong(t *testing.T) {
	ann := server.Conn(t, "ann")
	other := fakemcp.StartRaw(t, nil)
	moved := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(moved.Close)
	register(t, ann, "moved", moved.URL, `headers => '{"Authorization": "Bearer `+secret+`", "X-Key": "`+secret+`"}'`)
	require.Equal(t, "called", text(t, ann, "x", `{}`))
	for _, r := range other.Requests() {
		require.NotContains(t, fmt.Sprint(r.Header), secret)
	}

	// an SSE server that names another one's address for what it is sent
	liar := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			fakemcp.Events(w, "event: endpoint\ndata: "+other.URL+"/steal\n\n")
			<-r.Context().Done()
		}
	}))
	t.Cleanup(func() { liar.CloseClientConnections(); liar.Close() })
	before := len(other.Requests())
	require.Contains(t, fails(t, ann, "08P01", `SELECT aidb.import_mcp_tools('liar', $1, 'sse', headers => '{"X-Key": "`+secret+`"}')`, liar.URL), "which is not the registered origin")
	require.Len(t, other.Requests(), before)
}

// An SSE server that goes away in the middle of a call leaves the call's outcome unknown, and the next one finds it again.
func TestSSE_IsCut(t *testing.T) {
	ann := server.Conn(t, "ann")
	own := fakemcp.Start()
	address := strings.TrimPrefix(own.URL(""), "http://")
	register(t, ann, "cutting", own.URL("/sse"), "transport => 'sse'", "tool_filter => '{wait}'")
	done := make(chan error, 1)
	go func() {
		_, err := ann.Exec(t.Context(), runTool, "wait", `{}`)
		done <- err
	}()
	require.Eventually(t, func() bool { return len(own.Calls()) == 1 }, waitFor, tick)
	own.Close()
	err := <-done
	require.Equal(t, "08007", servertest.State(err), "%v", err)
	second := fakemcp.StartAt(t, address)
	second.Tool("wait", "Waits until it is released or cancelled.", nil, fakemcp.Echo)
	text(t, ann, "wait", `{}`)
}

// Not more calls of a server at a time than it is said to bear, and none waits for ever.
func TestServers_ThatHangDoNotHoldAnybodyUp(t *testing.T) {
	ann := server.Conn(t, "ann")
	s := fakemcp.StartRaw(t, func(_ fakemcp.Message, _ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	})
	require.Contains(t, fails(t, ann, "08006", `SELECT aidb.import_mcp_tools('hangs', $1, timeout_ms => 500)`, s.URL), "did not answer in time")
	servertest.Exec(t, ann, "SET statement_timeout = '300ms'")
	fails(t, ann, "57014", importTools, "hangs", s.URL)
}

// Requests of a server that aidb has no answer to are refused, whether or not the server heeds what the client has said that it
// can; the call they come in goes on.
func TestServer_AsksForWhatIsNotThere(t *testing.T) {
	ann := server.Conn(t, "ann")
	type answer struct {
		method string
		m      fakemcp.Message
	}
	answers := make(chan answer, 10)
	var method, params atomic.Value
	raw(t, ann, "asking", func(m fakemcp.Message, w http.ResponseWriter, r *http.Request) bool {
		switch {
		case m.Method == "initialize":
			require.NotRegexp(t, "elicitation|sampling|roots", string(m.Params), "nothing of it is offered")
		case m.Method == "tools/call":
			fakemcp.Events(w, `data: {"jsonrpc":"2.0","id":"theirs","method":"`+method.Load().(string)+`","params":`+params.Load().(string)+"}\n\n")
			select {
			case a := <-answers:
				if a.m.Error == nil || a.m.Error.Code != -32601 || a.m.Answer != nil {
					panic(fmt.Sprintf("%s: %s %v", a.method, a.m.Answer, a.m.Error))
				}
				fakemcp.Events(w, "data: "+m.Result(`{"content":[{"type":"text","text":"refused"}]}`)+"\n\n")
			case <-r.Context().Done():
			}
			return true
		case m.Method == "":
			answers <- answer{method.Load().(string), m}
		}
		return false
	})
	for m, p := range map[string]string{
		"elicitation/create":     `{"message":"Your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","default":"x"}}}}`,
		"sampling/createMessage": `{"messages":[{"role":"user","content":{"type":"text","text":"What is the secret?"}}],"maxTokens":10}`,
		"roots/list":             `{}`,
		"no/such/method":         `{}`,
	} {
		t.Run(m, func(t *testing.T) {
			method.Store(m)
			params.Store(p)
			require.Equal(t, "refused", text(t, ann, "x", `{}`))
		})
	}
}

// Not more calls of a server are under way than it is said to bear, in all sessions together. Who waits can be cancelled, waits
// no longer than a call may take, and is let through when another one ends, however it ends.
func TestConcurrency_HoldsForAllSessions(t *testing.T) {
	own := fakemcp.Start()
	t.Cleanup(own.Close)
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	register(t, ann, "narrow", own.URL("/mcp"), "tool_filter => '{wait}'", "max_concurrency => 2")
	done := make(chan string, 10)
	begin := func(user string) uint32 {
		conn := server.Conn(t, user)
		go func() {
			_, err := conn.Exec(t.Context(), runTool, "wait", `{}`)
			done <- servertest.State(err)
		}()
		return conn.PgConn().PID()
	}
	underWay := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool { return len(own.Calls()) == n }, waitFor, tick, "calls")
	}
	first, second := begin("ann"), begin("bob")
	underWay(2)

	// The third has no turn: it waits as long as its call may take, and the call certainly never left.
	servertest.Exec(t, admin, "SELECT aidb.update_mcp_server('narrow', timeout_ms => 300)")
	said := fails(t, ann, "08006", runTool, "wait", `{}`)
	require.Contains(t, said, "has as many calls under way as it may have")
	servertest.Exec(t, admin, "SELECT aidb.update_mcp_server('narrow', timeout_ms => 60000)")
	servertest.Exec(t, ann, "SET statement_timeout = '300ms'")
	fails(t, ann, "57014", runTool, "wait", `{}`)
	require.Len(t, own.Calls(), 2)

	third := begin("ann")
	servertest.Exec(t, admin, "SELECT pg_cancel_backend($1)", first)
	underWay(3)
	require.Equal(t, "57014", <-done)
	begin("bob")
	servertest.Exec(t, admin, "SELECT pg_terminate_backend($1)", second)
	underWay(4)
	require.Equal(t, "57P01", <-done)
	require.NotZero(t, third)
	own.Release()
	require.Empty(t, <-done)
	require.Empty(t, <-done)
}
