package escape

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"

	"aidb/tests/cluster"
	"aidb/tests/fakemodel"
)

// What takes a second session, or a client that speaks the protocol by hand.

// A client that reads a result piece by piece leaves a suspended portal, which no statement has declared.
func TestPortals_SuspendedByTheClient(t *testing.T) {
	db := database(t)
	conn := connect(t, "keeper", db)
	wire := conn.PgConn().Frontend()
	rows := func(max uint32) (read []string, suspended bool) {
		wire.SendExecute(&pgproto3.Execute{Portal: "halfway", MaxRows: max})
		wire.SendSync(&pgproto3.Sync{})
		require.NoError(t, wire.Flush())
		for {
			m, err := conn.PgConn().ReceiveMessage(t.Context())
			require.NoError(t, err)
			switch m := m.(type) {
			case *pgproto3.DataRow:
				read = append(read, string(m.Values[0]))
			case *pgproto3.PortalSuspended:
				suspended = true
			case *pgproto3.ErrorResponse:
				t.Fatalf("%s", m.Message)
			case *pgproto3.ReadyForQuery:
				return read, suspended
			}
		}
	}
	do(t, conn, "BEGIN")
	wire.SendParse(&pgproto3.Parse{Query: "SELECT line FROM store.ledger ORDER BY id"})
	wire.SendBind(&pgproto3.Bind{DestinationPortal: "halfway"})
	read, suspended := rows(2)
	require.Equal(t, []string{"HUSH-1", "HUSH-2"}, read)
	require.True(t, suspended)

	for _, attack := range []string{
		"DO $$ DECLARE c refcursor := 'halfway'; x text; BEGIN FETCH c INTO x; RAISE EXCEPTION 'got %', x; END $$",
		"DO $$ DECLARE c refcursor := 'halfway'; BEGIN MOVE FORWARD 2 FROM c; END $$",
		"DO $$ DECLARE c refcursor := 'halfway'; BEGIN CLOSE c; OPEN c FOR SELECT guest.payload('portal'); END $$",
		"FETCH 1 FROM halfway", "CLOSE halfway", "CLOSE ALL", "SELECT cursor_to_xml('halfway', 1, true, true, '')",
	} {
		do(t, conn, "SAVEPOINT s")
		s := tell(t.Context(), conn, "guest_writes", attack)
		require.NotEmpty(t, s.state, attack)
		require.NotContains(t, s.message, "HUSH")
		do(t, conn, "ROLLBACK TO s")
		require.Empty(t, tell(t.Context(), conn, "guest_reads", "SELECT 1 AS one").state)
	}
	read, suspended = rows(3)
	require.Equal(t, []string{"HUSH-3", "HUSH-4", "HUSH-5"}, read)
	require.True(t, suspended)
	read, suspended = rows(0)
	require.Len(t, read, 5)
	require.False(t, suspended)
	do(t, conn, "COMMIT")
	require.Equal(t, "f", value(t, conn, "SELECT EXISTS (SELECT FROM safe.breach)"))
}

// A client that pipelines: the agent is called by a portal that is itself run in pieces, between portals of others.
func TestPortals_OfTheAgentsOwnCall(t *testing.T) {
	db := database(t)
	conn := connect(t, "keeper", db)
	batch := &pgx.Batch{}
	for range 3 {
		batch.Queue("SELECT harness.ask('guest_writes', $1)", "DO $$ DECLARE c refcursor := ''; BEGIN CLOSE c; END $$")
		batch.Queue("SELECT harness.ask('guest_reads', $1)", "SELECT 1 AS one")
	}
	results := conn.SendBatch(t.Context(), batch)
	for range 3 {
		var closed, read string
		require.NoError(t, results.QueryRow().Scan(&closed))
		require.Contains(t, closed, "refused")
		require.NoError(t, results.QueryRow().Scan(&read))
		require.Equal(t, `[{"one": 1}]`, read)
	}
	require.NoError(t, results.Close())
}

// agentOfTwoCalls makes an agent that runs two statements, one after the other.
func agentOfTwoCalls(t *testing.T, admin *pgx.Conn, name, purpose, first, second string) {
	t.Helper()
	call := func(sql string) string {
		return fmt.Sprintf(`{"tool_calls": [{"name": "execute_sql", "arguments": {"statement": %q}}]}`, sql)
	}
	do(t, admin,
		fmt.Sprintf(`SELECT aidb.create_model('%s', 'dummy', $j${"scope": "call", "responses": [%s, %s, {"response": "done"}]}$j$, validate => false)`, name, call(first), call(second)),
		fmt.Sprintf(`SELECT * FROM aidb.create_agent('%s', 'test', '%s', tools => '{execute_sql}', purpose => '%s')`, name, name, purpose))
}

// answers lists what the tools gave in the newest conversation of a caller.
func answers(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	return strings.Split(value(t, conn, `SELECT coalesce(response_payload ->> 'error', response_payload ->> 'contents') FROM aidb_internal.action_log
		WHERE action_type = 'tool_response' ORDER BY created_at`), "\n")
}

// waiting returns when a session of the role waits for a lock.
func waiting(t *testing.T, admin *pgx.Conn, role string) {
	t.Helper()
	require.True(t, cluster.Wait(20*time.Second, func() bool {
		return value(t, admin, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND usename = '"+role+"'") != "0"
	}), "nobody waits")
}

func TestMembership_RevokedBetweenTwoTools(t *testing.T) {
	db := database(t)
	admin, peer, conn := connect(t, "postgres", db), connect(t, "postgres", db), connect(t, "clerk", db)
	agentOfTwoCalls(t, admin, "twice", "guest", "UPDATE store.goods SET title = 'first' WHERE id = 1", "UPDATE store.goods SET title = 'second' WHERE id = 1")
	do(t, peer, "BEGIN", "SELECT FROM store.goods WHERE id = 1 FOR UPDATE")
	done := make(chan seen, 1)
	go func() {
		done <- execute(context.Background(), conn, "SELECT message FROM aidb.agent_converse('twice', 'go')")
	}()
	waiting(t, admin, "clerk")
	do(t, admin, "REVOKE guest FROM clerk")
	do(t, peer, "ROLLBACK")
	require.Equal(t, "done", (<-done).output)
	told := answers(t, conn)
	require.Contains(t, told[0], `"rows_affected": 1`, "the statement had begun when the membership ended")
	require.Contains(t, told[1], "not a member of role")
	require.Equal(t, "first", value(t, admin, "SELECT title FROM store.goods WHERE id = 1"))
}

func TestRole_DroppedWhileItsToolRuns(t *testing.T) {
	db := database(t)
	admin, peer, conn := connect(t, "postgres", db), connect(t, "postgres", db), connect(t, "clerk", db)
	do(t, admin, "CREATE ROLE brief", "GRANT brief TO clerk", "SELECT aidb.create_purpose('brief', 'brief')",
		"GRANT USAGE ON SCHEMA aidb, store TO brief", "GRANT EXECUTE ON FUNCTION aidb.execute_sql(text) TO brief", "GRANT SELECT, UPDATE ON store.goods TO brief")
	agentOfTwoCalls(t, admin, "brief", "brief",
		"DO $$ BEGIN UPDATE store.goods SET title = 'changed' WHERE id = 1; PERFORM current_user; UPDATE store.goods SET title = current_user WHERE id = 2; END $$", "SELECT 1 AS one")
	do(t, peer, "BEGIN", "SELECT FROM store.goods WHERE id = 1 FOR UPDATE")
	done := make(chan seen, 1)
	go func() {
		done <- execute(context.Background(), conn, "SELECT message FROM aidb.agent_converse('brief', 'go')")
	}()
	waiting(t, admin, "clerk")
	do(t, admin, "DROP OWNED BY brief", "DROP ROLE brief")
	do(t, peer, "ROLLBACK")
	s := <-done
	require.Equal(t, "done", s.output, s)
	told := answers(t, conn)
	require.Contains(t, told[0], "Tool error", "a role that is gone may do nothing more")
	require.Contains(t, told[1], "role 'brief' does not exist")
	require.Equal(t, "thing 1", value(t, admin, "SELECT title FROM store.goods WHERE id = 1"))
	require.Equal(t, "clerk|clerk", value(t, conn, "SELECT current_user, session_user"))
}

// The caller's own cancel ends the whole call, however the tool's SQL catches it, and leaves the session as it was.
func TestCancel_EndsTheCallAndLeavesTheSession(t *testing.T) {
	db := database(t)
	conn := connect(t, "keeper", db)
	do(t, conn, "SET work_mem = '5MB'", "BEGIN", "DECLARE mine CURSOR FOR SELECT id FROM store.goods ORDER BY id", "FETCH 2 FROM mine", "SAVEPOINT s")
	watcher, pid := connect(t, "postgres", db), value(t, conn, "SELECT pg_backend_pid()")
	for sql, running := range map[string]string{
		"SELECT pg_sleep(60)": "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND pid = " + pid,
		// it writes what it makes to a temporary file
		"SELECT count(*) FROM generate_series(1, 1000000000)": "SELECT count(*) FROM pg_ls_tmpdir() WHERE name LIKE 'pgsql_tmp" + pid + ".%'",
	} {
		before := takeFingerprint(t, conn)
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			cluster.Wait(20*time.Second, func() bool { return execute(context.WithoutCancel(t.Context()), watcher, running).output != "0" })
			_ = conn.PgConn().CancelRequest(context.WithoutCancel(t.Context()))
		}()
		s := tell(t.Context(), conn, "guest_writes", sql)
		require.Equal(t, "57014", s.state, s)
		<-sent // the server signals the backend and then its process group
		do(t, conn, "ROLLBACK TO s")
		require.Empty(t, before.changes(takeFingerprint(t, conn), true))
	}
	require.Equal(t, "3", value(t, conn, "FETCH 1 FROM mine"))
	require.Empty(t, tell(t.Context(), conn, "guest_reads", "SELECT 1 AS one").state)
	do(t, conn, "COMMIT")
}

// A session that is told to go goes, also from inside a tool call that catches errors, and takes nothing with it.
func TestTerminate_InsideACall(t *testing.T) {
	db := database(t)
	admin, conn := connect(t, "postgres", db), connect(t, "clerk", db)
	pid := conn.PgConn().PID()
	done := make(chan seen, 1)
	go func() {
		done <- tell(context.Background(), conn, "guest_writes", "DO $$ BEGIN LOOP BEGIN UPDATE store.goods SET stock = -1; PERFORM pg_sleep(1); EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END $$")
	}()
	require.True(t, cluster.Wait(20*time.Second, func() bool {
		return value(t, admin, fmt.Sprintf("SELECT count(*) FROM pg_stat_activity WHERE pid = %d AND state = 'active'", pid)) == "1"
	}))
	do(t, admin, fmt.Sprintf("SELECT pg_terminate_backend(%d, 10000)", pid))
	require.NotEmpty(t, (<-done).state)
	require.Equal(t, "0", value(t, admin, "SELECT count(*) FROM store.goods WHERE stock = -1"))
	require.Equal(t, "0", value(t, admin, fmt.Sprintf("SELECT count(*) FROM pg_locks WHERE pid = %d", pid)))
}

// Nobody hears of a tool call by way of NOTIFY, whoever listens.
func TestNotify_ReachesNobody(t *testing.T) {
	db := database(t)
	listener, conn := connect(t, "postgres", db), connect(t, "keeper", db)
	do(t, listener, "LISTEN news")
	for _, sql := range []string{"NOTIFY news", "SELECT pg_notify('news', 'x')", "DO $$ BEGIN PERFORM pg_notify('news', 'x'); EXCEPTION WHEN OTHERS THEN NULL; END $$"} {
		tell(t.Context(), conn, "guest_writes", sql)
		tell(t.Context(), conn, "guest_reads", sql)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	n, err := listener.WaitForNotification(ctx)
	require.Error(t, err, "%v", n)
}

// The agent called from where a caller seldom calls anything: from code that runs inside of other statements.
func TestCaller_InOddPlaces(t *testing.T) {
	db := database(t)
	admin := connect(t, "postgres", db)
	conn := connect(t, "keeper", db)
	forced := "force_parallel_mode"
	if version(t, conn) >= 160000 {
		forced = "debug_parallel_query"
	}
	do(t, conn, `CREATE FUNCTION store.asks(integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $f$
		BEGIN RETURN length(harness.ask('guest_reads', 'SELECT count(*) AS n FROM store.orders')); END $f$`)
	for _, sql := range []string{
		"CREATE TABLE store.checked (a integer CHECK (store.asks(a) > 0)); INSERT INTO store.checked VALUES (1), (2)",
		"CREATE TABLE store.made (a integer, b integer GENERATED ALWAYS AS (store.asks(a)) STORED); INSERT INTO store.made VALUES (1), (2)",
		"CREATE INDEX ON store.orders (store.asks(id))",
		"CREATE MATERIALIZED VIEW store.asked AS SELECT store.asks(id) AS n FROM store.orders; REFRESH MATERIALIZED VIEW store.asked",
		"SELECT count(*) FROM store.goods WHERE store.asks(id) > 0 GROUP BY store.asks(stock)",
		"SELECT string_agg(title, ',' ORDER BY store.asks(id)) FROM store.goods",
		"SELECT sum(store.asks(id)) OVER (ORDER BY id) FROM store.orders",
		"SET " + forced + " = on; SELECT store.asks(id) FROM store.orders",
		"DO $$ BEGIN PERFORM store.asks(1); EXCEPTION WHEN OTHERS THEN PERFORM store.asks(2); END $$",
		"BEGIN READ ONLY; SELECT store.asks(1); COMMIT",
		"BEGIN ISOLATION LEVEL SERIALIZABLE, READ ONLY, DEFERRABLE; SELECT store.asks(1); COMMIT",
		"CREATE FUNCTION store.on_insert() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN PERFORM store.asks(1); RETURN NEW; END $f$; CREATE CONSTRAINT TRIGGER asks AFTER INSERT ON store.orders DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION store.on_insert(); INSERT INTO store.orders VALUES (50), (51)",
		"COPY (SELECT store.asks(id) FROM store.orders) TO STDOUT",
		"DECLARE held CURSOR WITH HOLD FOR SELECT store.asks(id) FROM store.orders; FETCH 1 FROM held; CLOSE held",
		"ANALYZE store.orders",
	} {
		s := execute(t.Context(), conn, sql)
		require.False(t, conn.IsClosed(), "%s: %s", sql, s)
		// What is refused is refused by an error that says why: in a worker, in a security-restricted operation.
		if s.state != "" {
			t.Logf("%s: %s", sql, s)
			do(t, conn, "ROLLBACK")
		}
		require.Equal(t, "keeper|keeper", value(t, conn, "SELECT current_user, session_user"), sql)
		do(t, conn, "RESET "+forced)
	}
	require.Equal(t, "0", value(t, admin, "SELECT count(*) FROM safe.breach"))
}

// A statement of nearly a megabyte is a statement; one of five is refused before it is parsed. What is told of either is
// cut.
func TestStatement_OfManyMegabytes(t *testing.T) {
	db := database(t)
	conn := connect(t, "clerk", db)
	large := strings.Repeat("lorem ipsum ", 1000_000/12)
	s := tell(t.Context(), conn, "guest_reads", "SELECT length('"+large+"') AS n")
	require.Equal(t, fmt.Sprintf(`[{"n": %d}]`, len(large)), s.output, s)
	s = tell(t.Context(), conn, "guest_writes", "INSERT INTO guest.pad (note) VALUES ('"+large+"')")
	require.Equal(t, `{"rows_affected": 1}`, s.output, s)
	s = tell(t.Context(), conn, "guest_reads", "SELECT 1/0 /* "+large+" */")
	require.Contains(t, s.message, "division by zero")
	huge := strings.Repeat(large, 5)
	for _, sql := range []string{huge, "SELECT length('" + huge + "')", "DELETE FROM guest.pad /* " + huge + " */"} {
		for _, agent := range []string{"guest_reads", "guest_writes"} {
			s = tell(t.Context(), conn, agent, sql)
			require.NotEmpty(t, s.state)
			require.Less(t, len(s.message), 20_000)
		}
	}
	require.Equal(t, "3", value(t, conn, "SELECT count(*) FROM guest.pad"))
	require.Equal(t, "5120", value(t, connect(t, "postgres", db), "SELECT max(octet_length(query_text)) FROM aidb.decisions"))
}

// Bytes that no text may have come only from a model: over the wire.
func TestStatement_WithBytesThatAreNoText(t *testing.T) {
	db := database(t)
	model, err := fakemodel.Start(fakemodel.Options{})
	require.NoError(t, err)
	defer model.Close()
	conn := connect(t, "clerk", db)
	do(t, conn, fmt.Sprintf(`SELECT aidb.create_model('wire', 'openai_completions', '{"model": "wire", "url": "%s"}', credentials => '{"api_key": "k"}', validate => false)`, model.URL()),
		"SELECT * FROM aidb.create_agent('wire', 'test', 'wire', tools => '{execute_sql}', purpose => 'guest')")
	for name, sql := range map[string]string{
		"NUL before a second statement": "SELECT 1 AS one\x00; DELETE FROM guest.pad", "NUL inside a name": "SELECT 1 AS o\x00ne",
		"NUL inside a literal": "SELECT 'a\x00b' AS v", "invalid UTF-8": "SELECT '\xff\xfe' AS v", "half a character": "SELECT 'x\xe2\x82' AS v",
		"surrogates": "SELECT '\xed\xa0\x80' AS v", "overlong": "SELECT '\xc0\xa7; DELETE FROM guest.pad; --' AS v",
	} {
		t.Run(name, func(t *testing.T) {
			model.Script("wire", fakemodel.Call("execute_sql", map[string]any{"statement": sql}), fakemodel.Say("done"))
			s := execute(t.Context(), conn, "SELECT message, error FROM aidb.agent_converse('wire', 'go')")
			require.Empty(t, s.state, s)
			require.Equal(t, "2", value(t, conn, "SELECT count(*) FROM guest.pad"))
		})
	}
}
