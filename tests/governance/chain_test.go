package governance

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

func problems(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	var list []string
	for _, r := range servertest.Rows(t, conn, "SELECT decision_id::text AS id, problem FROM aidb.verify_decisions()") {
		list = append(list, text(r["id"])+" "+text(r["problem"]))
	}
	return list
}

// fillLog makes records of several sessions at the same time, of runs that keep a log, runs that do not, and single tools.
func fillLog(t *testing.T, name string) {
	t.Helper()
	const sessions, rounds = 4, 5
	ann := server.Conn(t, "ann")
	agent(t, ann, name, "", query)
	server.Model.Answer(name, func(r fakemodel.Request) fakemodel.Reply {
		if n := len(r.Turn()); n < 3 {
			return fakemodel.Query(fmt.Sprintf("SELECT %d AS n", n))
		}
		return fakemodel.Say("done")
	})
	var group sync.WaitGroup
	failed := make(chan error, sessions*rounds*3)
	for range sessions {
		conn := server.Conn(t, "ann")
		group.Go(func() {
			for range rounds {
				_, err := servertest.Ask(context.Background(), conn, name, "go")
				failed <- err
				_, err = servertest.Ask(context.Background(), conn, name, "go", "read_only => true")
				failed <- err
				_, err = conn.Exec(context.Background(), `SELECT aidb.run_tool('run_sql_query', '{"query": "SELECT 5"}')`)
				failed <- err
			}
		})
	}
	group.Wait()
	close(failed)
	for err := range failed {
		require.NoError(t, err)
	}
}

// A log that several sessions wrote into at once, some of it rolled back, is intact; and every tampering is found.
func TestVerifyDecisions_FindsEveryTampering(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	fillLog(t, "chain")
	purposeRole(t, "chain_r")
	agent(t, ann, "chain_bound", "chain_r", query)
	_, _ = results(t, ann, "chain_bound", whoami, fakemodel.Query("SELECT * FROM aidb_internal.agents"))
	servertest.Exec(t, ann, "BEGIN")
	servertest.MustAsk(t, ann, "chain", "rolled back")
	servertest.Exec(t, ann, "ROLLBACK")
	servertest.MustAsk(t, ann, "chain", "after it")
	require.Empty(t, problems(t, admin))

	// The run in the middle of whose records things are done: of a log that has gone on since.
	run := servertest.Rows(t, admin, "SELECT chain_id::text AS chain, task_id::text AS task FROM aidb_internal.decision_log WHERE agent = 'chain' AND task_id IS NOT NULL GROUP BY 1, 2 HAVING count(*) = 4 ORDER BY min(at) LIMIT 1")[0]
	one := func(n int) string {
		return fmt.Sprintf("chain_id = '%s' AND chain_n = %d", run["chain"], n)
	}
	cases := map[string]string{
		"a record in the middle deleted":    "DELETE FROM aidb_internal.decision_log WHERE " + one(2),
		"the first of a run deleted":        "DELETE FROM aidb_internal.decision_log WHERE " + one(1),
		"the last of a run deleted":         "DELETE FROM aidb_internal.decision_log WHERE " + one(4),
		"the end of a run deleted":          "DELETE FROM aidb_internal.decision_log WHERE chain_n > 1 AND chain_id = '" + run["chain"].(string) + "'",
		"a whole run deleted":               "DELETE FROM aidb_internal.decision_log WHERE chain_id = '" + run["chain"].(string) + "'",
		"everything deleted":                "DELETE FROM aidb_internal.decision_log",
		"two records in each other's place": "UPDATE aidb_internal.decision_log SET chain_n = CASE chain_n WHEN 2 THEN 3 ELSE 2 END WHERE chain_n IN (2, 3) AND chain_id = '" + run["chain"].(string) + "'",
		"the times of two records swapped":  "UPDATE aidb_internal.decision_log d SET at = o.at FROM aidb_internal.decision_log o WHERE d.chain_id = o.chain_id AND d.chain_id = '" + run["chain"].(string) + "' AND d.chain_n + o.chain_n = 5 AND d.chain_n IN (2, 3)",
		"a record copied": `INSERT INTO aidb_internal.decision_log SELECT (jsonb_populate_record(d, '{"decision_id": "00000000-0000-0000-0000-000000000001"}')).*
			FROM aidb_internal.decision_log d WHERE ` + one(2),
		"a forged record at the end of a run": `INSERT INTO aidb_internal.decision_log SELECT (jsonb_populate_record(d, '{"decision_id": "00000000-0000-0000-0000-000000000002", "chain_n": 5}')).*
			FROM aidb_internal.decision_log d WHERE ` + one(4),
		"a forged run": `INSERT INTO aidb_internal.decision_log SELECT (jsonb_populate_record(d,
			'{"decision_id": "00000000-0000-0000-0000-000000000003", "chain_id": "00000000-0000-0000-0000-000000000004", "task_id": null}')).* FROM aidb_internal.decision_log d WHERE ` + one(1),
		"a record moved to another run": "UPDATE aidb_internal.decision_log SET chain_id = gen_random_uuid(), chain_n = 1 WHERE " + one(4),
		"a denial made an allowance": `UPDATE aidb_internal.decision_log SET status = 'allowed', denial_reason = NULL
			WHERE decision_id = (SELECT decision_id FROM aidb_internal.decision_log WHERE status = 'denied' LIMIT 1)`,
		"a record moved to before Christ": "UPDATE aidb_internal.decision_log SET at = (to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') || ' UTC BC')::timestamptz WHERE " + one(1),
		"a run without a log deleted": "DELETE FROM aidb_internal.decision_log WHERE chain_id = (SELECT chain_id FROM aidb_internal.decision_log p " +
			"WHERE task_id IS NULL AND EXISTS (SELECT FROM aidb_internal.decision_log n WHERE n.prev_hash = p.hash AND n.chain_id <> p.chain_id) LIMIT 1)",
	}
	for _, column := range servertest.Rows(t, admin, `SELECT attname AS name, format_type(atttypid, NULL) AS type, attnotnull AS required FROM pg_attribute
		WHERE attrelid = 'aidb_internal.decision_log'::regclass AND attnum > 0 AND NOT attisdropped`) {
		name := column["name"].(string)
		for what, value := range edits(name, column["type"].(string)) {
			if what == "NULL" && column["required"] == true {
				continue
			}
			cases["column "+name+" made "+what] = fmt.Sprintf("UPDATE aidb_internal.decision_log SET %s = %s WHERE decision_id = "+
				"(SELECT decision_id FROM aidb_internal.decision_log WHERE (%s) IS DISTINCT FROM %s ORDER BY at LIMIT 1)", name, value, value, name)
		}
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			servertest.Exec(t, admin, "BEGIN")
			defer servertest.Exec(t, admin, "ROLLBACK")
			servertest.Exec(t, admin, "ALTER TABLE aidb_internal.decision_log DROP CONSTRAINT IF EXISTS decision_log_status_check, DROP CONSTRAINT IF EXISTS decision_log_reason_check, "+
				"DROP CONSTRAINT IF EXISTS decision_log_interaction_point_check")
			tag, err := admin.Exec(t.Context(), change)
			require.NoError(t, err, change)
			require.NotZero(t, tag.RowsAffected(), change)
			require.NotEmpty(t, problems(t, admin))
		})
	}
	require.Empty(t, problems(t, admin))
}

// edits are ways to change a value of a type, as SQL.
func edits(column, kind string) map[string]string {
	switch kind {
	case "uuid":
		return map[string]string{"another": "'00000000-0000-0000-0000-00000000000f'::uuid", "NULL": "NULL"}
	case "text":
		return map[string]string{"longer": "coalesce(" + column + ", '') || '!'", "empty": "''", "NULL": "NULL"}
	case "boolean":
		return map[string]string{"its opposite": "NOT " + column}
	case "bytea":
		return map[string]string{"longer": column + " || '\\x00'::bytea", "empty": "'\\x'::bytea"}
	case "timestamp with time zone":
		return map[string]string{"later": column + " + interval '1 microsecond'", "earlier": column + " - interval '1 day'", "endless": "'infinity'::timestamptz"}
	default: // numbers
		return map[string]string{"more": "coalesce(" + column + ", 0) + 1", "NULL": "NULL"}
	}
}

// What is asked for a span of time concerns the runs of that time.
func TestVerifyDecisions_OfASpanOfTime(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	agent(t, ann, "span", "", query)
	_, first := results(t, ann, "span", whoami)
	servertest.Exec(t, admin, "BEGIN")
	defer servertest.Exec(t, admin, "ROLLBACK")
	between := servertest.Value(t, admin, "SELECT clock_timestamp()")
	_, _ = results(t, ann, "span", whoami)
	servertest.Exec(t, admin, "UPDATE aidb_internal.decision_log SET rows = 99 WHERE conversation_id = $1::uuid AND interaction_point = 'sql_exec'", first.Conversation)
	require.Equal(t, "1", servertest.Value(t, admin, "SELECT count(*) FROM aidb.verify_decisions()"))
	require.Equal(t, "1", servertest.Value(t, admin, "SELECT count(*) FROM aidb.verify_decisions(until => $1::timestamptz)", between))
	require.Equal(t, "0", servertest.Value(t, admin, "SELECT count(*) FROM aidb.verify_decisions(since => $1::timestamptz)", between))
}

// Nobody writes the records: not who is recorded, not who governs, not who audits, and not an agent. Auditors see all of
// them, the others their own.
func TestDecisions_AreAppendOnly(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	servertest.Exec(t, admin, "CREATE ROLE gov_append LOGIN IN ROLE aidb_governance; CREATE ROLE aud_append LOGIN IN ROLE aidb_auditor")
	agent(t, ann, "append", "", query)
	_, o := results(t, ann, "append", whoami)
	for _, role := range []string{"ann", "bob", "gov_append", "aud_append"} {
		conn := server.Conn(t, role)
		for _, write := range []string{
			"INSERT INTO %s SELECT * FROM %s", "INSERT INTO %s DEFAULT VALUES", "UPDATE %s SET status = 'allowed'", "DELETE FROM %s", "TRUNCATE %s",
			"CREATE TRIGGER t BEFORE INSERT ON %s FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()", "DROP TABLE %s", "ALTER TABLE %s DISABLE TRIGGER ALL",
		} {
			for _, relation := range []string{"aidb_internal.decision_log", "aidb.decisions"} {
				statement := strings.ReplaceAll(write, "%s", relation)
				_, err := conn.Exec(t.Context(), statement)
				require.Error(t, err, "%s: %s", role, statement)
				require.Contains(t, []string{"42501", "42809", "55000", "0A000"}, servertest.State(err), "%s: %s: %v", role, statement, err)
			}
		}
		requireError(t, conn, "42501", "permission denied for table decision_log", "SELECT * FROM aidb_internal.decision_log")
		// All but those that stand in a view's select list and say nothing that the view does not.
		for _, f := range servertest.Rows(t, admin, `SELECT p.oid::regprocedure::text AS f FROM pg_proc p WHERE p.pronamespace = 'aidb_internal'::regnamespace
			AND p.proname NOT IN ('spelled', 'worker_pid', 'shared_limits') AND has_function_privilege($1, p.oid, 'EXECUTE')`, role) {
			t.Errorf("%s may call %s", role, f["f"])
		}
	}
	own := "SELECT count(*) FROM aidb.decisions WHERE conversation_id = $1::uuid"
	require.Equal(t, "2", servertest.Value(t, ann, own, o.Conversation))
	require.Equal(t, "0", servertest.Value(t, server.Conn(t, "bob"), own, o.Conversation))
	require.Equal(t, "0", servertest.Value(t, server.Conn(t, "ann", "aidb.principal=somebody"), own, o.Conversation))
	aud := server.Conn(t, "aud_append")
	require.Equal(t, "2", servertest.Value(t, aud, own, o.Conversation))
	require.Empty(t, problems(t, aud))
	require.Empty(t, problems(t, server.Conn(t, "gov_append")))
	requireError(t, ann, "42501", "permission denied for function verify_decisions", "SELECT * FROM aidb.verify_decisions()")
	requireError(t, server.Conn(t, "gov_append"), "42501", "permission denied for view decisions", "SELECT * FROM aidb.decisions")
}
