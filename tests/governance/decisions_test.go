package governance

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/require"

	"aidb/tests/cluster"
	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// One record for each tool call and one for the model, with who asked, as whom it ran and what came of it.
func TestDecisions_SayWhoWhatAndHowItEnded(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann", "aidb.principal=customer:7")
	purposeRole(t, "rec")
	servertest.Exec(t, admin, "CREATE TABLE public.recs AS SELECT g AS n FROM generate_series(1, 5) g; GRANT SELECT, UPDATE ON public.recs TO rec")
	agent(t, ann, "rec", "rec", both)
	statements := []string{"SELECT n FROM public.recs WHERE n > 2", "UPDATE public.recs SET n = n + 10 WHERE n < 3", "SELECT 1 / 0", "DELETE FROM public.recs", "SELECT pg_sleep(0.05)"}
	var calls []fakemodel.Reply
	for _, s := range statements {
		calls = append(calls, execute(s))
	}
	// Refused arguments and the sleep tool cross no boundary.
	calls = append(calls, fakemodel.Call("execute_sql", map[string]any{"sql": "x"}), fakemodel.Call("sleep", map[string]any{"seconds": 0}))
	_, o := results(t, ann, "rec", calls...)
	rows := decisions(t, ann, o.Conversation)
	require.Len(t, rows, 1+len(statements))
	task := servertest.Value(t, ann, "SELECT task_id FROM aidb.agent_tasks WHERE conversation_id = $1::uuid", o.Conversation)
	for i, d := range rows {
		require.Equal(t, "ann", d["caller"])
		require.Equal(t, "ann", d["session_user_name"])
		require.Equal(t, "customer:7", d["principal"])
		require.Equal(t, "rec", d["agent"])
		require.Equal(t, o.Conversation, uid(t, d["conversation_id"]))
		require.Equal(t, task, uid(t, d["task_id"]))
		if i > 0 {
			require.True(t, d["at"].(time.Time).After(rows[i-1]["at"].(time.Time)), "in order")
		}
	}
	model := rows[0]
	require.Equal(t, "model_call", model["interaction_point"])
	require.Equal(t, "allowed", model["status"])
	require.Equal(t, "rec", model["object"], "the model")
	require.Nil(t, model["tool"])

	for i, want := range []struct {
		status, reason, state string
		rows                  int64
	}{{"allowed", "", "", 3}, {"allowed", "", "", 2}, {"allowed", "", "22012", -1}, {"denied", "engine_privilege_denied", "42501", -1}, {"allowed", "", "", 1}} {
		d := rows[i+1]
		require.Equal(t, "sql_exec", d["interaction_point"])
		require.Equal(t, "execute_sql", d["tool"])
		require.Equal(t, "rec", d["purpose"])
		require.Equal(t, "rec", d["role"])
		require.Equal(t, want.status, d["status"], statements[i])
		require.Equal(t, want.reason, text(d["denial_reason"]))
		require.Equal(t, want.state, text(d["sqlstate"]))
		if want.rows >= 0 {
			require.Equal(t, want.rows, d["rows"], statements[i])
		} else {
			require.Nil(t, d["rows"])
		}
		require.Equal(t, statements[i], d["query_text"])
		require.Equal(t, hash(statements[i]), d["query_hash"])
		require.Equal(t, false, d["attempted_escalation"])
		require.Positive(t, duration(t, d))
	}
	require.Equal(t, "recs", rows[4]["object"])
	require.GreaterOrEqual(t, duration(t, rows[5]), 50*time.Millisecond)
	require.Less(t, duration(t, rows[1]), 5*time.Second)
}

// The statement is kept up to 5 KB, cut at the end of a character; the hash is of the whole.
func TestDecisions_KeepFiveKilobytesOfTheStatement(t *testing.T) {
	ann := server.Conn(t, "ann")
	agent(t, ann, "wordy", "", query)
	for _, sql := range []string{"SELECT '" + strings.Repeat("ü", 4000) + "'", "SELECT '" + strings.Repeat("y", 300_000) + "'"} {
		_, o := results(t, ann, "wordy", fakemodel.Query(sql))
		d := sqlDecisions(t, ann, o.Conversation)[0]
		kept := d["query_text"].(string)
		require.True(t, strings.HasPrefix(sql, kept))
		require.True(t, utf8.ValidString(kept))
		require.LessOrEqual(t, len(kept), 5*1024)
		require.Greater(t, len(kept), 5*1024-4)
		require.Equal(t, hash(sql), d["query_hash"])
		require.Equal(t, "allowed", d["status"])
	}
}

// Agents without a purpose, tools called directly, models called directly and read-only runs: recorded too.
func TestDecisions_AreMadeAtEveryBoundary(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	newest := func(n int) []map[string]any {
		t.Helper()
		return servertest.Rows(t, ann, "SELECT * FROM (SELECT * FROM aidb.decisions ORDER BY at DESC LIMIT $1) d ORDER BY at", n)
	}
	servertest.Exec(t, admin, "CREATE TABLE public.boundary (n int); GRANT SELECT, INSERT ON public.boundary TO ann")

	agent(t, ann, "aimless", "", both)
	all, o := results(t, ann, "aimless", whoami, execute("SET ROLE postgres"), execute("SELECT 1"))
	rows := sqlDecisions(t, ann, o.Conversation)
	require.Len(t, rows, 3)
	require.Equal(t, []any{nil, "ann", "allowed"}, []any{rows[0]["purpose"], rows[0]["role"], rows[0]["status"]})
	require.Equal(t, rows[1], requireRefused(t, ann, all[1], "tool 'execute_sql' needs an agent with a purpose", "escalation_blocked"))
	require.Equal(t, rows[2], requireRefused(t, ann, all[2], "tool 'execute_sql' needs an agent with a purpose", "pre_execution_rejected"))
	require.Equal(t, "SELECT 1", rows[2]["query_text"])

	servertest.Exec(t, ann, `SELECT aidb.run_tool('run_sql_query', '{"query": "SELECT 41 AS n"}')`)
	d := newest(1)[0]
	require.Equal(t, []any{"SELECT 41 AS n", "run_sql_query", "ann", nil, nil, "allowed"}, []any{d["query_text"], d["tool"], d["role"], d["agent"], d["conversation_id"], d["status"]})
	servertest.Exec(t, ann, `SELECT aidb.execute_sql('INSERT INTO public.boundary VALUES (1)')`)
	d = newest(1)[0]
	require.Equal(t, []any{"execute_sql", int64(1)}, []any{d["tool"], d["rows"]})

	servertest.Exec(t, ann, "SELECT aidb.generate_text('aimless', 'hello')")
	d = newest(1)[0]
	require.Equal(t, []any{"model_call", "allowed", "aimless"}, []any{d["interaction_point"], d["status"], d["object"]})

	// A read-only run leaves nothing but these.
	before := servertest.Value(t, ann, "SELECT count(*) FROM aidb.agent_tasks")
	server.Model.Script("aimless", fakemodel.Query("SELECT 42 AS n"), fakemodel.Say("done"))
	o = servertest.MustAsk(t, ann, "aimless", "go", "read_only => true")
	require.Empty(t, o.Conversation)
	rows = newest(2)
	require.Equal(t, []any{"model_call", "aimless", nil, nil}, []any{rows[0]["interaction_point"], rows[0]["agent"], rows[0]["conversation_id"], rows[0]["task_id"]})
	require.Equal(t, []any{"sql_exec", "SELECT 42 AS n", "allowed", nil}, []any{rows[1]["interaction_point"], rows[1]["query_text"], rows[1]["status"], rows[1]["conversation_id"]})
	require.Equal(t, before, servertest.Value(t, ann, "SELECT count(*) FROM aidb.agent_tasks"))
}

// What cannot be stored is said in the server's log: of a READ ONLY transaction, and of a tool whose error is raised.
func TestDecisions_GoToTheLogWhereNothingCanBeStored(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	servertest.Exec(t, admin, "CREATE TABLE public.log_shut (n int)")
	agent(t, ann, "loggy", "", query)
	before := servertest.Value(t, ann, "SELECT count(*) FROM aidb.decisions")
	server.Model.Script("loggy", fakemodel.Query("SELECT * FROM public.log_shut"), fakemodel.Say("done"))
	servertest.Exec(t, ann, "BEGIN READ ONLY")
	o := servertest.MustAsk(t, ann, "loggy", "go")
	servertest.Exec(t, ann, "COMMIT")
	require.Empty(t, o.Conversation, "nothing is stored, so there is nothing to continue")
	id := decisionID.FindStringSubmatch(seen("loggy")[0])
	require.NotNil(t, id)
	requireLogged(t, server.Cluster, "aidb decision: id="+id[1]+" point=sql_exec status=denied reason=engine_privilege_denied",
		`agent="loggy" tool="run_sql_query" purpose="" role="ann" caller="ann"`, `object="log_shut" query_hash=`+hash("SELECT * FROM public.log_shut")+" sqlstate=42501")

	_, err := ann.Exec(t.Context(), `SELECT aidb.run_tool('run_sql_query', '{"query": "SELECT * FROM public.log_shut WHERE n = 2"}')`)
	require.Equal(t, "42501", servertest.State(err))
	requireLogged(t, server.Cluster, "point=sql_exec status=denied reason=engine_privilege_denied", "query_hash="+hash("SELECT * FROM public.log_shut WHERE n = 2"))
	require.Equal(t, before, servertest.Value(t, ann, "SELECT count(*) FROM aidb.decisions"))
}

// requireLogged waits for a line of the server's log that has all these parts.
func requireLogged(t *testing.T, c *cluster.Cluster, parts ...string) {
	t.Helper()
	require.True(t, cluster.Wait(10*time.Second, func() bool {
		for line := range strings.Lines(c.Log()) {
			found := 0
			for _, part := range parts {
				if strings.Contains(line, part) {
					found++
				}
			}
			if found == len(parts) {
				return true
			}
		}
		return false
	}), "no line of the log has %q", parts)
}

// A model that may not be reached is a decision too, and the run says so in its row.
func TestDecisions_DeniedEgress(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	agent(t, ann, "abroad", "", query, fakemodel.Say("never said"))
	servertest.Exec(t, admin, "ALTER ROLE ann SET aidb.egress_allowlist = 'models.example.org'")
	defer servertest.Exec(t, admin, "ALTER ROLE ann RESET aidb.egress_allowlist")
	fenced := server.Conn(t, "ann")
	o, err := servertest.Ask(t.Context(), fenced, "abroad", "go")
	require.NoError(t, err)
	require.NotEmpty(t, o.Error)
	require.Empty(t, server.Model.Requests("abroad"))
	d := servertest.Rows(t, ann, "SELECT * FROM aidb.decisions WHERE agent = 'abroad' ORDER BY at DESC LIMIT 1")[0]
	require.Equal(t, []any{"model_call", "denied", "egress_denied", "abroad", "42501"},
		[]any{d["interaction_point"], d["status"], d["denial_reason"], d["object"], d["sqlstate"]})
}

// The way from a refusal to its record that the documentation shows.
func TestDecisions_AreFoundFromTheLog(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	servertest.Exec(t, admin, "CREATE ROLE found_r; SELECT aidb.create_purpose('found', 'found_r')")
	agent(t, ann, "found", "found", query)
	text, o := results(t, ann, "found", whoami)
	logged := servertest.Value(t, ann, `SELECT response_payload->>'error' FROM aidb_internal.action_log
		WHERE action_type = 'tool_response' AND task_id = (SELECT id FROM aidb_internal.agent_task_queue WHERE conversation_id = $1::uuid ORDER BY created_at DESC LIMIT 1)
		ORDER BY created_at LIMIT 1`, o.Conversation)
	require.Equal(t, text[0], logged, "the log has what the model saw")
	d := requireRefused(t, ann, logged, "current user is not a member of role 'found_r'; refusing to switch", "not_role_member")
	require.NotContains(t, logged, "GRANT", "who may become whom is not the model's to know")
	require.Equal(t, o.Conversation, uid(t, d["conversation_id"]))
}

func text(v any) string { s, _ := v.(string); return s }

func uid(t *testing.T, v any) string {
	t.Helper()
	b, ok := v.([16]byte)
	require.True(t, ok, "%T", v)
	return uuid.UUID(b).String()
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func duration(t *testing.T, d map[string]any) time.Duration {
	t.Helper()
	i, ok := d["duration"].(pgtype.Interval)
	require.True(t, ok, "%T", d["duration"])
	require.Zero(t, i.Days+i.Months)
	return time.Duration(i.Microseconds) * time.Microsecond
}
