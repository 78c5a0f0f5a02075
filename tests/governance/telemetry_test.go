package governance

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// span is a row of aidb_otel.traces, its payload taken apart.
type span struct {
	columns    map[string]any
	name       string
	attributes map[string]string
	resource   map[string]string
	raw        map[string]any
}

// spans are those of a conversation, oldest first, as a governor reads them.
func spans(t *testing.T, conversation string) []span {
	t.Helper()
	var list []span
	for _, row := range servertest.Rows(t, governor(t), "SELECT *, payload_json::text AS payload FROM aidb_otel.traces WHERE gen_ai_conversation_id = $1 ORDER BY id", conversation) {
		s := span{columns: row}
		var payload struct {
			ResourceSpans []struct {
				Resource   struct{ Attributes []attribute }
				ScopeSpans []struct{ Spans []json.RawMessage }
			}
		}
		require.NoError(t, json.Unmarshal([]byte(row["payload"].(string)), &payload))
		require.Len(t, payload.ResourceSpans, 1)
		require.Len(t, payload.ResourceSpans[0].ScopeSpans, 1)
		require.Len(t, payload.ResourceSpans[0].ScopeSpans[0].Spans, 1, "one span a row")
		var one struct {
			Name       string
			Attributes []attribute
		}
		text := payload.ResourceSpans[0].ScopeSpans[0].Spans[0]
		require.NoError(t, json.Unmarshal(text, &one))
		require.NoError(t, json.Unmarshal(text, &s.raw))
		s.name, s.attributes, s.resource = one.Name, values(one.Attributes), values(payload.ResourceSpans[0].Resource.Attributes)
		list = append(list, s)
	}
	return list
}

type attribute struct {
	Key   string
	Value map[string]any
}

func values(list []attribute) map[string]string {
	all := map[string]string{}
	for _, a := range list {
		for _, v := range a.Value {
			all[a.Key] = fmt.Sprint(v)
		}
	}
	return all
}

func governor(t *testing.T) *pgx.Conn {
	t.Helper()
	servertest.Exec(t, server.Admin(t), "DO $$ BEGIN CREATE ROLE gov_otel LOGIN IN ROLE aidb_governance; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
	return server.Conn(t, "gov_otel")
}

// traced is a session of ann's in which she may choose where telemetry goes.
func traced(t *testing.T, client string) *pgx.Conn {
	t.Helper()
	servertest.Exec(t, server.Admin(t), "GRANT SET ON PARAMETER aidb.otel_client TO ann")
	conn := server.Conn(t, "ann")
	servertest.Exec(t, conn, "SET aidb.otel_client = "+client)
	return conn
}

// Attributes and columns are those that viewers know (governance pages of the vendor, OpenTelemetry's GenAI conventions).
func TestTelemetry_HasTheDocumentedForm(t *testing.T) {
	ann := traced(t, "database")
	purposeRole(t, "otel")
	agent(t, ann, "otel", "otel", query)
	denied := "SELECT * FROM aidb.agents"
	all, o := results(t, ann, "otel", whoami, fakemodel.Query(denied))
	list := spans(t, o.Conversation)
	require.Len(t, list, 4)
	session := servertest.Value(t, server.Admin(t), "SELECT to_hex(trunc(extract(epoch FROM backend_start))::bigint) || '.' || to_hex(pid) FROM pg_stat_activity WHERE pid = $1", int(ann.PgConn().PID()))
	task := servertest.Value(t, ann, "SELECT task_id FROM aidb.agent_tasks WHERE conversation_id = $1::uuid", o.Conversation)

	root := list[0]
	require.NotEqual(t, "purpose_decision", root.name)
	for key, want := range map[string]string{
		"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "otel", "gen_ai.conversation.id": o.Conversation, "aidb.agent.model": "otel",
		"aidb.agent.message.id": servertest.Value(t, ann, "SELECT request_message_id FROM aidb.agent_tasks WHERE conversation_id = $1::uuid", o.Conversation),
		"gen_ai.agent.id":       servertest.Value(t, ann, "SELECT id FROM aidb.agents WHERE name = 'otel'"),
		"aidb.agent.purpose":    "otel", "aidb.agent.status": "SUCCESS", "aidb.agent.task.id": task, "aidb.read_only": "false", "db.postgresql.session_id": session,
	} {
		require.Equal(t, want, root.attributes[key], key)
	}
	require.Equal(t, session, root.columns["pg_session_id"])
	require.Nil(t, root.columns["parent_span_id"])
	require.Nil(t, root.columns["decision_status"])

	for i, s := range list {
		require.Regexp(t, `^[0-9a-f]{32}$`, s.columns["trace_id"])
		require.Regexp(t, `^[0-9a-f]{16}$`, s.columns["span_id"])
		require.Equal(t, s.columns["trace_id"], s.raw["traceId"])
		require.Equal(t, "pending", s.columns["export_status"], "nobody exports them")
		require.EqualValues(t, 0, s.columns["export_attempts"])
		for _, column := range []string{"payload_binary", "next_export_attempt_at", "last_export_error"} {
			require.Contains(t, s.columns, column)
			require.Nil(t, s.columns[column])
		}
		require.Equal(t, s.columns["span_id"], s.raw["spanId"])
		require.Equal(t, list[0].columns["trace_id"], s.columns["trace_id"])
		require.Nil(t, s.columns["mcp_session_id"])
		require.Equal(t, "aidb", s.resource["aidb.database.name"])
		require.Equal(t, servertest.Value(t, ann, "SELECT oid FROM pg_database WHERE datname = 'aidb'"), s.resource["aidb.database.oid"])
		require.Equal(t, servertest.Value(t, ann, "SELECT extversion FROM pg_extension WHERE extname = 'aidb'"), s.resource["service.version"])
		require.WithinDuration(t, time.Now(), s.columns["recorded_at"].(time.Time), time.Minute)
		if i == 0 {
			continue
		}
		require.Equal(t, "purpose_decision", s.name)
		require.Equal(t, root.columns["span_id"], s.columns["parent_span_id"])
		require.Equal(t, s.columns["parent_span_id"], s.raw["parentSpanId"])
		require.Nil(t, s.columns["pg_session_id"], "the root's alone")
		require.Equal(t, s.columns["decision_status"], s.attributes["aidb.agent.decision.action_status"])
		require.Equal(t, "ann", s.attributes["aidb.agent.decision.principal"])
	}
	require.Equal(t, "model_call", list[1].attributes["aidb.agent.decision.interaction_point"])
	records := sqlDecisions(t, ann, o.Conversation)
	for i, s := range list[2:] {
		require.Equal(t, "sql_exec", s.attributes["aidb.agent.decision.interaction_point"])
		require.Equal(t, uid(t, records[i]["decision_id"]), s.attributes["aidb.agent.decision.decision_id"], "the same decision")
		require.Equal(t, "otel", s.attributes["aidb.agent.decision.agent_role"])
		require.Equal(t, records[i]["query_text"], s.attributes["db.query.text"])
	}
	_, has := list[2].attributes["aidb.agent.decision.denial_reason"]
	require.False(t, has)
	require.Equal(t, "allowed", list[2].columns["decision_status"])
	require.Equal(t, "denied", list[3].columns["decision_status"])
	require.Equal(t, "engine_privilege_denied", list[3].attributes["aidb.agent.decision.denial_reason"])
	require.Contains(t, all[1], list[3].attributes["aidb.agent.decision.decision_id"])

	// The documented way to them.
	found := servertest.Rows(t, governor(t), `SELECT a->'value'->>'stringValue' AS id FROM aidb_otel.traces,
			jsonb_array_elements(payload_json->'resourceSpans'->0->'scopeSpans'->0->'spans'->0->'attributes') a
		WHERE payload_json->'resourceSpans'->0->'scopeSpans'->0->'spans'->0->>'name' = 'purpose_decision' AND decision_status = 'denied'
			AND gen_ai_conversation_id = $1 AND a->>'key' = 'aidb.agent.decision.decision_id'`, o.Conversation)
	require.Equal(t, []map[string]any{{"id": decisionID.FindStringSubmatch(all[1])[1]}}, found)
}

// The setting is looked at for each call anew, within one session.
func TestTelemetry_FollowsTheSetting(t *testing.T) {
	ann := traced(t, "noop")
	agent(t, ann, "switch", "", query)
	_, quiet := results(t, ann, "switch", whoami)
	require.Empty(t, spans(t, quiet.Conversation))
	for range 2 {
		servertest.Exec(t, ann, "SET aidb.otel_client = database")
		_, stored := results(t, ann, "switch", whoami)
		require.Len(t, spans(t, stored.Conversation), 3)
		servertest.Exec(t, ann, "SET aidb.otel_client = log")
		_, logged := results(t, ann, "switch", whoami)
		require.Empty(t, spans(t, logged.Conversation))
		requireLogged(t, server.Cluster, "aidb span: ", `"purpose_decision"`, logged.Conversation)
		servertest.Exec(t, ann, "SET aidb.otel_client = noop")
		_, quiet = results(t, ann, "switch", whoami)
		require.Empty(t, spans(t, quiet.Conversation))
		require.NotContains(t, lines(server.Log(), "aidb span: "), quiet.Conversation)
	}
	// Rolled back with the call that they are of.
	servertest.Exec(t, ann, "SET aidb.otel_client = database; BEGIN")
	_, undone := results(t, ann, "switch", whoami)
	servertest.Exec(t, ann, "ROLLBACK")
	require.Empty(t, spans(t, undone.Conversation))
	_, err := server.Conn(t, "bob").Exec(t.Context(), "SET aidb.otel_client = database")
	_, err2 := server.Conn(t, "bob").Exec(t.Context(), "LOAD 'aidb'; SET aidb.otel_client = database")
	require.True(t, err != nil || err2 != nil, "it is for superusers, and those to whom they grant it")
}

func lines(log, holding string) string {
	var found []string
	for line := range strings.Lines(log) {
		if strings.Contains(line, holding) {
			found = append(found, line)
		}
	}
	return strings.Join(found, "")
}

// A call never fails because of its telemetry: it is said in the log, and the decisions are there all the same.
func TestTelemetry_FailingFailsNothing(t *testing.T) {
	admin, ann := server.Admin(t), traced(t, "database")
	purposeRole(t, "brittle")
	agent(t, ann, "brittle", "brittle", query)
	for _, c := range []struct{ breakIt, mend, said string }{
		{"ALTER TABLE aidb_otel.traces RENAME TO away", "ALTER TABLE aidb_otel.away RENAME TO traces", `relation "aidb_otel.traces" does not exist`},
		{"ALTER TABLE aidb_otel.traces ADD CONSTRAINT never CHECK (false) NOT VALID", "ALTER TABLE aidb_otel.traces DROP CONSTRAINT never", `violates check constraint "never"`},
		{"ALTER TABLE aidb_otel.traces RENAME COLUMN span_id TO other", "ALTER TABLE aidb_otel.traces RENAME COLUMN other TO span_id", `column "span_id" of relation "traces" does not exist`},
		{`CREATE FUNCTION public.otel_boom() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no telemetry today' USING ERRCODE = '42501'; END $$;
			CREATE TRIGGER boom BEFORE INSERT ON aidb_otel.traces FOR EACH ROW EXECUTE FUNCTION public.otel_boom()`, "DROP TRIGGER boom ON aidb_otel.traces", "no telemetry today"},
	} {
		servertest.Exec(t, admin, c.breakIt)
		before := strings.Count(server.Log(), "aidb telemetry could not be written: ")
		_, o := results(t, ann, "brittle", whoami)
		servertest.Exec(t, admin, c.mend)
		require.Len(t, sqlDecisions(t, ann, o.Conversation), 1)
		require.NotEmpty(t, servertest.Log(t, ann, o.Conversation))
		require.Empty(t, spans(t, o.Conversation))
		requireLogged(t, server.Cluster, "LOG:  aidb telemetry could not be written: ", c.said)
		require.Equal(t, before+1, strings.Count(server.Log(), "aidb telemetry could not be written: "))
		_, o = results(t, ann, "brittle", whoami)
		require.Len(t, spans(t, o.Conversation), 3, "and it goes on when it can")
	}
	// The same inside a transaction of the caller's, which goes on.
	servertest.Exec(t, admin, "ALTER TABLE aidb_otel.traces RENAME TO away")
	servertest.Exec(t, ann, "BEGIN")
	_, o := results(t, ann, "brittle", whoami)
	servertest.Exec(t, ann, "COMMIT")
	servertest.Exec(t, admin, "ALTER TABLE aidb_otel.away RENAME TO traces")
	require.NotEmpty(t, servertest.Log(t, ann, o.Conversation))
}

// Only governors read it, and nobody writes it: a forged span would be a forged decision.
func TestTelemetry_IsReadByGovernorsAndWrittenByNobody(t *testing.T) {
	admin := server.Admin(t)
	servertest.Exec(t, admin, "CREATE ROLE aud_otel LOGIN IN ROLE aidb_auditor; CREATE ROLE out_otel LOGIN")
	gov := governor(t)
	servertest.Value(t, gov, "SELECT count(*) FROM aidb_otel.traces")
	for role, want := range map[string]*regexp.Regexp{
		"ann": regexp.MustCompile("permission denied for table traces"), "aud_otel": regexp.MustCompile("permission denied for schema aidb_otel"),
		"out_otel": regexp.MustCompile("permission denied for schema aidb_otel"),
	} {
		_, err := server.Conn(t, role).Exec(t.Context(), "SELECT * FROM aidb_otel.traces")
		require.Equal(t, "42501", servertest.State(err))
		require.Regexp(t, want, err.Error())
	}
	for _, role := range []string{"ann", "aud_otel", "gov_otel"} {
		conn := server.Conn(t, role)
		for _, write := range []string{"INSERT INTO aidb_otel.traces (payload_json, trace_id, span_id) VALUES ('{}', 'x', 'y')", "UPDATE aidb_otel.traces SET decision_status = 'allowed'",
			"DELETE FROM aidb_otel.traces", "TRUNCATE aidb_otel.traces", "SELECT nextval('aidb_otel.traces_id_seq')"} {
			_, err := conn.Exec(t.Context(), write)
			require.Equal(t, "42501", servertest.State(err), "%s: %s", role, write)
		}
	}
}
