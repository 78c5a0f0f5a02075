// Package actions asks, as users see it, whether what waits for a person really waits, and for that person alone:
// docs/reference/actions.md is the text that these tests stand behind.
package actions

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/cluster"
	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

var server *servertest.Server

func TestMain(m *testing.M) { servertest.Main(m, cluster.Options{}, &server) }

// goods makes a table of five rows in state open, which ann and bob may change, and a tool "<name>_close" of class confirm that
// closes those up to a number. Further arguments of create_sql_tool may be given as SQL.
func goods(t *testing.T, name string, more ...string) {
	t.Helper()
	admin := server.Admin(t)
	servertest.Exec(t, admin, fmt.Sprintf(`CREATE TABLE public.%[1]s (id int PRIMARY KEY, state text NOT NULL DEFAULT 'open');
		INSERT INTO public.%[1]s SELECT generate_series(1, 5); GRANT ALL ON public.%[1]s TO ann, bob`, name))
	sqlTool(t, name+"_close", fmt.Sprintf("UPDATE public.%s SET state = 'closed' WHERE id <= ${id} AND state = 'open'", name),
		append([]string{"risk => 'confirm'"}, more...)...)
}

func sqlTool(t *testing.T, name, statement string, more ...string) {
	t.Helper()
	servertest.Exec(t, server.Admin(t), fmt.Sprintf(`SELECT aidb.create_sql_tool(%s, 'a test', %s,
		aidb.tool_params(aidb.tool_param('id', 'int', 'up to')), read_only => false%s)`,
		quote(name), quote(statement), strings.Join(append([]string{""}, more...), ", ")))
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func use(tool string, id int) fakemodel.Reply { return fakemodel.Call(tool, map[string]any{"id": id}) }

// pending is the one action that a connection sees waiting.
type pending struct{ id, token string }

func waiting(t *testing.T, conn *pgx.Conn) []pending {
	t.Helper()
	var list []pending
	for _, row := range servertest.Rows(t, conn, "SELECT action_id::text AS id, token FROM aidb.pending_actions ORDER BY created_at") {
		list = append(list, pending{row["id"].(string), row["token"].(string)})
	}
	return list
}

func theOne(t *testing.T, conn *pgx.Conn) pending {
	t.Helper()
	list := waiting(t, conn)
	require.Len(t, list, 1)
	return list[0]
}

type outcome struct {
	Step         int
	Tool, Status string
	Result       *json.RawMessage
	Error        *string
}

func (o outcome) err() string {
	if o.Error == nil {
		return ""
	}
	return *o.Error
}

func outcomes(t *testing.T, conn *pgx.Conn, sql string, args ...any) ([]outcome, error) {
	t.Helper()
	rows, err := conn.Query(t.Context(), sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[outcome])
}

func confirm(t *testing.T, conn *pgx.Conn, p pending) ([]outcome, error) {
	t.Helper()
	return outcomes(t, conn, "SELECT * FROM aidb.confirm_action($1::uuid, $2)", p.id, p.token)
}

func mustConfirm(t *testing.T, conn *pgx.Conn, p pending) []outcome {
	t.Helper()
	list, err := confirm(t, conn, p)
	require.NoError(t, err)
	return list
}

func count(t *testing.T, table, state string) string {
	t.Helper()
	return servertest.Value(t, server.Admin(t), "SELECT count(*) FROM public."+table+" WHERE state = '"+state+"'")
}

// reply is what a tool call of the newest turn came back with.
func lastResult(t *testing.T, agent string) string {
	t.Helper()
	requests := server.Model.Requests(agent)
	turn := requests[len(requests)-1].Turn()
	require.NotEmpty(t, turn)
	return turn[len(turn)-1].Result
}
