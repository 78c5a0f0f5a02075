package mcp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/tests/fakemcp"
	"aidb/tests/servertest"
)

// A server whose owner says so is answered with the defaults of what it asks for, and no where they do not suffice; whatever it
// asks, the call goes on.
func TestServer_AsksForInput(t *testing.T) {
	ann, notices := server.ConnNoting(t, "ann")
	answers := make(chan fakemcp.Message, 10)
	var params atomic.Value
	var offered atomic.Bool
	s := fakemcp.StartRaw(t, func(m fakemcp.Message, w http.ResponseWriter, r *http.Request) bool {
		switch {
		case m.Method == "initialize":
			offered.Store(strings.Contains(string(m.Params), `"elicitation"`))
		case m.Method == "tools/call":
			fakemcp.Events(w, `data: {"jsonrpc":"2.0","id":"theirs","method":"elicitation/create"`+params.Load().(string)+"}\n\n")
			select {
			case a := <-answers:
				said := string(a.Answer)
				if a.Error != nil {
					said = fmt.Sprint("error ", a.Error.Code)
				}
				quoted, _ := json.Marshal(said)
				fakemcp.Events(w, "data: "+m.Result(`{"content":[{"type":"text","text":`+string(quoted)+`}]}`)+"\n\n")
			case <-r.Context().Done():
			}
			return true
		case m.Method == "":
			answers <- m
		}
		return false
	})
	require.Contains(t, fails(t, ann, "22023", "SELECT aidb.import_mcp_tools('input', $1, elicitation => 'ask')", s.URL),
		`Invalid parameters: elicitation 'ask' is not one of none, defaults`)
	register(t, ann, "input", s.URL, "elicitation => 'defaults'")
	require.Equal(t, "defaults", servertest.Value(t, ann, "SELECT elicitation FROM aidb.mcp_registry WHERE name = 'input'"))
	require.True(t, offered.Load())
	all := `"name":{"type":"string","default":"x"},"age":{"type":"integer","default":30},"on":{"type":"boolean","default":false}`
	for name, c := range map[string]struct{ params, want string }{
		"defaults":                  {`,"params":{"message":"Your name?","requestedSchema":{"type":"object","properties":{` + all + `},"required":["name"]}}`, `{"action":"accept","content":{"age":30,"name":"x","on":false}}`},
		"nothing has one":           {`,"params":{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string"}}}}`, `{"action":"accept"}`},
		"a required one without":    {`,"params":{"message":"m","requestedSchema":{"type":"object","properties":{` + all + `,"b":{"type":"string"}},"required":["b"]}}`, `{"action":"decline"}`},
		"a default of another type": {`,"params":{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"integer","default":"x"}}}}`, "error -32602"},
		"an address":                {`,"params":{"mode":"url","message":"m","url":"https://example.com/","elicitationId":"1"}`, `{"action":"decline"}`},
		"another mode":              {`,"params":{"mode":"voice","message":"m"}`, "error -32602"},
		"a schema that is none":     {`,"params":{"message":"m","requestedSchema":"x"}`, "error -32602"},
		"no schema":                 {`,"params":{"message":"m"}`, `{"action":"accept"}`},
		"no params":                 {``, "error -32602"},
		"null":                      {`,"params":null`, "error -32602"},
	} {
		t.Run(name, func(t *testing.T) {
			params.Store(c.params)
			require.Equal(t, c.want, text(t, ann, "x", `{}`))
		})
	}
	servertest.Exec(t, ann, `SELECT aidb.create_model('input', 'dummy', '{"scope": "call", "responses": [{"tool_calls": [{"name": "x", "arguments": {}}]}, {"response": "done"}]}')`)
	servertest.Exec(t, ann, `SELECT * FROM aidb.create_agent('input', 'x', 'input', tools => '{x}')`)
	params.Store(`,"params":{"message":"Your name?","requestedSchema":{"type":"object","properties":{` + all + `}}}`)
	servertest.MustAsk(t, ann, "input", "go", "debug => true")
	require.Contains(t, strings.Join(notices.Lines("NOTICE"), "\n"), "asked for input, answered with the defaults: Your name?")
	// Without, nothing is offered any more.
	servertest.Exec(t, ann, "SELECT aidb.update_mcp_server('input', elicitation => 'none')")
	require.False(t, offered.Load())
	require.Equal(t, "error -32601", text(t, ann, "x", `{}`))
}
