package escape

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// After every kind of call, by every kind of caller, everything that the caller had going in its session is as it was:
// settings of all scopes, roles, modes, prepared statements, cursors with their places, temporary tables, savepoints,
// locks, channels, large object descriptors.

type callKind struct {
	name, agent, sql string
	ends             string // "" well, else part of the refusal
}

var callKinds = []callKind{
	{"reads", "guest_reads", "SELECT count(*) AS n FROM store.goods", ""},
	{"reads more than fits", "guest_reads", "SELECT g.id, repeat('x', 9000) AS x FROM store.goods g, store.goods h", ""},
	{"writes", "guest_writes", "UPDATE store.goods SET stock = stock + 1", ""},
	{"fails", "guest_reads", "SELECT 1 / 0", "division by zero"},
	{"fails after writing", "guest_writes", "DO $$ BEGIN UPDATE store.goods SET stock = 0; RAISE EXCEPTION 'enough'; END $$", "enough"},
	{"fails while its rows are rendered", "guest_reads", "SELECT 10 / (20 - id) AS v FROM store.goods ORDER BY id", "division by zero"},
	{"does not parse", "guest_reads", "SELEC", "syntax error"},
	{"is refused before it runs", "guest_reads", "DELETE FROM store.goods", "read-only"},
	{"is refused while it runs", "guest_writes", "DO $$ BEGIN UPDATE store.goods SET stock = 0; SET work_mem = '1MB'; END $$", "SET is not allowed"},
	{"is refused by the engine", "guest_writes", "SET ROLE keeper", "cannot set parameter"},
	{"lacks a right", "guest_writes", "TABLE store.ledger", "permission denied"},
	{"catches refusals", "guest_writes", "DO $$ BEGIN FOR i IN 1..3 LOOP BEGIN PERFORM pg_advisory_unlock_all(); EXCEPTION WHEN OTHERS THEN NULL; END; BEGIN SET ROLE NONE; EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END $$", ""},
	{"opens cursors", "guest_writes", "DO $$ DECLARE a refcursor; b refcursor := 'theirs'; BEGIN OPEN a FOR SELECT 1; OPEN b FOR SELECT 2; MOVE a; END $$", ""},
	{"leaves subtransactions behind an error", "guest_writes", "DO $$ BEGIN BEGIN BEGIN INSERT INTO guest.pad (note) VALUES ('deep'); RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN RAISE EXCEPTION 'again'; END; EXCEPTION WHEN undefined_table THEN NULL; END; END $$", "again"},
	{"runs out of time", "guest_reads", "SELECT count(*) FROM generate_series(1, 1000000000)", "time limit"},
	{"runs out of stack", "guest_reads", "SELECT repeat('[', 1000000)::json", "stack depth"},
	{"calls functions with settings of their own", "guest_writes", "SELECT guest.sets()", ""},
	{"tries to call the agent", "guest_writes", "SELECT aidb.execute_sql('SELECT 1')", "inside a tool call"},
	{"has no such agent", "nobody", "SELECT 1", "not found"},
}

// What the caller has going, statement by statement. In a block, and with a role of its own if it can have one.
var goingOn = []string{
	"SET app.marker = 'of the session'", "SET app.token = 'a secret of the session'", "SET work_mem = '5MB'",
	"SET search_path = store, public", "SET DateStyle = 'German'", "SET aidb.principal = 'ann'",
	"PREPARE mine (integer) AS SELECT $1 * 2", "PREPARE other AS SELECT title FROM goods WHERE id = 1", "LISTEN news",
	"CREATE TEMP TABLE basket AS SELECT g AS n FROM generate_series(1, 5) g", "CREATE TEMP SEQUENCE counter",
	"SELECT nextval('counter')", "SELECT pg_advisory_lock(11), pg_advisory_lock_shared(12, 13)",
	"BEGIN; DECLARE held CURSOR WITH HOLD FOR SELECT n FROM basket ORDER BY n; FETCH 2 FROM held; COMMIT",
	"BEGIN ISOLATION LEVEL REPEATABLE READ",
	"SET LOCAL timezone = 'Asia/Tokyo'", "SET LOCAL app.marker = 'of the transaction'", "SET LOCAL statement_timeout = '50s'",
	"SET LOCAL row_security = off", "SET LOCAL client_min_messages = warning",
	"DECLARE scrolls SCROLL CURSOR FOR SELECT n FROM basket ORDER BY n DESC", "FETCH 3 FROM scrolls",
	"DECLARE fresh CURSOR FOR SELECT id FROM store.goods ORDER BY id",
	"INSERT INTO basket VALUES (100)", "SAVEPOINT outer_one", "INSERT INTO basket VALUES (200)", "SAVEPOINT inner_one",
	"SELECT pg_advisory_xact_lock(14)", "SELECT lo_from_bytea(70009, 'large')", "SELECT lo_open(70009, 262144)",
}

// What it does with that afterwards, and what it must see.
var goesOn = [][2]string{
	{"EXECUTE mine(21)", "42"},
	{"EXECUTE other", "thing 1"},
	{"FETCH 1 FROM scrolls", "2"},
	{"FETCH RELATIVE -2 FROM scrolls", "4"},
	{"FETCH 1 FROM held", "3"},
	{"FETCH 2 FROM fresh", "1\n2"},
	{"SELECT currval('counter')", "1"},
	{"SELECT convert_from(loread(0, 10), 'UTF8')", "large"},
	{"SELECT count(*) FROM basket", "7"},
	{"ROLLBACK TO inner_one; SELECT count(*) FROM basket", "7"},
	{"ROLLBACK TO outer_one; SELECT count(*) FROM basket", "6"},
	{"SELECT current_setting('app.marker'), current_setting('app.token'), current_setting('timezone')", "of the transaction|a secret of the session|Asia/Tokyo"},
	{"FETCH 1 FROM fresh", "3"},
	{"COMMIT; SELECT count(*) FROM basket", "6"},
	{"SELECT current_setting('app.marker'), current_setting('work_mem'), current_setting('timezone') <> 'Asia/Tokyo'", "of the session|5MB|t"},
	{"FETCH 1 FROM held", "4"},
}

func TestSession_IsAsItWas(t *testing.T) {
	for _, who := range []struct{ name, login, role string }{
		{"superuser", "postgres", ""}, {"owner", "keeper", ""}, {"member", "clerk", ""},
		{"superuser who is the owner for now", "postgres", "keeper"}, {"superuser who is a member for now", "postgres", "clerk"},
	} {
		t.Run(who.name, func(t *testing.T) {
			db := database(t)
			require.NoError(t, script(t.Context(), db, `
				ALTER DATABASE `+db+` SET aidb.tool_timeout = '200ms';
				DO $$ BEGIN EXECUTE format('GRANT TEMP ON DATABASE %I TO PUBLIC', current_database()); END $$;
				CREATE FUNCTION guest.sets() RETURNS text LANGUAGE plpgsql SET work_mem = '9MB' SET search_path = guest AS 'BEGIN RETURN current_setting(''work_mem''); END';
				ALTER FUNCTION guest.sets() OWNER TO guest`))
			for _, kind := range callKinds {
				t.Run(kind.name, func(t *testing.T) {
					conn := connect(t, who.login, db)
					if who.role != "" {
						do(t, conn, "SET ROLE "+who.role)
					}
					kind.leavesAlone(t, conn)
				})
			}
		})
	}
}

func (k callKind) leavesAlone(t *testing.T, conn *pgx.Conn) {
	for _, sql := range goingOn {
		do(t, conn, sql)
	}
	before := takeFingerprint(t, conn)
	do(t, conn, "SAVEPOINT harness")
	s := tell(t.Context(), conn, k.agent, k.sql)
	if k.ends == "" {
		require.Empty(t, s.state, s.message)
	} else {
		require.Contains(t, s.message, k.ends)
		do(t, conn, "ROLLBACK TO harness")
	}
	do(t, conn, "RELEASE harness")
	after := takeFingerprint(t, conn)
	require.Empty(t, before.changes(after, strings.HasSuffix(k.agent, "_reads")))
	for _, step := range goesOn {
		require.Equal(t, step[1], value(t, conn, step[0]), "%s, after a call that %s", step[0], k.name)
	}
}

// The same within one statement: the calls are made by a query over many rows, by PL/pgSQL and by a procedure, and what
// was there before is there between them.
func TestSession_IsAsItWasBetweenCalls(t *testing.T) {
	db := database(t)
	conn := connect(t, "keeper", db)
	do(t, conn, "SET work_mem = '5MB'", "CREATE TEMP TABLE told (n integer, t text, w text, u text)")
	do(t, conn, `INSERT INTO told SELECT g, harness.ask(CASE g % 2 WHEN 0 THEN 'guest_reads' ELSE 'guest_writes' END,
			CASE g % 5 WHEN 0 THEN 'SELECT 1/0' WHEN 1 THEN 'UPDATE guest.pad SET note = note' WHEN 2 THEN 'SELECT 1 AS one' WHEN 3 THEN 'RESET ROLE' ELSE 'TABLE store.goods' END),
		current_setting('work_mem'), current_user FROM generate_series(1, 50) g`)
	require.Equal(t, "50|1|1", value(t, conn, "SELECT count(*), count(DISTINCT w), count(DISTINCT u) FROM told WHERE w = '5MB' AND u = 'keeper'"))
	require.Equal(t, "25", value(t, conn, "SELECT count(*) FROM told WHERE t NOT LIKE 'refused%'"), value(t, conn, "SELECT string_agg(DISTINCT t, E'\n') FROM told"))
	do(t, conn, `CREATE PROCEDURE store.calls() LANGUAGE plpgsql AS $p$
		DECLARE c CURSOR FOR SELECT id FROM store.goods ORDER BY id; n integer; told text;
		BEGIN
			OPEN c;
			FOR i IN 1..10 LOOP
				FETCH c INTO n;
				IF n <> i THEN RAISE EXCEPTION 'the cursor is at % instead of %', n, i; END IF;
				BEGIN
					told := harness.ask('guest_writes', 'UPDATE guest.pad SET note = ''x''');
					IF i % 3 = 0 THEN RAISE EXCEPTION 'undo'; END IF;
				EXCEPTION WHEN raise_exception THEN NULL;
				END;
			END LOOP;
			CLOSE c;
			COMMIT;
			told := harness.ask('guest_reads', 'SELECT 1 AS one');
		END $p$`)
	do(t, conn, "CALL store.calls()")
	require.Equal(t, "5MB", value(t, conn, "SHOW work_mem"))
}

// A purpose's role that could do more than any sandbox holds is not run as, however it came by that.
func TestRoles_WithRightsBeyondTheDatabaseAreRefused(t *testing.T) {
	db := database(t)
	conn := connect(t, "clerk", db)
	admin := connect(t, "postgres", db)
	do(t, admin, "CREATE ROLE middle", "CREATE ROLE boss SUPERUSER")
	defer func() {
		require.NoError(t, script(context.WithoutCancel(t.Context()), "postgres", "DROP ROLE middle; DROP ROLE boss"))
	}()
	for _, grant := range []struct{ give, take, why string }{
		{"ALTER ROLE guest SUPERUSER", "ALTER ROLE guest NOSUPERUSER", "is a superuser"},
		{"ALTER ROLE guest BYPASSRLS", "ALTER ROLE guest NOBYPASSRLS", "bypasses row-level security"},
		{"ALTER ROLE guest CREATEROLE", "ALTER ROLE guest NOCREATEROLE", "may create roles"},
		{"ALTER ROLE guest REPLICATION", "ALTER ROLE guest NOREPLICATION", "may replicate"},
		{"GRANT pg_read_server_files TO guest", "REVOKE pg_read_server_files FROM guest", "pg_read_server_files"},
		{"GRANT pg_write_server_files TO guest", "REVOKE pg_write_server_files FROM guest", "pg_write_server_files"},
		{"GRANT pg_execute_server_program TO guest", "REVOKE pg_execute_server_program FROM guest", "pg_execute_server_program"},
		{"GRANT pg_signal_backend TO guest", "REVOKE pg_signal_backend FROM guest", "pg_signal_backend"},
		{"GRANT pg_read_server_files TO middle; GRANT middle TO guest", "REVOKE middle FROM guest; REVOKE pg_read_server_files FROM middle", "pg_read_server_files"},
		{"GRANT boss TO guest", "REVOKE boss FROM guest", "is a member of a superuser"},
		{"GRANT boss TO middle; GRANT middle TO guest", "REVOKE middle FROM guest; REVOKE boss FROM middle", "is a member of a superuser"},
	} {
		do(t, admin, grant.give)
		for _, agent := range []string{"guest_reads", "guest_writes"} {
			s := tell(t.Context(), conn, agent, "SELECT 1 AS one")
			require.Contains(t, s.message, "refusing to run tools as it", "%s: %s", grant.give, s)
			require.Contains(t, s.message, grant.why)
		}
		do(t, admin, grant.take)
		s := tell(t.Context(), conn, "guest_reads", "SELECT 1 AS one")
		require.Empty(t, s.state, fmt.Sprint(grant.take, s))
	}
}
