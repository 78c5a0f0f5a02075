package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/servertest"
)

// session is one of role ann that a superuser has opened, so that settings of the server's administrator hold in it,
// with another one to look at what is stored.
type session struct {
	*pgx.Conn
	notices *servertest.Notices
	admin   *pgx.Conn
}

func caller(t testing.TB, settings map[string]string) *session {
	t.Helper()
	conn, notices := server.ConnNoting(t, "postgres")
	for name, value := range settings {
		servertest.Exec(t, conn, "SELECT set_config($1, $2, false)", name, value)
	}
	servertest.Exec(t, conn, "SET ROLE ann")
	return &session{conn, notices, server.Admin(t)}
}

// call is a tool call of the log. Ran tells whether the tool was run: its result is no error.
type call struct {
	Name      string
	Arguments any
	Raw       string
	Result    string
	Ran       bool
}

// ran is what came of one call of an agent, with everything of it that is stored.
type ran struct {
	servertest.Outcome
	elapsed time.Duration
	calls   []call
	log     []servertest.Step
	input   *int64
	output  *int64
	retries int    // that the log tells of
	all     string // every text that was stored or shown
}

func (r *ran) failed() bool { return r.Error != "" }

// rounds is how often a model was to be asked.
func (r *ran) rounds() (n int) {
	for _, s := range r.log {
		if s.Type == "model_request" {
			n++
		}
	}
	return n
}

// tools are those that ran, in order.
func (r *ran) tools() []call {
	var list []call
	for _, c := range r.calls {
		if c.Ran {
			list = append(list, c)
		}
	}
	return list
}

// ask runs the agent and reads back what is stored. What must hold of every run is checked here.
func (s *session) ask(t testing.TB, agent, prompt string, args ...string) *ran {
	t.Helper()
	s.notices.Reset()
	began := time.Now()
	out, err := servertest.Ask(t.Context(), s.Conn, agent, prompt, args...)
	require.NoError(t, err, "an engine's error instead of a row")
	r := &ran{Outcome: out, elapsed: time.Since(began)}
	require.True(t, (out.Error != "") != (out.Message != "" || out.Conversation != ""), "neither an answer nor an error: %+v", out)

	task := servertest.Rows(t, s.admin, `SELECT t.id::text, t.status::text, coalesce(t.error, '') AS failure, t.input_tokens, t.output_tokens
		FROM aidb_internal.agent_task_queue t JOIN aidb_internal.agents a ON a.id = t.agent_id
		WHERE a.name = $1 ORDER BY t.created_at DESC LIMIT 1`, agent)
	require.Len(t, task, 1, "the task is lost")
	require.Equal(t, out.Error != "", task[0]["status"] != "SUCCESS", "status %v of %+v", task[0]["status"], out)
	require.Equal(t, out.Error, task[0]["failure"])
	r.input, r.output = count(task[0]["input_tokens"]), count(task[0]["output_tokens"])
	rows, err := s.admin.Query(t.Context(), `SELECT action_type::text, coalesce(request_payload::text, ''), coalesce(response_payload::text, ''),
		coalesce(error, '') FROM aidb_internal.action_log WHERE task_id = $1::uuid ORDER BY created_at, id`, task[0]["id"])
	require.NoError(t, err)
	r.log, err = pgx.CollectRows(rows, pgx.RowToStructByPos[servertest.Step])
	require.NoError(t, err)
	r.read(t)
	r.all += out.Message + out.Error + strings.Join(s.notices.Lines("NOTICE"), "\n") + strings.Join(s.notices.Lines("WARNING"), "\n")
	return r
}

func count(v any) *int64 {
	if n, ok := v.(int64); ok {
		return &n
	}
	return nil
}

// read takes the calls out of the log, and checks that it is whole.
func (r *ran) read(t testing.TB) {
	t.Helper()
	require.NotEmpty(t, r.log)
	last := r.log[len(r.log)-1].Type
	require.Equal(t, map[bool]string{true: "error", false: "answer"}[r.failed()], last)
	var open []call
	for _, s := range r.log {
		r.all += s.Request + s.Response + s.Error
		switch s.Type {
		case "model_response":
			var p struct{ Retries []json.RawMessage }
			if s.Response != "" {
				require.NoError(t, json.Unmarshal([]byte(s.Response), &p))
			}
			r.retries += len(p.Retries)
		case "tool_call":
			var p struct {
				Name      string          `json:"tool_name"`
				Arguments json.RawMessage `json:"arguments"`
			}
			require.NoError(t, json.Unmarshal([]byte(s.Request), &p))
			open = append(open, call{Name: p.Name, Raw: string(p.Arguments), Arguments: value(t, p.Arguments)})
		case "tool_response":
			require.NotEmpty(t, open, "a result without a call")
			var p struct{ Contents, Error *string }
			require.NoError(t, json.Unmarshal([]byte(s.Response), &p))
			require.True(t, (p.Contents == nil) != (p.Error == nil), "a result must be contents or an error: %s", s.Response)
			c := open[0]
			open = open[1:]
			if c.Ran = p.Contents != nil; c.Ran {
				c.Result = *p.Contents
			} else {
				c.Result = *p.Error
			}
			r.calls = append(r.calls, c)
		}
	}
	require.Empty(t, open, "calls without a result")
}

// value decodes JSON and keeps numbers as they are written.
func value(t testing.TB, raw []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	require.NoError(t, d.Decode(&v), "%s", raw)
	return v
}

// sqlTool registers a tool with the parameters of a JSON Schema, once; rows gives its result.
func sqlTool(t testing.TB, conn *pgx.Conn, name, description string, schema json.RawMessage, rows string) {
	t.Helper()
	var s struct {
		Properties map[string]struct{ Type string }
		Required   []string
	}
	require.NoError(t, json.Unmarshal(schema, &s))
	params, used := []string{}, ""
	for _, p := range slices.Sorted(maps.Keys(s.Properties)) {
		required := "false"
		for _, r := range s.Required {
			if r == p {
				required = "true"
			}
		}
		sqlType := map[string]string{"integer": "bigint", "number": "numeric", "boolean": "boolean", "object": "jsonb", "array": "jsonb"}[s.Properties[p].Type]
		if sqlType == "" {
			sqlType = "text"
		}
		params = append(params, fmt.Sprintf("aidb.tool_param('%s', '%s', 'a value', %s)", p, sqlType, required))
		used += " AND ${" + p + "} IS NOT DISTINCT FROM ${" + p + "}"
	}
	servertest.Exec(t, conn, "SELECT aidb.create_sql_tool($1, $2, $3, aidb.tool_params("+strings.Join(params, ", ")+"), read_only => true)",
		name, description, strings.ReplaceAll(rows, "<used>", used))
}
