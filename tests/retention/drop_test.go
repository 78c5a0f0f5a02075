package retention

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/cluster"
	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// What is older than its log is kept goes with its partition, and tasks with their steps; what is not stays.
func TestRetention_DropsWhatIsTooOld(t *testing.T) {
	connect := database(t, "aged")
	admin, ann := connect("postgres"), connect("ann")
	scripted(t, ann, "aged")
	partition(t, admin, "action_log", days("-40"), days("-30"))
	partition(t, admin, "action_log", days("-30"), days("-20"))
	partition(t, admin, "action_log", days("-20"), days("1"))
	conversations := map[string]servertest.Outcome{}
	var fork string
	for _, age := range []string{"50", "35", "25", "0"} {
		conversations[age] = servertest.MustAsk(t, ann, "aged", age)
		if age == "35" {
			fork = servertest.Value(t, ann, `SELECT aidb.fork_conversation((SELECT message_id FROM aidb.get_conversation($1) LIMIT 1))`, conversations[age].Conversation)
		}
		makeOlder(t, admin, conversations[age].Conversation, age+" days")
	}
	servertest.Exec(t, admin, "UPDATE aidb_internal.conversation_origins SET created_at = created_at - interval '34 days'")
	there := func(age string) string {
		return servertest.Value(t, admin, `SELECT (SELECT count(*) FROM aidb_internal.action_log WHERE conversation_id = $1::uuid) || ' ' ||
			(SELECT count(*) FROM aidb_internal.agent_task_queue WHERE conversation_id = $1::uuid)`, conversations[age].Conversation)
	}
	whole := there("0")

	require.NotContains(t, outcomes(t, admin), "action_log logged_steps_default deleted")
	require.Equal(t, whole, there("50"), "for ever means for ever")
	servertest.Exec(t, admin, "SET aidb.retention_action_log = '28d'")
	name := func(n string) string {
		return servertest.Value(t, admin, "SELECT 'logged_steps_' || to_char("+days(n)+" AT TIME ZONE 'UTC', 'YYYYMMDD')")
	}
	lines := outcomes(t, admin)
	require.Contains(t, lines, "action_log logged_steps_default deleted 1")
	require.Contains(t, lines, "action_log "+name("-40")+" dropped")
	require.Contains(t, lines, "action_log deleted 2 tasks")
	require.Equal(t, "0 0", there("50"))
	require.Equal(t, "0 0", there("35"))
	require.Equal(t, whole, there("25"), "its partition has rows that are not old enough")
	require.Equal(t, whole, there("0"))
	require.Equal(t, "0", servertest.Value(t, admin, "SELECT count(*) FROM aidb_internal.conversation_origins WHERE conversation_id = $1::uuid", fork), "nothing is left of the fork")
	require.Equal(t, "dropped postgres", servertest.Value(t, admin, "SELECT status || ' ' || dropped_by FROM aidb.log_partitions WHERE name = $1", name("-40")))
	require.Empty(t, problems(t, admin), "decisions are another log")
	require.NotEqual(t, "0", servertest.Value(t, admin, "SELECT count(*) FROM aidb.decisions WHERE conversation_id = $1::uuid", conversations["50"].Conversation))

	// While a task is not over, nothing goes that it may need.
	servertest.Exec(t, admin, "SET aidb.retention_action_log = '14d'; UPDATE aidb_internal.agent_task_queue SET status = 'PENDING', completed_at = NULL WHERE created_at < "+days("-20"))
	lines = outcomes(t, admin)
	require.Len(t, lines, 1, "%v", lines)
	require.Regexp(t, "action_log "+name("-30")+" kept task .* is not over", lines[0])
	servertest.Exec(t, admin, "UPDATE aidb_internal.agent_task_queue SET status = 'ERROR', completed_at = created_at WHERE status = 'PENDING'")
	require.Contains(t, outcomes(t, admin), "action_log "+name("-30")+" dropped")
	require.Equal(t, "0 0", there("25"))
	servertest.MustAsk(t, ann, "aged", "go on", "conversation_id => '"+conversations["0"].Conversation+"'")

	servertest.Exec(t, admin, "DROP EXTENSION aidb")
	require.Equal(t, "0", servertest.Value(t, admin, "SELECT count(*) FROM pg_class WHERE relname ~ '^(logged_steps|decision_log|traces)_'"))
}

// Decisions that were dropped are not missed, and what is left is as tamper-evident as before.
func TestVerifyDecisions_GoesOnFromWhatWasDropped(t *testing.T) {
	connect := database(t, "chained")
	admin, ann := connect("postgres"), connect("ann")
	scripted(t, ann, "chained")
	const kind = "decision_log"
	first := partition(t, admin, kind, days("-40"), days("-30"))
	second := partition(t, admin, kind, days("-30"), days("-20"))
	third := partition(t, admin, kind, days("-20"), days("1"))
	fill(t, admin, 30, days("-50"), "7 hours")                             // in the default partition
	fill(t, admin, 1000, days("-40")+" + interval '1 hour'", "41 minutes") // over all borders
	servertest.MustAsk(t, ann, "chained", "today")
	require.Empty(t, problems(t, admin))
	require.NotEqual(t, "0", servertest.Value(t, admin, "SELECT count(*) FROM aidb_internal."+second))
	straddling := servertest.Value(t, admin, `SELECT count(*) FROM aidb_internal.decision_log d WHERE d.at >= $1::timestamptz AND chain_n > 1 AND NOT EXISTS (
		SELECT FROM aidb_internal.decision_log e WHERE e.chain_id = d.chain_id AND e.chain_n = d.chain_n - 1 AND e.at >= $1::timestamptz)`, servertest.Value(t, admin, "SELECT "+days("-30")))
	require.Equal(t, "1", straddling, "a run goes over the border")

	servertest.Exec(t, admin, "SET aidb.retention_decision_log = '29d'")
	lines := outcomes(t, admin)
	require.Contains(t, lines, kind+" decision_log_default deleted 30")
	require.Contains(t, lines, kind+" "+first+" dropped")
	require.Empty(t, problems(t, admin), "nothing is missed of what was dropped")
	require.Equal(t, servertest.Value(t, admin, "SELECT count(*) FROM aidb_internal.decision_log"), servertest.Value(t, admin, "SELECT count(*) FROM aidb.decisions"))
	require.Equal(t, "1", servertest.Value(t, admin, "SELECT count(*) FROM aidb.log_partitions WHERE name = $1 AND last_id IS NOT NULL", first))

	oldest := "(SELECT decision_id FROM aidb_internal.decision_log ORDER BY at LIMIT 1)"
	newest := "(SELECT decision_id FROM aidb_internal.decision_log ORDER BY at DESC LIMIT 1)"
	for name, change := range map[string]string{
		"the first that is left deleted": "DELETE FROM aidb_internal.decision_log WHERE decision_id = " + oldest,
		"the first that is left edited":  "UPDATE aidb_internal.decision_log SET object = 'x' WHERE decision_id = " + oldest,
		"the link to what is gone cut":   "UPDATE aidb_internal.decision_log SET prev_hash = '\\x' WHERE decision_id = " + oldest,
		"the newest deleted":             "DELETE FROM aidb_internal.decision_log WHERE decision_id = " + newest,
		"a run deleted": "DELETE FROM aidb_internal.decision_log WHERE chain_id = (SELECT chain_id FROM aidb_internal.decision_log WHERE at > " + days("-25") +
			" GROUP BY 1 HAVING count(*) = 4 ORDER BY min(at) LIMIT 1)",
		"two reordered":                     "UPDATE aidb_internal.decision_log SET at = at - interval '1 hour' WHERE chain_n = 3",
		"a partition dropped by hand":       "DROP TABLE aidb_internal." + second,
		"the newest partition dropped":      "DROP TABLE aidb_internal." + third,
		"a partition detached":              "ALTER TABLE aidb_internal.decision_log DETACH PARTITION aidb_internal." + second,
		"a partition emptied":               "TRUNCATE aidb_internal." + second,
		"a partition detached and replaced": "ALTER TABLE aidb_internal.decision_log DETACH PARTITION aidb_internal." + second + "; ALTER TABLE aidb_internal." + second + " RENAME TO away; CREATE TABLE aidb_internal." + second + " (LIKE aidb_internal.away)",
		"everything deleted":                "DELETE FROM aidb_internal.decision_log",
	} {
		t.Run(name, func(t *testing.T) {
			servertest.Exec(t, admin, "BEGIN")
			defer servertest.Exec(t, admin, "ROLLBACK")
			servertest.Exec(t, admin, change)
			require.NotEmpty(t, problems(t, admin))
		})
	}
	// What somebody took away is told, and stays told.
	servertest.Exec(t, admin, "BEGIN; DROP TABLE aidb_internal."+second+"; SET LOCAL aidb.retention_decision_log = '15d'")
	require.Contains(t, outcomes(t, admin), kind+" "+second+" missing somebody else took it away")
	require.Contains(t, problems(t, admin), "partition "+second+" is missing: it was not dropped by aidb.maintain_retention")
	servertest.Exec(t, admin, "ROLLBACK")

	servertest.MustAsk(t, ann, "chained", "after it")
	servertest.Exec(t, admin, "SET aidb.retention_decision_log = '15d'")
	require.Contains(t, outcomes(t, admin), kind+" "+second+" dropped")
	require.Empty(t, problems(t, admin))

	// All that there was is gone: the next run follows its last.
	servertest.Exec(t, admin, "SELECT aidb_internal.drop_log_partition('decision_log', $1)", third)
	require.Equal(t, "0", servertest.Value(t, admin, "SELECT count(*) FROM aidb.decisions"))
	servertest.MustAsk(t, ann, "chained", "all anew")
	require.Empty(t, problems(t, admin))
}

// A call that is under way while the partition is dropped that its first records are in goes on, and so does its chain.
func TestDrop_OfWhatARunningCallHasWritten(t *testing.T) {
	connect := database(t, "running")
	admin, ann := connect("postgres"), connect("ann")
	border := servertest.Value(t, admin, "SELECT clock_timestamp() + interval '3 seconds'")
	old := partition(t, admin, "decision_log", days("-1"), "'"+border+"'::timestamptz")
	partition(t, admin, "decision_log", "'"+border+"'::timestamptz", days("2"))
	gate := make(chan struct{})
	server.Model.Answer("running", func(r fakemodel.Request) fakemodel.Reply {
		switch len(r.Turn()) {
		case 0:
			return fakemodel.Query("SELECT 1 AS n")
		case 1:
			return fakemodel.Reply{ToolCalls: []fakemodel.ToolCall{{Name: "run_sql_query", Arguments: map[string]any{"query": "SELECT 2 AS n"}}}, Gate: gate}
		}
		return fakemodel.Say("done")
	})
	server.Agent(t, ann, "running", []string{"run_sql_query"})
	scripted(t, ann, "running_before")
	servertest.MustAsk(t, ann, "running_before", "go")
	done := make(chan error, 1)
	other := connect("ann")
	go func() {
		o, err := servertest.Ask(t.Context(), other, "running", "go")
		if err == nil && o.Error != "" {
			err = fmt.Errorf("%s", o.Error)
		}
		done <- err
	}()
	require.True(t, cluster.Wait(patience, func() bool {
		return servertest.Value(t, admin, "SELECT clock_timestamp() > $1::timestamptz", border) == "true"
	}))
	close(gate)
	require.NoError(t, <-done)
	require.Equal(t, "2", servertest.Value(t, admin, "SELECT count(DISTINCT tableoid) FROM aidb_internal.decision_log WHERE agent = 'running'"), "it has records on both sides")
	require.Empty(t, problems(t, admin))
	servertest.Exec(t, admin, "SELECT aidb_internal.drop_log_partition('decision_log', $1)", old)
	require.Empty(t, problems(t, admin))
	for _, change := range []string{"DELETE FROM aidb_internal.decision_log WHERE agent = 'running'",
		"DELETE FROM aidb_internal.decision_log WHERE decision_id = (SELECT decision_id FROM aidb_internal.decision_log WHERE agent = 'running' ORDER BY at DESC LIMIT 1)"} {
		servertest.Exec(t, admin, "BEGIN; "+change)
		require.NotEmpty(t, problems(t, admin), change)
		servertest.Exec(t, admin, "ROLLBACK")
	}
}

// makeOlder moves a conversation into the past.
func makeOlder(t *testing.T, admin *pgx.Conn, conversation, by string) {
	t.Helper()
	servertest.Exec(t, admin, "UPDATE aidb_internal.logged_steps SET created_at = created_at - $2::interval WHERE conversation_id = $1::uuid", conversation, by)
	servertest.Exec(t, admin, "UPDATE aidb_internal.agent_task_queue SET created_at = created_at - $2::interval, completed_at = completed_at - $2::interval WHERE conversation_id = $1::uuid", conversation, by)
}

// A drop neither breaks calls nor waits for long for them: what is in use goes the next time.
func TestDrop_DoesNotGetInTheWay(t *testing.T) {
	connect := database(t, "busy")
	admin, ann := connect("postgres"), connect("ann")
	scripted(t, ann, "busy")
	partition(t, admin, "action_log", days("-40"), days("-30"))
	outcomes(t, admin)
	servertest.Exec(t, admin, "SET aidb.retention_action_log = '20d'")
	first := servertest.MustAsk(t, ann, "busy", "go")
	servertest.Exec(t, ann, "BEGIN")
	servertest.MustAsk(t, ann, "busy", "on", "conversation_id => '"+first.Conversation+"'") // it has read the log
	name := servertest.Value(t, admin, "SELECT name FROM aidb.log_partitions WHERE from_at = "+days("-40"))
	require.Contains(t, outcomes(t, admin), "action_log "+name+" kept it is in use; it is tried again the next time")
	servertest.MustAsk(t, connect("ann"), "busy", "others go on")
	servertest.MustAsk(t, ann, "busy", "and on", "conversation_id => '"+first.Conversation+"'")
	servertest.Exec(t, ann, "COMMIT")
	require.Contains(t, outcomes(t, admin), "action_log "+name+" dropped")

	// Calls of several sessions while partitions come and go.
	const sessions, calls = 4, 8
	failed := make(chan error, sessions)
	for range sessions {
		conn := connect("ann")
		go func() {
			var id string
			for range calls {
				args := []string{}
				if id != "" {
					args = append(args, "conversation_id => '"+id+"'")
				}
				o, err := servertest.Ask(t.Context(), conn, "busy", "go", args...)
				if err == nil && o.Error != "" {
					err = fmt.Errorf("%s", o.Error)
				}
				if err != nil {
					failed <- err
					return
				}
				id = o.Conversation
			}
			failed <- nil
		}()
	}
	running, changed := sessions, 0
	for n := 0; running > 0; n++ {
		select {
		case err := <-failed:
			require.NoError(t, err)
			running--
		default:
			for _, kind := range []string{"action_log", "decision_log"} {
				changed += comeAndGo(t, admin, kind, n)
			}
		}
	}
	require.NotZero(t, changed)
	require.Empty(t, problems(t, admin))
	require.Equal(t, fmt.Sprint(sessions*calls), servertest.Value(t, admin, "SELECT count(*) FROM aidb_internal.agent_task_queue WHERE completed_at IS NOT NULL AND created_at > now() - interval '1 hour' AND status = 'SUCCESS' AND "+
		"conversation_id IN (SELECT conversation_id FROM aidb_internal.agent_task_queue GROUP BY 1 HAVING count(*) = "+fmt.Sprint(calls)+")"))
}

// comeAndGo makes an old partition and drops it, if it can be had.
func comeAndGo(t *testing.T, admin *pgx.Conn, kind string, n int) int {
	t.Helper()
	from := fmt.Sprintf("timestamptz '2001-01-01 00:00+00' + %d * interval '2 days'", n)
	_, err := admin.Exec(t.Context(), fmt.Sprintf("SELECT aidb_internal.drop_log_partition('%s', aidb_internal.add_log_partition('%s', %s, %s + interval '1 day'))", kind, kind, from, from))
	if err != nil {
		require.Equal(t, "55P03", servertest.State(err), "%v", err)
		return 0
	}
	return 1
}

// The background worker does it by itself, in every database that has the extension.
func TestKeeper_LooksAfterTheLogs(t *testing.T) {
	s := servertest.Start(t, cluster.Options{Preload: true, Conf: []string{"aidb.maintenance_naptime = 1", "max_worker_processes = 32"}})
	admin := s.Admin(t)
	servertest.Exec(t, admin, "CREATE DATABASE another")
	second, err := s.Connect(t.Context(), "postgres", "another")
	require.NoError(t, err)
	servertest.Exec(t, second, "CREATE EXTENSION aidb")
	for _, conn := range []*pgx.Conn{admin, second} {
		require.True(t, cluster.Wait(patience, func() bool {
			return servertest.Value(t, conn, "SELECT count(*) FROM aidb.log_partitions WHERE from_at IS NOT NULL") == "3"
		}), "no partitions are made")
	}
	_ = second.Close(t.Context())
	s.Agent(t, admin, "kept", nil, fakemodel.Say("hi"))
	old := servertest.MustAsk(t, admin, "kept", "long ago")
	fresh := servertest.MustAsk(t, admin, "kept", "just now")
	servertest.Exec(t, admin, "LOAD 'aidb'")
	partition(t, admin, "action_log", days("-40"), days("-30"))
	makeOlder(t, admin, old.Conversation, "35 days")
	servertest.Exec(t, admin, "ALTER SYSTEM SET aidb.retention_action_log = '20d'")
	servertest.Exec(t, admin, "SELECT pg_reload_conf()")
	require.True(t, cluster.Wait(patience, func() bool {
		return servertest.Value(t, admin, "SELECT count(*) FROM aidb_internal.agent_task_queue WHERE conversation_id = $1::uuid", old.Conversation) == "0"
	}), "the old conversation is still there")
	require.Equal(t, "0", servertest.Value(t, admin, "SELECT count(*) FROM aidb_internal.action_log WHERE conversation_id = $1::uuid", old.Conversation))
	require.Equal(t, "1", servertest.Value(t, admin, "SELECT count(*) FROM aidb_internal.agent_task_queue WHERE conversation_id = $1::uuid", fresh.Conversation))
	require.NotEqual(t, "0", servertest.Value(t, admin, "SELECT count(*) FROM aidb.decisions WHERE conversation_id = $1::uuid", old.Conversation))
	require.Equal(t, "dropped", servertest.Value(t, admin, "SELECT status FROM aidb.log_partitions WHERE from_at = "+days("-40")))

	// A session in the way only puts it off.
	partition(t, admin, "action_log", days("-60"), days("-50"))
	held := s.Conn(t, "postgres")
	servertest.Exec(t, held, "BEGIN; SELECT count(*) FROM aidb_internal.action_log")
	begun := time.Now()
	servertest.MustAsk(t, admin, "kept", "in between")
	require.Less(t, time.Since(begun), patience)
	servertest.Exec(t, held, "COMMIT")
	require.True(t, cluster.Wait(patience, func() bool {
		return servertest.Value(t, admin, "SELECT status FROM aidb.log_partitions WHERE from_at = "+days("-60")) == "dropped"
	}))
	require.NoError(t, s.Stop(t.Context(), "fast"))
	require.NoError(t, s.WaitGone(patience)) // pg_ctl waits for the pid file, which goes before the process does
	require.Empty(t, s.Crashes())
}
