// Package tool asks, as users see it, whether what aidb promises about tools holds: parameterised SQL tools, the proof that
// a tool only reads, run_tool, and knowing beforehand what may run.
package tool

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/cluster"
	"aidb/tests/servertest"
)

var server *servertest.Server

func TestMain(m *testing.M) { servertest.Main(m, cluster.Options{}, &server) }

// create registers a SQL tool. Each parameter is an SQL expression: a call of aidb.tool_param, or of aidb.param.
func create(t *testing.T, conn *pgx.Conn, name, statement, params string, rest ...string) {
	t.Helper()
	require.NoError(t, tryCreate(t, conn, name, statement, params, rest...), "%s: %s", name, statement)
}

func tryCreate(t *testing.T, conn *pgx.Conn, name, statement, params string, rest ...string) error {
	t.Helper()
	sql := "SELECT aidb.create_sql_tool($1, 'A test.', $2, aidb.tool_params(" + params + ")"
	for _, r := range rest {
		sql += ", " + r
	}
	_, err := conn.Exec(t.Context(), sql+")", name, statement)
	return err
}

// run calls a tool and returns its result as text.
func run(t *testing.T, conn *pgx.Conn, name, arguments string) string {
	t.Helper()
	return servertest.Value(t, conn, "SELECT aidb.run_tool($1, $2::jsonb)", name, arguments)
}

// refused is a statement that must fail with this SQLSTATE; it returns the whole message.
func refused(t *testing.T, conn *pgx.Conn, state, sql string, args ...any) string {
	t.Helper()
	_, err := conn.Exec(t.Context(), sql, args...)
	require.Error(t, err, sql)
	require.Equal(t, state, servertest.State(err), "%s: %v", sql, err)
	return err.Error()
}
