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
		return inspect(t, `SELECT string_agg(calls || '/' || total, ' ' ORDER BY kind, path) FROM (SELECT DISTINCT ON (kind, who, path) * FROM aidb_internal.event_totals
			WHERE who = 'totals person' OR who IN (SELECT id::text FROM aidb_internal.policy_sessions WHERE principal = 'totals person') ORDER BY kind, who, path, upto DESC) t`)
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

	// A limit holds for who looks at the world as it was, too.
	servertest.Exec(t, other, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM aidb.policies")
	calls(t, ann, second, 70)
	ask(t, other, first, "170", "246")
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
	require.Equal(t, "244/0 244/488 170/0 170/340 74/0 74/148", inspect(t, `SELECT string_agg(calls || '/' || total, ' ' ORDER BY kind, calls DESC, path) FROM (SELECT DISTINCT ON (kind, who, path) * FROM aidb_internal.event_totals
		WHERE who = 'totals person' OR who IN ($1, $2) ORDER BY kind, who, path, upto DESC) t`, first, second), "an outcome changes no count")
}

// What has happened within a time is counted as a difference when it is much: the same, whatever the time and the order of questions.
func TestTotals_WithinATime(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	servertest.Exec(t, admin, `SELECT aidb.create_policy('within', ARRAY[
		aidb.transition('start', 'x', NULL),
		aidb.transition('start', 'ask', NULL, $$
			aidb.event_count(session_id, 'x', (params ->> 'w')::interval) = (params ->> 'n')::int
			AND coalesce(aidb.event_sum(session_id, 'x', 'v', (params ->> 'w')::interval)::text, '') = params ->> 'sum'
			AND aidb.principal_event_count(principal, 'x', (params ->> 'w')::interval) = (params ->> 'n')::int
			AND aidb.principal_event_sum(principal, 'x', '$.v', (params ->> 'w')::interval)::text = params ->> 'sum' $$),
		aidb.transition('start', 'ever', NULL, $$ aidb.event_count(session_id, 'x') = (params ->> 'n')::int $$)])`)
	session := servertest.Value(t, ann, "SELECT aidb.start_policy_session('within', 'within person')")
	// An event a minute, the last of them half a minute ago; those before them are of another day.
	insert := func(from, to string) {
		servertest.Exec(t, admin, `INSERT INTO aidb_internal.session_events (session_id, policy, tool_name, params, from_state, to_state, principal, rank, called_at)
			SELECT $1::uuid, 'within', 'x', '{"v": 2}', 'start', 'start', 'within person', 0, now() - m * interval '1 minute' - interval '30 seconds'
			FROM generate_series($2::int, $3::int, -1) m`, session, from, to)
	}
	within := func(minutes, n, sum string) {
		t.Helper()
		allow(t, ann, session, "ask", `{"w": "`+minutes+` minutes", "n": `+n+`, "sum": "`+sum+`"}`)
	}
	kept := func() string {
		return inspect(t, "SELECT count(DISTINCT since) || ' of ' || count(DISTINCT (since, upto)) FROM aidb_internal.event_totals WHERE who = $1", session)
	}
	insert("9000", "5001")
	insert("2999", "0")
	within("10", "10", "20")
	within("64", "64", "128")
	require.Equal(t, "0 of 0", kept(), "few are read as they are")
	within("500", "500", "1000")
	require.Equal(t, "1 of 1", kept())
	for _, w := range [][2]string{{"499", "998"}, {"430", "860"}, {"429", "858"}, {"300", "600"}, {"65", "130"}, {"64", "128"}, {"450", "900"}, {"500", "1000"}} {
		within(w[0], w[0], w[1])
	}
	require.Equal(t, "1 of 4", kept(), "the beginning of the time goes on, with totals of its own")
	within("2000", "2000", "4000")
	within("1000", "1000", "2000")
	within("500", "500", "1000")
	within("4000", "3000", "6000")
	calls := func(n int) {
		servertest.Exec(t, ann, `SELECT aidb.authorize_tool_call($1::uuid, 'x', '{"v": 2}') FROM generate_series(1, $2)`, session, n)
	}
	calls(100)
	within("1000", "1100", "2200")
	within("10", "110", "220")
	calls(1)
	within("1", "102", "204")
	within("3000", "3101", "6202")
	allow(t, ann, session, "ever", `{"n": 7101}`)
	within("3000", "3101", "6202")
	within("2500", "2601", "5202")

	// What is rolled back was never counted; who sees less than there is keeps nothing.
	servertest.Exec(t, ann, "BEGIN")
	calls(200)
	within("2500", "2801", "5602")
	servertest.Exec(t, ann, "ROLLBACK")
	within("2500", "2601", "5202")

	// It is what is kept that answers, and not the events.
	servertest.Exec(t, admin, "BEGIN")
	servertest.Exec(t, admin, "UPDATE aidb_internal.event_totals SET calls = calls + 5 WHERE who = $1 AND path = '' AND upto = (SELECT max(upto) FROM aidb_internal.event_totals WHERE who = $1 AND path = '')", session)
	require.Equal(t, "2606", servertest.Value(t, admin, "SELECT aidb.event_count($1::uuid, 'x', '2500 minutes')", session))
	servertest.Exec(t, admin, "ROLLBACK")

	// A superuser changes what has happened: counted anew.
	servertest.Exec(t, admin, "DELETE FROM aidb_internal.session_events WHERE id = (SELECT min(id) FROM aidb_internal.session_events WHERE session_id = $1::uuid AND called_at > now() - interval '2000 minutes')", session)
	within("2500", "2600", "5200")
	within("500", "601", "1202")
	servertest.Exec(t, admin, "UPDATE aidb_internal.session_events SET called_at = called_at - interval '45 seconds' WHERE id = (SELECT min(id) FROM aidb_internal.session_events WHERE session_id = $1::uuid AND called_at > now() - interval '500 minutes')", session)
	within("500", "600", "1200")

	// No difference takes away what is no number, so what has one is added up.
	servertest.Exec(t, admin, `UPDATE aidb_internal.session_events SET params = '{"v": "NaN"}' WHERE id = (SELECT min(id) FROM aidb_internal.session_events WHERE session_id = $1::uuid AND called_at > now() - interval '1500 minutes')`, session)
	within("2000", "2100", "NaN")
	within("2000", "2100", "NaN")
	within("1000", "1101", "2202")
	within("1000", "1101", "2202")
}
