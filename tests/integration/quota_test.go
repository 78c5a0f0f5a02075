package integration

import (
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

func TestQuota_HoldsForARoleAndItsPeople(t *testing.T) {
	super := server.Admin(t)
	servertest.Exec(t, super, "CREATE ROLE qu_app LOGIN IN ROLE aidb_users")
	app := server.Conn(t, "qu_app")
	reply := fakemodel.Say("ok")
	reply.Input, reply.Output = 90, 10
	server.Agent(t, app, "qu", nil, reply)
	servertest.Exec(t, super, "SELECT aidb.set_quota('qu_app', tokens => 250), aidb.set_quota('qu_app', '*', calls => 2)")
	defer servertest.Exec(t, super, "SELECT aidb.set_quota('qu_app'), aidb.set_quota('qu_app', '*')")
	ask := func(principal string, args ...string) string {
		servertest.Exec(t, app, "SET aidb.principal = '"+principal+"'")
		o, err := servertest.Ask(t.Context(), app, "qu", "go", args...)
		require.NoError(t, err)
		return o.Message + o.Error
	}
	require.Equal(t, "ok", ask("mia"))
	require.Equal(t, "ok", ask("mia", "read_only => true"), "it costs as much as any other")
	require.Equal(t, "quota exceeded: principal 'mia' of role 'qu_app' made 2 of 2 calls today", ask("mia"))
	require.Equal(t, "ok", ask("noa"))
	require.Equal(t, "quota exceeded: role 'qu_app' used 300 of 250 tokens today", ask("noa"))

	// Another session sees what was committed; generate_text is counted too.
	other := server.Conn(t, "qu_app")
	_, err := other.Exec(t.Context(), "SELECT aidb.generate_text('qu', 'hi')")
	require.ErrorContains(t, err, "quota exceeded: role 'qu_app' used 300 of 250 tokens today")
	require.Equal(t, "200 100", servertest.Value(t, super, "SELECT string_agg(tokens::text, ' ' ORDER BY principal) FROM aidb.quota_usage WHERE caller = 'qu_app'"))
	require.Equal(t, "0", servertest.Value(t, other, "SELECT count(*) FROM aidb.quota_usage"), "mia's and noa's are not hers")

	servertest.Exec(t, super, "SELECT aidb.set_quota('qu_app', tokens => 1000), aidb.set_quota('qu_app', '*')")
	require.Equal(t, "ok", ask("mia"))
	require.Equal(t, "1000", servertest.Value(t, super, "SELECT string_agg(tokens::text, ' ') FROM aidb.quotas WHERE caller = 'qu_app'"))
}

func TestQuota_ARollbackIsNotAWayOut(t *testing.T) {
	super := server.Admin(t)
	servertest.Exec(t, super, "CREATE ROLE qu_back LOGIN IN ROLE aidb_users")
	conn := server.Conn(t, "qu_back")
	server.Agent(t, conn, "qu_back", nil, fakemodel.Say("ok"))
	servertest.Exec(t, super, "SELECT aidb.set_quota('qu_back', calls => 1)")
	defer servertest.Exec(t, super, "SELECT aidb.set_quota('qu_back')")
	servertest.Exec(t, conn, "BEGIN")
	servertest.MustAsk(t, conn, "qu_back", "go")
	servertest.Exec(t, conn, "ROLLBACK")
	o, err := servertest.Ask(t.Context(), conn, "qu_back", "go")
	require.NoError(t, err)
	require.Equal(t, "quota exceeded: role 'qu_back' made 1 of 1 calls today", o.Error)

	// Nor is a new connection, nor one that is ended in the middle of its call, nor an error after it.
	again := server.Conn(t, "qu_back")
	o, err = servertest.Ask(t.Context(), again, "qu_back", "go")
	require.NoError(t, err)
	require.Equal(t, "quota exceeded: role 'qu_back' made 1 of 1 calls today", o.Error)
	servertest.Exec(t, super, "SELECT aidb.set_quota('qu_back', calls => 2)")
	_, err = again.Exec(t.Context(), "SELECT 1 / (SELECT count(*) FROM aidb.agent_converse('qu_back', 'go') WHERE message = 'no')")
	require.Equal(t, "22012", servertest.State(err))
	o, err = servertest.Ask(t.Context(), server.Conn(t, "qu_back"), "qu_back", "go")
	require.NoError(t, err)
	require.Equal(t, "quota exceeded: role 'qu_back' made 2 of 2 calls today", o.Error)

	gate := make(chan struct{})
	defer close(gate)
	server.Model.Script("qu_back", fakemodel.Reply{Content: "late", Gate: gate})
	servertest.Exec(t, super, "SELECT aidb.set_quota('qu_back', calls => 3)")
	killed := server.Conn(t, "qu_back")
	pid := killed.PgConn().PID()
	done := make(chan error, 1)
	go func() { _, err := servertest.Ask(t.Context(), killed, "qu_back", "go"); done <- err }()
	require.NoError(t, server.Model.WaitFor(t.Context(), "the request", func() bool { return server.Model.InFlight("qu_back") == 1 }))
	servertest.Exec(t, super, "SELECT pg_terminate_backend($1)", pid)
	require.Error(t, <-done)
	o, err = servertest.Ask(t.Context(), server.Conn(t, "qu_back"), "qu_back", "go")
	require.NoError(t, err)
	require.Equal(t, "quota exceeded: role 'qu_back' made 3 of 3 calls today", o.Error)
}

func TestQuota_OfCostNeedsAPrice(t *testing.T) {
	super := server.Admin(t)
	servertest.Exec(t, super, "CREATE ROLE qu_cost LOGIN IN ROLE aidb_users")
	conn := server.Conn(t, "qu_cost")
	server.Agent(t, conn, "qu_cost", nil, fakemodel.Say("ok"))
	servertest.Exec(t, super, "SELECT aidb.set_quota('qu_cost', cost => 1)")
	defer servertest.Exec(t, super, "SELECT aidb.set_quota('qu_cost')")
	o, err := servertest.Ask(t.Context(), conn, "qu_cost", "go")
	require.NoError(t, err)
	require.Equal(t, "the cost of role 'qu_cost' is limited, but model 'qu_cost' has no price", o.Error)

	_, err = conn.Exec(t.Context(), "SELECT aidb.set_quota('qu_cost')")
	require.Equal(t, "42501", servertest.State(err))
	for call, want := range map[string]string{
		"''":                  "Invalid parameters: caller must not be empty",
		"'ann', ''":           "Invalid parameters: principal must not be empty",
		"NULL, 'mia'":         "Invalid parameters: a principal needs the caller that it is behind",
		"'ann', tokens => -1": "Invalid parameters: tokens, cost and calls must not be below zero, and cost less than 9000000",
		"'ann', cost => 9e6":  "Invalid parameters: tokens, cost and calls must not be below zero, and cost less than 9000000",
	} {
		_, err := super.Exec(t.Context(), "SELECT aidb.set_quota("+call+")")
		require.ErrorContains(t, err, want, call)
	}
}
