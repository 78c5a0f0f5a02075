package retention

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/servertest"
)

func partitionsOf(t *testing.T, conn *pgx.Conn, sql string, args ...any) []string {
	t.Helper()
	var list []string
	for _, r := range servertest.Rows(t, conn, sql, args...) {
		list = append(list, r["p"].(string))
	}
	return list
}

const usedSQL = `SELECT DISTINCT tableoid::regclass::text AS p FROM aidb_internal.logged_steps
	UNION SELECT DISTINCT tableoid::regclass::text FROM aidb_internal.decision_log
	UNION SELECT DISTINCT tableoid::regclass::text FROM aidb_otel.traces ORDER BY 1`

// Without any partition rows have a place, and with them the right one, whoever writes: a call, a caller's transaction that
// began before, an import.
func TestRows_GoToTheirPartition(t *testing.T) {
	connect := database(t, "routed")
	admin, ann := connect("postgres"), connect("ann")
	scripted(t, ann, "routed")
	servertest.Exec(t, admin, "ALTER DATABASE routed SET aidb.otel_client = 'database'")
	ann = connect("ann")
	before := servertest.MustAsk(t, ann, "routed", "before")
	require.Equal(t, []string{"aidb_internal.decision_log_default", "aidb_internal.logged_steps_default", "aidb_otel.traces_default"}, partitionsOf(t, admin, usedSQL))

	// Today's rows are in the default partition, so the new one begins tomorrow.
	made := outcomes(t, admin)
	require.Len(t, made, 3)
	for _, line := range made {
		require.Contains(t, line, " created")
	}
	require.Empty(t, outcomes(t, admin), "there is nothing left to do")
	require.Equal(t, "3", servertest.Value(t, admin, "SELECT count(*) FROM aidb.log_partitions WHERE from_at = "+days("1")+" AND until_at > from_at AND status = 'attached'"))
	servertest.MustAsk(t, ann, "routed", "today", "conversation_id => '"+before.Conversation+"'")

	// Where the default is empty, it begins today.
	other := database(t, "routed_early")
	require.Len(t, outcomes(t, other("postgres")), 3)
	servertest.Exec(t, other("postgres"), "ALTER DATABASE routed_early SET aidb.otel_client = 'database'")
	ann = other("ann")
	scripted(t, ann, "routed_early")
	first := servertest.MustAsk(t, ann, "routed_early", "go")
	servertest.MustAsk(t, ann, "routed_early", "on", "conversation_id => '"+first.Conversation+"'")
	used := partitionsOf(t, other("postgres"), usedSQL)
	require.Len(t, used, 3)
	for _, p := range used {
		require.NotContains(t, p, "default")
	}
	require.Empty(t, problems(t, other("postgres")))

	// An import has the times that it says.
	document := servertest.Value(t, ann, "SELECT aidb.export_conversation($1)", first.Conversation)
	copied := servertest.Value(t, ann, "SELECT aidb.import_conversation($1::jsonb)", document)
	require.Equal(t, servertest.Value(t, ann, "SELECT count(*) FROM aidb.get_conversation($1)", first.Conversation),
		servertest.Value(t, ann, "SELECT count(*) FROM aidb.get_conversation($1)", copied))
	twice := servertest.Value(t, ann, `SELECT jsonb_set($1::jsonb, '{steps,1,id}', $1::jsonb #> '{steps,0,id}')`, document)
	_, err := ann.Exec(t.Context(), "SELECT aidb.import_conversation($1::jsonb)", twice)
	require.ErrorContains(t, err, "the exported conversation has the same id twice")
}

// A partition shows nobody more than the whole does: not by a grant, not by a default privilege, and not to those who need
// no grant to read.
func TestPartitions_AreNoWayAroundThePolicies(t *testing.T) {
	connect := database(t, "hidden")
	admin := connect("postgres")
	servertest.Exec(t, admin, `CREATE ROLE reader LOGIN IN ROLE aidb_users, pg_read_all_data; CREATE ROLE hidden_gov LOGIN IN ROLE aidb_governance;
		CREATE ROLE hidden_aud LOGIN IN ROLE aidb_auditor;
		ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO ann, PUBLIC;
		ALTER DEFAULT PRIVILEGES IN SCHEMA aidb_internal, aidb_otel GRANT ALL ON TABLES TO bob`)
	require.Len(t, outcomes(t, connect("hidden_gov")), 3)
	servertest.Exec(t, admin, "ALTER DATABASE hidden SET aidb.otel_client = 'database'")
	ann, bob := connect("ann"), connect("bob")
	scripted(t, ann, "hidden")
	scripted(t, bob, "hidden_bob")
	own := servertest.MustAsk(t, ann, "hidden", "go")
	servertest.MustAsk(t, bob, "hidden_bob", "go")

	for _, p := range partitionsOf(t, admin, `SELECT inhrelid::regclass::text AS p FROM pg_inherits
		WHERE inhparent IN ('aidb_internal.logged_steps'::regclass, 'aidb_internal.decision_log'::regclass, 'aidb_otel.traces'::regclass)`) {
		require.NotEqual(t, "0", servertest.Value(t, admin, "SELECT count(*) FROM pg_class WHERE oid = $1::regclass AND relrowsecurity", p), p)
		for _, role := range []string{"ann", "bob", "hidden_gov", "hidden_aud"} {
			for _, statement := range []string{"SELECT * FROM " + p, "INSERT INTO " + p + " SELECT * FROM " + p, "DELETE FROM " + p, "TRUNCATE " + p, "DROP TABLE " + p,
				"UPDATE " + p + " SET " + map[bool]string{true: "decision_status = NULL", false: "conversation_id = NULL"}[strings.Contains(p, "traces")]} {
				_, err := connect(role).Exec(t.Context(), statement)
				require.Equal(t, "42501", servertest.State(err), "%s: %s: %v", role, statement, err)
			}
		}
		require.Equal(t, "0", servertest.Value(t, connect("reader"), "SELECT count(*) FROM "+p), "who reads everything sees no row of %s", p)
	}
	seen := "SELECT count(DISTINCT conversation_id) FROM aidb_internal.action_log"
	require.Equal(t, "1", servertest.Value(t, ann, seen))
	require.Equal(t, own.Conversation, servertest.Value(t, ann, "SELECT DISTINCT conversation_id FROM aidb_internal.action_log"))
	require.Equal(t, "1", servertest.Value(t, bob, seen))
	require.Equal(t, "2", servertest.Value(t, connect("hidden_aud"), seen))
	require.Equal(t, "0", servertest.Value(t, connect("reader"), seen))

	for _, role := range []string{"ann", "hidden_aud"} {
		for _, call := range []string{"SELECT * FROM aidb.maintain_retention()", "SELECT aidb.run_otel_retention_cleanup()", "SELECT aidb_internal.maintain_log('otel')",
			"SELECT aidb_internal.drop_log_partition('otel', 'traces_default')", "SELECT aidb_internal.add_log_partition('otel', now(), 'infinity')"} {
			_, err := connect(role).Exec(t.Context(), call)
			require.Equal(t, "42501", servertest.State(err), "%s: %s: %v", role, call, err)
		}
	}
	_, err := ann.Exec(t.Context(), "SELECT * FROM aidb.log_partitions")
	require.Equal(t, "42501", servertest.State(err))
	require.Equal(t, "6", servertest.Value(t, connect("hidden_gov"), "SELECT count(*) FROM aidb.log_partitions"))
	servertest.Exec(t, connect("hidden_gov"), "SELECT aidb.run_otel_retention_cleanup()")
}

// How long is said with a unit, between a day and a century, by superusers, for a database too.
func TestRetention_HasLimits(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	servertest.Exec(t, admin, "LOAD 'aidb'")
	for _, kind := range []string{"action_log", "decision_log", "otel"} {
		name := "aidb.retention_" + kind
		require.Equal(t, "0", servertest.Value(t, admin, "SELECT current_setting($1)", name))
		for value, message := range map[string]string{"30": "a log cannot be kept for less than a day", "1439min": "a log cannot be kept for less than a day",
			"36501d": "is outside the valid range", "-1": "is outside the valid range", "soon": "invalid value for parameter", "1d 1h": "invalid value for parameter"} {
			_, err := admin.Exec(t.Context(), "SELECT set_config($1, $2, false)", name, value)
			require.ErrorContains(t, err, message, "%s = %s", name, value)
			require.Equal(t, "22023", servertest.State(err))
		}
		for _, value := range []string{"1d", "1440", "36h", "90d", "36500d", "0"} {
			servertest.Exec(t, admin, "SELECT set_config($1, $2, false)", name, value)
		}
		_, err := ann.Exec(t.Context(), "LOAD 'aidb'; SET "+name+" = '1d'")
		require.Error(t, err)
	}
	// The longer rows are kept, the longer a partition is.
	for keep, want := range map[string]string{"NULL": "quarter", "interval '36500 days'": "quarter", "interval '360 days'": "quarter", "interval '359 days'": "month",
		"interval '90 days'": "month", "interval '89 days'": "week", "interval '14 days'": "week", "interval '13 days'": "day", "interval '1 day'": "day"} {
		require.Equal(t, want, servertest.Value(t, admin, "SELECT unit FROM aidb_internal.log_partition_width("+keep+")"), keep)
	}
	for unit, want := range map[string]string{"day": "2028-03-01", "week": "2028-03-06", "month": "2028-03-01", "quarter": "2028-04-01"} {
		for _, zone := range []string{"UTC", "Pacific/Auckland", "America/Los_Angeles"} {
			servertest.Exec(t, admin, "SELECT set_config('TimeZone', $1, false)", zone)
			require.Equal(t, "true", servertest.Value(t, admin, "SELECT aidb_internal.border_after($1, '2028-02-29 23:59:59+00') = ($2 || ' 00:00:00+00')::timestamptz", unit, want), unit)
		}
	}
}
