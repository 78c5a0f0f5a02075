package policy

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/servertest"
)

const totals = `SELECT aidb.create_policy('totals', ARRAY[
	aidb.transition('start', 'x', NULL),
	aidb.transition('start', 'ask', NULL, $$
		aidb.event_count(session_id, 'x') = (params ->> 'mine')::int AND aidb.event_sum(session_id, 'x', 'a.v') = 2 * (params ->> 'mine')::int
		AND aidb.principal_event_count(principal, 'x') = (params ->> 'all')::int AND aidb.principal_event_sum(principal, 'x', '$.a.v') = 2 * (params ->> 'all')::int $$)])`

// calls makes some calls of x in one statement; each has the value 2.
func calls(t *testing.T, conn *pgx.Conn, session string, n int) {
	t.Helper()
	servertest.Exec(t, conn, `SELECT aidb.authorize_tool_call($1::uuid, 'x', '{"a": {"v": 2}}') FROM generate_series(1, $2)`, session, n)
}

// ask checks what a condition counts: in the session, and of its principal.
func ask(t *testing.T, conn *pgx.Conn, session, mine, all string) {
	t.Helper()
	allow(t, conn, session, "ask", `{"mine": `+mine+`, "all": `+all+`}`)
}

// What is kept of all time is what the events come to, whatever happens to them.
func TestTotals_AgreeWithTheEvents(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	servertest.Exec(t, admin, totals)
	kept := func() string {
		return inspect(t, "SELECT string_agg(calls || '/' || total, ' ' ORDER BY kind, path) FROM aidb_internal.event_totals WHERE who = 'totals person' OR who IN (SELECT id::text FROM aidb_internal.policy_sessions WHERE principal = 'totals person')")
	}
	first := servertest.Value(t, ann, "SELECT aidb.start_policy_session('totals', 'totals person')")
	second := servertest.Value(t, ann, "SELECT aidb.start_policy_session('totals', 'totals person')")
	calls(t, ann, first, 10)
	ask(t, ann, first, "10", "10")
	require.Empty(t, kept(), "few are read each time")
	calls(t, ann, first, 60)
	ask(t, ann, first, "70", "70")
	require.Equal(t, "70/0 70/140 70/0 70/140", kept())
	calls(t, ann, second, 5)
	ask(t, ann, second, "5", "75")
	ask(t, ann, first, "70", "75")

	// Replayed, what came later has not happened.
	require.Equal(t, "allow", servertest.Value(t, admin, "SELECT string_agg(DISTINCT verdict, ' ') FROM aidb.simulate_policy('totals', '-infinity')"))

	// What is rolled back was never counted.
	tx, err := ann.Begin(t.Context())
	require.NoError(t, err)
	calls(t, ann, first, 100)
	ask(t, ann, first, "170", "175")
	require.NoError(t, tx.Rollback(t.Context()))
	ask(t, ann, first, "70", "75")
	servertest.Exec(t, ann, "BEGIN")
	calls(t, ann, first, 1)
	servertest.Exec(t, ann, "SAVEPOINT s")
	calls(t, ann, first, 80)
	ask(t, ann, first, "151", "156")
	servertest.Exec(t, ann, "ROLLBACK TO s")
	ask(t, ann, first, "71", "76")
	servertest.Exec(t, ann, "COMMIT")
	ask(t, ann, first, "71", "76")

	// An older event that comes to light later is counted: nothing is kept meanwhile of what it belongs to.
	other := server.Conn(t, "ann")
	servertest.Exec(t, other, "BEGIN")
	calls(t, other, second, 1)
	calls(t, ann, first, 99)
	ask(t, ann, first, "170", "175")
	require.Equal(t, "70/0 70/140 170/0 170/340", kept(), "of the principal nothing new, of the session all")
	servertest.Exec(t, other, "COMMIT")
	ask(t, ann, first, "170", "176")
	require.Equal(t, "176/0 176/352 170/0 170/340", kept())

	// One snapshot for a whole transaction sees less than there is.
	servertest.Exec(t, other, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM aidb.policies")
	calls(t, ann, second, 70)
	ask(t, other, first, "170", "176")
	servertest.Exec(t, other, "COMMIT")
	ask(t, ann, first, "170", "246")
	ask(t, ann, second, "76", "246")

	// A superuser changes what has happened.
	servertest.Exec(t, admin, "DELETE FROM aidb_internal.session_events WHERE id = (SELECT min(id) FROM aidb_internal.session_events WHERE session_id = $1::uuid)", second)
	ask(t, ann, second, "75", "245")
	ask(t, ann, first, "170", "245")
	servertest.Exec(t, admin, "UPDATE aidb_internal.session_events SET tool_name = 'y' WHERE id = (SELECT max(id) FROM aidb_internal.session_events WHERE session_id = $1::uuid AND tool_name = 'x')", second)
	ask(t, ann, second, "74", "244")
	servertest.Exec(t, admin, "UPDATE aidb_internal.session_events SET outcome = 'unknown' WHERE session_id = $1::uuid", second)
	require.Equal(t, "244/0 244/488 170/0 170/340 74/0 74/148", inspect(t, `SELECT string_agg(calls || '/' || total, ' ' ORDER BY kind, calls DESC, path) FROM aidb_internal.event_totals
		WHERE who = 'totals person' OR who IN ($1, $2)`, first, second), "an outcome changes no count")
}
