package governance

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/cluster"
	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// standby is a hot standby of the tests' server, made with pg_basebackup and fed by streaming replication. Its files are in
// the server's folder, so that whatever cleans that up takes them too.
type standby struct {
	dir, bin string
	port     int
	as       *syscall.SysProcAttr
	primary  *pgx.Conn
}

func startStandby(t *testing.T) *standby {
	t.Helper()
	info, err := os.Stat(filepath.Join(server.Dir, "data"))
	require.NoError(t, err)
	owner, ok := info.Sys().(*syscall.Stat_t)
	require.True(t, ok)
	s := &standby{dir: filepath.Join(server.Dir, "standby"), as: &syscall.SysProcAttr{Setsid: true}, primary: server.Admin(t)}
	if os.Getuid() == 0 {
		s.as.Credential = &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}
	}
	s.bin = servertest.Value(t, s.primary, "SELECT setting FROM pg_config() WHERE name = 'BINDIR'")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.port, err = strconv.Atoi(l.Addr().String()[strings.LastIndexByte(l.Addr().String(), ':')+1:])
	require.NoError(t, err)
	require.NoError(t, l.Close())

	s.run(t, "pg_basebackup", "-D", s.dir, "-R", "-c", "fast", "-X", "stream", "-h", server.SocketDir(), "-p", strconv.Itoa(server.Port), "-U", "postgres")
	conf, err := os.OpenFile(filepath.Join(s.dir, "postgresql.auto.conf"), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = fmt.Fprintf(conf, "port = %d\nhot_standby = on\n", s.port)
	require.NoError(t, err)
	require.NoError(t, conf.Close())
	s.run(t, "pg_ctl", "-D", s.dir, "-l", s.logFile(), "-w", "-t", "60", "-s", "start")
	t.Cleanup(func() { s.run(t, "pg_ctl", "-D", s.dir, "-m", "immediate", "-w", "-s", "stop") })
	s.catchUp(t)
	return s
}

func (s *standby) logFile() string { return filepath.Join(server.Dir, "standby.log") }

func (s *standby) run(t *testing.T, program string, args ...string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(s.bin, program), args...)
	cmd.SysProcAttr, cmd.Dir = s.as, "/"
	// pg_ctl's server inherits what it has: a pipe would never close.
	out, err := os.CreateTemp("", "standby")
	require.NoError(t, err)
	defer func() { _ = out.Close(); _ = os.Remove(out.Name()) }()
	cmd.Stdout, cmd.Stderr = out, out
	err = cmd.Run()
	said, _ := os.ReadFile(out.Name())
	log, _ := os.ReadFile(s.logFile())
	require.NoError(t, err, "%s %s", said, log)
}

// connect opens a session on the standby.
func (s *standby) connect(t *testing.T, role string) *pgx.Conn {
	t.Helper()
	config := server.Config(role, servertest.Database)
	config.Port = uint16(s.port)
	conn, err := pgx.ConnectConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}

// catchUp returns when the standby has replayed what the primary has written so far.
func (s *standby) catchUp(t *testing.T) {
	t.Helper()
	lsn := servertest.Value(t, s.primary, "SELECT pg_current_wal_insert_lsn()")
	conn := s.connect(t, "postgres")
	require.True(t, cluster.Wait(30*time.Second, func() bool {
		return servertest.Value(t, conn, "SELECT pg_last_wal_replay_lsn() >= $1::pg_lsn", lsn) == "true"
	}), "the standby follows")
}

// log waits for a line of the standby's log with all the parts.
func (s *standby) requireLogged(t *testing.T, parts ...string) {
	t.Helper()
	require.True(t, cluster.Wait(10*time.Second, func() bool {
		text, _ := os.ReadFile(s.logFile())
		for line := range strings.Lines(string(text)) {
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
