package governance

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/cluster"
	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// standby is a hot standby of the tests' server.
type standby struct {
	*cluster.Cluster
	primary *pgx.Conn
}

func startStandby(t *testing.T) *standby {
	t.Helper()
	c, err := server.Standby(t.Context())
	require.NoError(t, err)
	t.Cleanup(c.Remove)
	s := &standby{Cluster: c, primary: server.Admin(t)}
	s.catchUp(t)
	return s
}

// connect opens a session on the standby.
func (s *standby) connect(t *testing.T, role string) *pgx.Conn {
	t.Helper()
	conn, err := s.Connect(t.Context(), role, servertest.Database)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}

// catchUp returns when the standby has replayed what the primary has written so far.
func (s *standby) catchUp(t *testing.T) {
	t.Helper()
	require.NoError(t, s.CatchUp(t.Context(), server.Cluster))
}

// log waits for a line of the standby's log with all the parts.
func (s *standby) requireLogged(t *testing.T, parts ...string) {
	t.Helper()
	require.True(t, cluster.Wait(10*time.Second, func() bool {
		for line := range strings.Lines(s.Log()) {
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
	}), "no line of the standby's log has %q", parts)
}

// On a standby every call is read-only by itself: it answers, writes nothing, keeps to its purpose, and what was decided is
// in the standby's own log.
func TestStandby_AnswersAndWritesNothing(t *testing.T) {
	primary := writer(t, "stand")
	_, known := results(t, primary, "stand", whoami)
	s := startStandby(t)
	ann := s.connect(t, "ann")
	require.Equal(t, "true", servertest.Value(t, ann, "SELECT pg_is_in_recovery()"))
	before := counts(t)

	readOnlyRun(t, ann, "stand")
	readOnlyRun(t, ann, "stand", "read_only => true", "debug => true")
	id := decisionID.FindStringSubmatch(seen("stand")[1])
	require.NotNil(t, id, "a refusal has its id here too")
	s.requireLogged(t, "aidb decision: id="+id[1]+" point=sql_exec status=denied reason=pre_execution_rejected", `agent="stand" tool="run_sql_query" purpose="stand" role="stand" caller="ann"`)
	s.requireLogged(t, "aidb decision: ", "point=model_call status=allowed", `object="stand"`)
	s.requireLogged(t, "aidb decision: ", "point=sql_exec status=allowed", "query_hash="+hash("SELECT current_user AS me"))

	o, err := servertest.Ask(t.Context(), ann, "stand", "go", "read_only => false")
	require.NoError(t, err)
	require.Equal(t, servertest.Outcome{Error: "cannot run with read_only => false on a standby"}, o)

	// The history that has been replicated is there to go on from and to read, and nothing is added.
	server.Model.Script("stand", fakemodel.Say("continued"))
	o = servertest.MustAsk(t, ann, "stand", "and now?", "conversation_id => '"+known.Conversation+"'")
	require.Equal(t, servertest.Outcome{Message: "continued"}, o)
	requests := server.Model.Requests("stand")
	require.Len(t, requests[len(requests)-1].Messages, 6, "system, go, call, result, done, and now?")
	require.Equal(t, "2", servertest.Value(t, ann, "SELECT count(*) FROM aidb.decisions WHERE conversation_id = $1::uuid", known.Conversation))
	require.Len(t, servertest.Rows(t, ann, "SELECT * FROM aidb.get_conversation($1)", known.Conversation), 2)

	// Tools and models called directly: they read; what writes is refused.
	require.JSONEq(t, `[{"n": 1}]`, servertest.Value(t, ann, "SELECT aidb.run_sql_query('SELECT 1 AS n')"))
	s.requireLogged(t, "aidb decision: ", "point=sql_exec status=allowed", "query_hash="+hash("SELECT 1 AS n"))
	require.Equal(t, "continued", servertest.Value(t, ann, "SELECT aidb.generate_text('stand', 'hello')"))
	_, err = ann.Exec(t.Context(), "SELECT aidb.execute_sql('CREATE TABLE x ()')")
	require.Equal(t, "42501", servertest.State(err), "%v", err)
	_, err = ann.Exec(t.Context(), "SELECT * FROM aidb.create_agent('x', 'y', 'z')")
	require.Equal(t, "25006", servertest.State(err), "%v", err)

	// Telemetry goes to the log as well.
	root := s.connect(t, "postgres")
	servertest.Exec(t, root, "SET aidb.otel_client = 'database'")
	server.Model.Script("stand", fakemodel.Query("SELECT 'traced' AS t"), fakemodel.Say("done"))
	servertest.MustAsk(t, root, "stand", "go")
	s.requireLogged(t, "aidb span: ", `"purpose_decision"`, "traced")

	// What governs is what has been replicated.
	servertest.Exec(t, s.primary, "REVOKE stand FROM ann")
	s.catchUp(t)
	server.Model.Script("stand", whoami, fakemodel.Say("done"))
	servertest.MustAsk(t, ann, "stand", "go")
	require.Contains(t, seen("stand")[0], "Tool error: current user is not a member of role 'stand'; refusing to switch [decision_id=")
	s.requireLogged(t, "aidb decision: ", "status=denied reason=not_role_member")
	servertest.Exec(t, s.primary, "SELECT aidb.delete_purpose('stand')")
	s.catchUp(t)
	o, err = servertest.Ask(t.Context(), ann, "stand", "go")
	require.NoError(t, err)
	require.Equal(t, "purpose 'stand' has been retired", o.Error)
	require.Equal(t, before, counts(t), "nothing has reached the primary")
}
