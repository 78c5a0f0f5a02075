// Package retention proves what is promised of the partitions of the logs: that rows come into the right one, that what is
// too old goes with its partition, that decisions stay verifiable, and that nobody sees more than before.
package retention

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/cluster"
	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

const patience = 30 * time.Second

var server *servertest.Server

// Without the background worker: what is done by hand.
func TestMain(m *testing.M) { servertest.Main(m, cluster.Options{}, &server) }

// database makes one with the extension, and returns how to connect to it.
func database(t *testing.T, name string) func(role string) *pgx.Conn {
	t.Helper()
	servertest.Exec(t, server.Admin(t), "CREATE DATABASE "+name)
	connect := in(t, name)
	servertest.Exec(t, connect("postgres"), "CREATE EXTENSION aidb")
	return connect
}

func in(t *testing.T, name string) func(role string) *pgx.Conn {
	return func(role string) *pgx.Conn {
		t.Helper()
		conn, err := server.Connect(t.Context(), role, name)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		if role == "postgres" {
			servertest.Exec(t, conn, "LOAD 'aidb'") // for its settings
		}
		return conn
	}
}

// scripted makes an agent whose model asks for one query and then answers.
func scripted(t *testing.T, conn *pgx.Conn, name string) {
	t.Helper()
	server.Model.Answer(name, func(r fakemodel.Request) fakemodel.Reply {
		if len(r.Turn()) == 0 {
			return fakemodel.Query("SELECT 1 AS n")
		}
		return fakemodel.Say("done")
	})
	server.Agent(t, conn, name, []string{"run_sql_query"})
}

// days is a border of partitions: midnight UTC, so many days from today.
func days(n string) string {
	return "(date_trunc('day', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' + interval '" + n + " days')"
}

func partition(t *testing.T, admin *pgx.Conn, kind, from, until string) string {
	t.Helper()
	return servertest.Value(t, admin, "SELECT aidb_internal.add_log_partition($1, "+from+", "+until+")", kind)
}

// outcomes is what aidb.maintain_retention says, one text for each row.
func outcomes(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	var list []string
	for _, r := range servertest.Rows(t, conn, `SELECT concat_ws(' ', kind, partition, outcome, rows, detail) AS line FROM aidb.maintain_retention()`) {
		list = append(list, r["line"].(string))
	}
	return list
}

func problems(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	var list []string
	for _, r := range servertest.Rows(t, conn, "SELECT concat_ws(' ', decision_id, problem) AS line FROM aidb.verify_decisions()") {
		list = append(list, r["line"].(string))
	}
	return list
}

// fill makes n decisions like those of runs of four, evenly over a time, with hashes that fit; each run follows the last.
func fill(t *testing.T, admin *pgx.Conn, n int, from, step string) {
	t.Helper()
	_, err := admin.Exec(t.Context(), `CREATE OR REPLACE FUNCTION pg_temp.fill(n integer, from_at timestamptz, step interval) RETURNS void LANGUAGE plpgsql AS $$
		DECLARE
			r aidb_internal.decision_log;
			last bytea := coalesce((SELECT d.hash FROM aidb_internal.decision_log d ORDER BY d.at DESC LIMIT 1), '');
		BEGIN
			FOR i IN 0 .. n - 1 LOOP
				IF i % 4 = 0 THEN
					r.chain_id := gen_random_uuid();
				END IF;
				r.decision_id := gen_random_uuid(); r.chain_n := i % 4 + 1; r.at := from_at + i * step;
				r.interaction_point := 'sql_exec'; r.status := 'allowed'; r.attempted_escalation := false; r.duration_us := 1;
				r.principal := 'ann'; r.caller := 'ann'; r.session_user_name := 'ann'; r.prev_hash := last;
				r.hash := aidb_internal.decision_digest(r);
				INSERT INTO aidb_internal.decision_log SELECT r.*;
				last := r.hash;
			END LOOP;
		END $$`)
	require.NoError(t, err)
	servertest.Exec(t, admin, "SELECT pg_temp.fill($1, "+from+", $2::interval)", n, step)
}
