package servertest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
)

// Secret is the API key of every model that the tests register: it must turn up nowhere.
const Secret = "sk-test-4f1d0c-must-not-be-seen"

// Agent registers a model of the fake server with these replies and an agent on it, both named name, as the connection's
// role. Without replies the model must be given a script or a brain by the test.
func (s *Server) Agent(t testing.TB, conn *pgx.Conn, name string, tools []string, replies ...fakemodel.Reply) {
	t.Helper()
	if len(replies) > 0 {
		s.Model.Script(name, replies...)
	}
	s.RegisterModel(t, conn, name, s.Model.URL())
	Exec(t, conn, `SELECT * FROM aidb.create_agent($1, 'You are a test.', $1, tools => $2)`, name, tools)
}

// RegisterModel registers a model of the openai_completions provider at a URL.
func (s *Server) RegisterModel(t testing.TB, conn *pgx.Conn, name, url string) {
	t.Helper()
	Exec(t, conn, `SELECT aidb.create_model($1, 'openai_completions', $2::jsonb, credentials => $3::jsonb, validate => false)`,
		name, map[string]any{"model": name, "url": url}, map[string]any{"api_key": Secret})
}

// Outcome is the row that agent_converse returns.
type Outcome struct {
	Message, Conversation, Error string
}

// Ask calls an agent. Further arguments are SQL, such as "read_only => true".
func Ask(ctx context.Context, conn *pgx.Conn, agent, prompt string, args ...string) (Outcome, error) {
	sql := `SELECT coalesce(message, ''), coalesce(conversation_id, ''), coalesce(error, '') FROM aidb.agent_converse($1, $2` +
		strings.Join(append([]string{""}, args...), ", ") + `)`
	var o Outcome
	err := conn.QueryRow(ctx, sql, agent, prompt).Scan(&o.Message, &o.Conversation, &o.Error)
	return o, err
}

// MustAsk is Ask for a call that has to end with an answer.
func MustAsk(t testing.TB, conn *pgx.Conn, agent, prompt string, args ...string) Outcome {
	t.Helper()
	o, err := Ask(t.Context(), conn, agent, prompt, args...)
	require.NoError(t, err)
	require.Empty(t, o.Error)
	return o
}

// Exec runs statements that must succeed; rows with a column named error, as create_agent returns them, are failures too.
// Several statements in one text are allowed as long as they have no arguments.
func Exec(t testing.TB, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if len(args) > 0 {
		for _, row := range Rows(t, conn, sql, args...) {
			require.Nil(t, row["error"], sql)
		}
		return
	}
	results, err := conn.PgConn().Exec(t.Context(), sql).ReadAll()
	require.NoError(t, err, sql)
	for _, r := range results {
		for i, field := range r.FieldDescriptions {
			for _, row := range r.Rows {
				require.False(t, field.Name == "error" && row[i] != nil, "%s: %s", sql, row[i])
			}
		}
	}
}

// Rows runs a query and returns its rows as maps.
func Rows(t testing.TB, conn *pgx.Conn, sql string, args ...any) []map[string]any {
	t.Helper()
	rows, err := conn.Query(t.Context(), sql, args...)
	require.NoError(t, err, sql)
	list, err := pgx.CollectRows(rows, pgx.RowToMap)
	require.NoError(t, err, sql)
	return list
}

// Value runs a query that returns one value, as text ("" for NULL).
func Value(t testing.TB, conn *pgx.Conn, sql string, args ...any) string {
	t.Helper()
	var v *string
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT ("+sql+")::text", args...).Scan(&v), sql)
	if v == nil {
		return ""
	}
	return *v
}

// State is the SQLSTATE of an error, or "" when it does not come from the server.
func State(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// Step is a row of the activity log.
type Step struct {
	Type, Request, Response, Error string
}

// Log reads the activity log of a conversation, in order.
func Log(t testing.TB, conn *pgx.Conn, conversation string) []Step {
	t.Helper()
	rows, err := conn.Query(t.Context(), `SELECT action_type::text, coalesce(request_payload::text, ''), coalesce(response_payload::text, ''),
		coalesce(error, '') FROM aidb_internal.action_log WHERE conversation_id = $1::uuid ORDER BY created_at, id`, conversation)
	require.NoError(t, err)
	steps, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Step])
	require.NoError(t, err)
	return steps
}

// Types lists only what kind each step is.
func Types(steps []Step) []string {
	kinds := make([]string, len(steps))
	for i, s := range steps {
		kinds[i] = s.Type
	}
	return kinds
}
