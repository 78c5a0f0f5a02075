package tasks

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/tests/cluster"
	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

func TestDurableAudit_OutlivesARollback(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	server.Agent(t, ann, "audited", []string{"run_sql_query"}, fakemodel.Query("SELECT 613 AS mark"), fakemodel.Query("SELECT * FROM pg_authid"), fakemodel.Say("done"))
	servertest.Exec(t, admin, "ALTER ROLE ann SET aidb.audit = 'durable'")
	defer servertest.Exec(t, admin, "ALTER ROLE ann RESET aidb.audit")
	durable := server.Conn(t, "ann")
	count := func(condition string) string {
		return servertest.Value(t, admin, "SELECT count(*) FROM aidb.decisions WHERE agent = 'audited' AND "+condition)
	}
	servertest.Exec(t, durable, "BEGIN")
	servertest.MustAsk(t, durable, "audited", "go")
	require.Equal(t, "1", count("query_text LIKE '%613 AS mark%'"), "on record before anything was committed")
	servertest.Exec(t, durable, "ROLLBACK")
	require.Equal(t, "1", count("status = 'denied' AND query_text LIKE '%pg_authid%'"))
	require.Equal(t, "0", servertest.Value(t, admin, "SELECT count(*) FROM aidb_internal.action_log l JOIN aidb.agents a ON a.id = l.agent_id WHERE a.name = 'audited'"))

	// and once, when the caller commits
	server.Model.Script("audited", fakemodel.Query("SELECT 614 AS mark"), fakemodel.Say("done"))
	servertest.MustAsk(t, durable, "audited", "go")
	require.Equal(t, "1", count("query_text LIKE '%614 AS mark%'"))
	require.Empty(t, servertest.Rows(t, admin, "SELECT * FROM aidb.verify_decisions()"))
	// a tool called by itself has decisions, too; that of a failing one is raised
	_, err := durable.Exec(t.Context(), "SELECT aidb.run_sql_query('SELECT 615 AS mark FROM pg_authid')")
	require.Error(t, err)
	until(t, admin, "SELECT count(*) = 1 FROM aidb.decisions WHERE query_text LIKE '%615 AS mark%'")
}

// What a call has decided is on record before its model is asked again: a crash at that moment loses none of it.
func TestDurableAudit_OutlivesItsBackend(t *testing.T) {
	s := servertest.Start(t, conf("aidb.audit = durable"))
	ann := s.Conn(t, "ann")
	s.Agent(t, ann, "doomed", []string{"run_sql_query"}, fakemodel.Query("SELECT 616 AS mark"), fakemodel.Reply{Hang: true})
	go func() { _, _ = servertest.Ask(t.Context(), ann, "doomed", "go") }()
	require.NoError(t, s.Model.WaitFor(t.Context(), "the second request", func() bool { return s.Model.InFlight("doomed") == 1 && len(s.Model.Requests("doomed")) == 2 }))
	require.NoError(t, syscall.Kill(int(ann.PgConn().PID()), syscall.SIGKILL))
	// The server restarts all its processes: a connection that is made at once may be one of those that end.
	require.True(t, cluster.Wait(patience, func() bool {
		conn, err := s.Connect(t.Context(), "postgres", servertest.Database)
		if err != nil {
			return false
		}
		defer func() { _ = conn.Close(t.Context()) }()
		n := -1
		err = conn.QueryRow(t.Context(), "SELECT count(*) FROM aidb.decisions WHERE query_text LIKE '%616 AS mark%'").Scan(&n)
		return err == nil && n == 1
	}))
}

// Where there is no worker the call says so, before anything is done that would not be recorded.
func TestDurableAudit_NeedsTheWorker(t *testing.T) {
	s := servertest.Start(t, cluster.Options{})
	ann := s.Conn(t, "ann")
	s.Agent(t, ann, "plain", nil, fakemodel.Say("hi"))
	require.Equal(t, "hi", servertest.MustAsk(t, ann, "plain", "go").Message)
	_, err := ann.Exec(t.Context(), "SELECT * FROM aidb.agent_submit('plain', 'go')")
	require.Equal(t, "55000", servertest.State(err), "%v", err)
	admin := s.Admin(t)
	servertest.Exec(t, admin, "SET aidb.audit = 'durable'")
	_, err = servertest.Ask(t.Context(), admin, "plain", "go")
	require.ErrorContains(t, err, "aidb.audit = 'durable' needs the background worker")
}
