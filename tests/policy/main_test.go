// Package policy asks, as users see it, whether temporal policies hold: from plain SQL, from a client that puts check and
// effect into one transaction, and through agents. docs/reference/policies.md is the text that these tests stand behind.
package policy

import (
	"context"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/cluster"
	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

var server *servertest.Server

func TestMain(m *testing.M) { servertest.Main(m, cluster.Options{}, &server) }

// orders is the machine of the walk-through: what was cancelled cannot be refunded.
const orders = `ARRAY[aidb.transition('start', 'lookup_order', 'order_loaded'),
	aidb.transition('order_loaded', 'refund_order', 'refunded'), aidb.transition('order_loaded', 'cancel_order', 'cancelled')]`

// shop makes a table of orders named as the test, with three tools of that name's prefix, and a policy over them.
func shop(t *testing.T, name string) {
	t.Helper()
	admin := server.Admin(t)
	servertest.Exec(t, admin, `CREATE TABLE public.`+name+` (id int PRIMARY KEY, state text NOT NULL DEFAULT 'open', total numeric NOT NULL DEFAULT 10);
		INSERT INTO public.`+name+` SELECT g FROM generate_series(1, 9) g; GRANT SELECT, UPDATE ON public.`+name+` TO ann;
		SELECT aidb.create_sql_tool('`+name+`_lookup', '', 'SELECT id, state FROM public.`+name+` WHERE id = ${id}', aidb.tool_params(aidb.tool_param('id', 'int', '')));
		SELECT aidb.create_sql_tool('`+name+`_cancel', '', 'UPDATE public.`+name+` SET state = ''cancelled'' WHERE id = ${id}', aidb.tool_params(aidb.tool_param('id', 'int', '')), read_only => false);
		SELECT aidb.create_sql_tool('`+name+`_refund', '', 'UPDATE public.`+name+` SET state = ''refunded'', total = 10 / total WHERE id = ${id}', aidb.tool_params(aidb.tool_param('id', 'int', '')), read_only => false);
		SELECT aidb.create_policy('`+name+`', ARRAY[aidb.transition('start', '`+name+`_lookup', 'loaded'), aidb.transition('loaded', '`+name+`_lookup', NULL),
			aidb.transition('loaded', '`+name+`_refund', 'refunded'), aidb.transition('loaded', '`+name+`_cancel', 'cancelled')])`)
}

// ids is the argument of the tools of shop.
func ids(id int) map[string]any { return map[string]any{"id": id} }

// guarded registers an agent of ann's with the three tools of a shop under its policy.
func guarded(t *testing.T, ann *pgx.Conn, name string) {
	t.Helper()
	shop(t, name)
	server.Agent(t, ann, name, []string{name + "_lookup", name + "_cancel", name + "_refund"})
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent($1, policy => $1)", name)
}

// talk has the agent make these calls, one a round, and returns what each came back with.
func talk(t *testing.T, conn *pgx.Conn, agent string, replies ...fakemodel.Reply) ([]string, servertest.Outcome) {
	t.Helper()
	server.Model.Script(agent, append(replies[:len(replies):len(replies)], fakemodel.Say("done"))...)
	o := servertest.MustAsk(t, conn, agent, "go")
	require.Equal(t, "done", o.Message)
	requests := server.Model.Requests(agent)
	var list []string
	for _, e := range requests[len(requests)-1].Turn() {
		list = append(list, e.Result)
	}
	return list, o
}

// session begins a session of a policy as the connection's role.
func session(t *testing.T, conn *pgx.Conn, policy string) string {
	t.Helper()
	return servertest.Value(t, conn, "SELECT aidb.start_policy_session($1)", policy)
}

// authorize asks the guard.
func authorize(t *testing.T, conn *pgx.Conn, session, tool string, params ...string) (string, error) {
	t.Helper()
	given := "{}"
	if len(params) > 0 {
		given = params[0]
	}
	var state string
	err := conn.QueryRow(t.Context(), "SELECT aidb.authorize_tool_call($1::uuid, $2, $3::jsonb)", session, tool, given).Scan(&state)
	return state, err
}

// allow asks the guard and must be let through.
func allow(t *testing.T, conn *pgx.Conn, session, tool string, params ...string) string {
	t.Helper()
	state, err := authorize(t, conn, session, tool, params...)
	require.NoError(t, err)
	return state
}

// refuse asks the guard and must be refused, with this text.
func refuse(t *testing.T, conn *pgx.Conn, text, session, tool string, params ...string) {
	t.Helper()
	_, err := authorize(t, conn, session, tool, params...)
	require.ErrorContains(t, err, text)
	require.Equal(t, "42501", servertest.State(err))
}

// inspector is one connection for all looks at what is stored: some tests look hundreds of times.
var inspector = sync.OnceValues(func() (*pgx.Conn, error) {
	return server.Connect(context.Background(), "postgres", servertest.Database)
})

func inspect(t *testing.T, sql string, args ...any) string {
	t.Helper()
	conn, err := inspector()
	require.NoError(t, err)
	return servertest.Value(t, conn, sql, args...)
}

// state is where a session stands; events its log, as "tool:from>to".
func state(t *testing.T, session string) string {
	t.Helper()
	return inspect(t, "SELECT string_agg(state, ',' ORDER BY policy) FROM aidb.policy_sessions WHERE id = $1::uuid", session)
}

func events(t *testing.T, session string) string {
	t.Helper()
	return inspect(t,
		"SELECT string_agg(tool_name || ':' || from_state || '>' || to_state, ' ' ORDER BY id) FROM aidb.session_events WHERE session_id = $1::uuid", session)
}

func newID() string { return uuid.NewString() }
