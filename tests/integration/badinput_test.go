package integration

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// Whatever comes in, from the caller or from the model: a clear error row, nothing lost, and the session goes on.

// usable asks a working agent in the same session and in the same backend.
func usable(t *testing.T, conn *pgx.Conn, backend uint32) {
	t.Helper()
	require.Equal(t, "still here", servertest.MustAsk(t, conn, "steady", "hello").Message)
	require.Equal(t, backend, conn.PgConn().PID())
}

func steady(t *testing.T) (*pgx.Conn, uint32) {
	t.Helper()
	conn := server.Conn(t, "ann")
	if servertest.Value(t, conn, "SELECT count(*) FROM aidb.agents WHERE name = 'steady'") == "0" {
		server.Agent(t, conn, "steady", nil, fakemodel.Say("still here"))
	}
	return conn, conn.PgConn().PID()
}

func TestBadCaller_GetsAnErrorRow(t *testing.T) {
	ann, backend := steady(t)
	bob := server.Conn(t, "bob")
	servertest.Exec(t, ann, "SELECT * FROM aidb.create_agent('modelless', 'x', 'no such model')")
	foreign := servertest.MustAsk(t, bob, "steady", "mine").Conversation
	other := servertest.MustAsk(t, ann, "steady", "mine").Conversation
	server.Agent(t, ann, "another", nil, fakemodel.Say("hi"))

	long := strings.Repeat("x", 1<<20)
	cases := map[string]struct {
		call, says string // the arguments of agent_converse; the error, or a part of it
	}{
		"unknown agent":                 {"'nobody', 'hi'", "agent 'nobody' not found"},
		"agent name NULL":               {"NULL, 'hi'", "agent"},
		"agent name empty":              {"'', 'hi'", "agent"},
		"agent name of a megabyte":      {"'" + long + "', 'hi'", "not found"},
		"prompt NULL":                   {"'steady', NULL", "prompt must not be empty"},
		"prompt empty":                  {"'steady', ''", "prompt must not be empty"},
		"prompt blank":                  {"'steady', E' \\n\\t '", "prompt must not be empty"},
		"conversation no uuid":          {"'steady', 'hi', 'not-a-uuid'", "invalid conversation id 'not-a-uuid': not a uuid"},
		"conversation empty":            {"'steady', 'hi', ''", "invalid conversation id"},
		"conversation of a megabyte":    {"'steady', 'hi', '" + long + "'", "invalid conversation id"},
		"conversation of somebody else": {"'steady', 'hi', '" + foreign + "'", "conversation '" + foreign + "' belongs to another caller"},
		"conversation of another agent": {"'another', 'hi', '" + other + "'", "conversation '" + other + "' belongs to agent 'steady'"},
		"model not registered":          {"'modelless', 'hi'", "Model not found: no such model"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			rows := servertest.Rows(t, ann, "SELECT * FROM aidb.agent_converse("+c.call+")")
			require.Len(t, rows, 1)
			require.Nil(t, rows[0]["message"])
			require.Nil(t, rows[0]["conversation_id"])
			require.Contains(t, rows[0]["error"], c.says)
			require.Less(t, len(rows[0]["error"].(string)), 1000, "an error quotes, it does not echo")
			usable(t, ann, backend)
		})
	}
}

func TestLargePrompt_IsAnswered(t *testing.T) {
	ann, backend := steady(t)
	long := strings.Repeat("0123456789abcdef", 65536)
	o := servertest.MustAsk(t, ann, "steady", long)
	require.Equal(t, "still here", o.Message)
	require.Equal(t, "1048576", servertest.Value(t, ann, "SELECT length(payload->>'contents') FROM aidb.conversation_log WHERE conversation_id = $1::uuid AND action_type = 'user_prompt'", o.Conversation))
	usable(t, ann, backend)
}

// The server refuses bytes that are no text before any of our code sees them; the session goes on.
func TestInvalidUTF8_FromTheCaller(t *testing.T) {
	ann, backend := steady(t)
	_, err := servertest.Ask(t.Context(), ann, "steady", "broken \xff\xfe bytes")
	require.Equal(t, "22021", servertest.State(err), "%v", err)
	usable(t, ann, backend)
}

func TestBadModel_GetsAnErrorRow(t *testing.T) {
	ann, backend := steady(t)
	huge := strings.Repeat("y", 3000)
	cases := map[string]struct {
		reply fakemodel.Reply
		says  string
	}{
		"HTML with status 200":       {fakemodel.HTML("<html><body>Please log in</body></html>"), ""},
		"HTML with status 502":       {fakemodel.Reply{Raw: "<html>bad gateway</html>", Status: 502}, "502"},
		"plain text":                 {fakemodel.Reply{Raw: "Internal Server Error", RawType: "text/plain", Status: 500}, "500"},
		"an empty body":              {fakemodel.Reply{Raw: " ", RawType: "application/json"}, ""},
		"JSON that is no completion": {fakemodel.Reply{Body: []byte(`{"hello": "world"}`)}, ""},
		"JSON null":                  {fakemodel.Reply{Body: []byte(`null`)}, ""},
		"choices null":               {fakemodel.Reply{Body: []byte(`{"choices": null}`)}, ""},
		"an error in a 200":          {fakemodel.Reply{Body: []byte(`{"error": {"message": "out of cheese"}}`)}, "out of cheese"},
		"closes at once":             {fakemodel.Reply{Close: true}, ""},
		"closes in the middle":       {fakemodel.Reply{Content: huge, CloseAfter: 100}, ""},
		"401":                        {fakemodel.Fail(401, "Incorrect API key provided: "+servertest.Secret), "401"},
		"404":                        {fakemodel.Fail(404, "The model `x` does not exist"), "does not exist"},
		"429 out of quota":           {fakemodel.Reply{Status: 429, Body: []byte(`{"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}`)}, "quota"},
		"50 MB of text":              {fakemodel.Reply{Content: "a", Size: 50 << 20}, ""},
		"50 MB of error":             {fakemodel.Reply{Status: 400, Raw: strings.Repeat("e", 50<<20)}, "400"},
		"nothing to say, for ever":   {fakemodel.Reply{Content: ""}, ""},
		"cut by length, for ever":    {fakemodel.Reply{Body: []byte(`{"choices": [{"finish_reason": "length", "message": {"role": "assistant", "content": null}}]}`)}, ""},
		"deeply nested arguments":    {fakemodel.Reply{Body: []byte(`{"choices": ` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`)}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			agent := "odd: " + name
			server.Agent(t, ann, agent, sql, c.reply)
			start := time.Now()
			o, err := servertest.Ask(t.Context(), ann, agent, "hello")
			require.NoError(t, err)
			require.NotEmpty(t, o.Error)
			require.Empty(t, o.Message)
			require.Contains(t, o.Error, c.says)
			require.NotContains(t, o.Error, servertest.Secret)
			require.Less(t, len(o.Error), 4000)
			require.Less(t, time.Since(start), 60*time.Second)
			usable(t, ann, backend)

			// The failure is in the log too, under the same words.
			require.Equal(t, "1", servertest.Value(t, ann, `SELECT count(*) FROM aidb.agent_tasks k JOIN aidb.agents a ON a.id = k.agent_id
				WHERE a.name = $1 AND k.status = 'ERROR' AND k.error = $2`, agent, o.Error))
		})
	}
}

// An endpoint that never answers ends at the agent's own timeout, one that trickles too.
func TestModelThatNeverEnds_TimesOut(t *testing.T) {
	ann, backend := steady(t)
	for name, reply := range map[string]fakemodel.Reply{
		"hangs":    {Hang: true},
		"trickles": {Content: strings.Repeat("z", 100000), Trickle: 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			agent := "endless: " + name
			server.Agent(t, ann, agent, nil, reply)
			servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent($1, timeout => 1)", agent)
			start := time.Now()
			o, err := servertest.Ask(t.Context(), ann, agent, "hello")
			require.NoError(t, err)
			require.NotEmpty(t, o.Error)
			require.Less(t, time.Since(start), 5*time.Second)
			require.Equal(t, "TIMEOUT", servertest.Value(t, ann, `SELECT k.status FROM aidb.agent_tasks k JOIN aidb.agents a ON a.id = k.agent_id
				WHERE a.name = $1`, agent))
			usable(t, ann, backend)
		})
	}
}

func TestNobodyListens_IsAnErrorRow(t *testing.T) {
	ann, backend := steady(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	server.RegisterModel(t, ann, "unreachable", "http://"+l.Addr().String()+"/v1")
	servertest.Exec(t, ann, "SELECT * FROM aidb.create_agent('unreachable', 'x', 'unreachable')")
	o, err := servertest.Ask(t.Context(), ann, "unreachable", "hello")
	require.NoError(t, err)
	require.NotEmpty(t, o.Error)
	usable(t, ann, backend)
}

// What PostgreSQL's text cannot hold is everyday model output. It is cleaned wherever it is stored, and the conversation
// can be continued.
func TestUnstorableText_FromTheModel(t *testing.T) {
	ann, backend := steady(t)
	bodies := map[string]string{
		"NUL in the answer":           `{"role": "assistant", "content": "a\u0000b"}`,
		"a lone surrogate":            `{"role": "assistant", "content": "a\ud800b"}`,
		"invalid UTF-8":               "{\"role\": \"assistant\", \"content\": \"a\xff\xc0b\"}",
		"NUL in the arguments":        `{"role": "assistant", "content": null, "tool_calls": [{"id": "c\u00001", "type": "function", "function": {"name": "run_sql_query", "arguments": "{\"query\": \"SELECT 'a\\u0000b' AS x\"}"}}]}`,
		"a surrogate in the argument": `{"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "run_sql_query", "arguments": "{\"query\": \"SELECT '\\ud83d' AS x\"}"}}]}`,
		"NUL in the tool's name":      `{"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "run\u0000_sql", "arguments": "{}"}}]}`,
		"bytes in the arguments":      "{\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{\"id\": \"c1\", \"type\": \"function\", \"function\": {\"name\": \"run_sql_query\", \"arguments\": \"{\\\"query\\\": \\\"SELECT '\xff'\\\"}\"}}]}",
	}
	for name, message := range bodies {
		t.Run(name, func(t *testing.T) {
			agent := "unclean: " + name
			body := `{"id": "x\u0000", "object": "chat.completion", "model": "m\u0000", "choices": [{"index": 0, "finish_reason": "stop", "message": ` + message + `}]}`
			server.Agent(t, ann, agent, sql, fakemodel.Reply{Raw: body, RawType: "application/json"}, fakemodel.Say("clean"))
			o, err := servertest.Ask(t.Context(), ann, agent, "hello")
			require.NoError(t, err)
			require.Empty(t, o.Error)
			require.NotContains(t, o.Message, "\x00")

			server.Model.Script(agent, fakemodel.Say("went on"))
			again := servertest.MustAsk(t, ann, agent, "and now?", "conversation_id => '"+o.Conversation+"'")
			require.Equal(t, "went on", again.Message)
			for _, r := range server.Model.Requests(agent) {
				require.NotContains(t, string(r.Body), `\u0000`)
				require.NotContains(t, strings.ToLower(string(r.Body)), `\ud8`)
			}
			usable(t, ann, backend)
		})
	}
}

func TestBadNames_AreRefusedByARow(t *testing.T) {
	ann, backend := steady(t)
	for name, call := range map[string]string{
		"NULL name":            "NULL, 'x', 'm'",
		"empty name":           "'', 'x', 'm'",
		"name of a megabyte":   "repeat('n', 1 << 20), 'x', 'm'",
		"NULL instructions":    "'n1', NULL, 'm'",
		"NULL model":           "'n1', 'x', NULL",
		"unknown tool":         "'n1', 'x', 'm', tools => '{no_such_tool}'",
		"unknown delegate":     "'n1', 'x', 'm', delegates => '{no_such_agent}'",
		"unknown strategy":     "'n1', 'x', 'm', budget_strategy => 'hope'",
		"no rounds":            "'n1', 'x', 'm', max_iterations => 0",
		"negative budget":      "'n1', 'x', 'm', input_token_budget => -1",
		"unregistered purpose": "'n1', 'x', 'm', purpose => 'no such purpose'",
		"blank purpose":        "'n1', 'x', 'm', purpose => ' '",
	} {
		t.Run(name, func(t *testing.T) {
			rows := servertest.Rows(t, ann, "SELECT * FROM aidb.create_agent("+call+")")
			require.Len(t, rows, 1)
			require.NotEmpty(t, rows[0]["error"])
			require.Less(t, len(rows[0]["error"].(string)), 1000)
			usable(t, ann, backend)
		})
	}
	require.Equal(t, "0", servertest.Value(t, ann, "SELECT count(*) FROM aidb.agents WHERE name = 'n1'"))
}
