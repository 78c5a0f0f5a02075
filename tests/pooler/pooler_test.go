package pooler

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/cluster"
	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

func TestPooler(t *testing.T) {
	pooled(t, "ann") // or skip all
	for _, c := range []struct {
		name string
		test func(*testing.T)
	}{
		{"a conversation goes on over another server connection", conversation},
		{"the principal of a transaction holds in it, and nothing is left for the next client", principal},
		{"a session's settings are anybody's", sessionSettings},
		{"a cancel reaches the call", cancel},
		{"statement_timeout of a transaction ends the call", statementTimeout},
		{"an action is confirmed over another server connection", confirm},
		{"background tasks", background},
		{"LISTEN needs a session", listen},
	} {
		t.Run(c.name, c.test)
	}
	require.Empty(t, server.Crashes())
}

func conversation(t *testing.T) {
	ann := pooled(t, "ann")
	server.Agent(t, server.Conn(t, "ann"), "talking", []string{"run_sql_query"}, fakemodel.Query("SELECT pg_backend_pid() AS pid"), fakemodel.Say("first"))
	o := servertest.MustAsk(t, ann, "talking", "one")
	elsewhere(t, ann, func() {
		server.Model.Script("talking", fakemodel.Query("SELECT pg_backend_pid() AS pid"), fakemodel.Say("second"))
		again := servertest.MustAsk(t, ann, "talking", "two", "conversation_id => '"+o.Conversation+"'")
		require.Equal(t, o.Conversation, again.Conversation)
	})
	require.Len(t, servertest.Rows(t, ann, "SELECT * FROM aidb.get_conversation($1)", o.Conversation), 4)
	log := servertest.Log(t, ann, o.Conversation)
	require.NotEqual(t, log[4].Response, log[12].Response, "two tool calls on two server connections")
	require.Empty(t, servertest.Rows(t, server.Admin(t), "SELECT * FROM aidb.verify_decisions()"))
	require.Equal(t, "0", servertest.Value(t, server.Admin(t), "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"))
}

func principal(t *testing.T) {
	ann := pooled(t, "ann")
	server.Agent(t, server.Conn(t, "ann"), "personal", []string{"run_sql_query"}, fakemodel.Query("SELECT aidb.principal() AS p"), fakemodel.Say("done"))
	servertest.Exec(t, ann, "BEGIN; SET LOCAL aidb.principal = 'mia'")
	o := servertest.MustAsk(t, ann, "personal", "who?")
	servertest.Exec(t, ann, "COMMIT")
	mine := func(conn *pgx.Conn) string {
		return servertest.Value(t, conn, "SELECT count(*) FROM aidb_internal.action_log WHERE conversation_id = $1::uuid", o.Conversation)
	}
	// whoever has the server connection next is nobody's principal, and in no call
	require.Equal(t, "0", mine(ann))
	require.Equal(t, "|||", servertest.Value(t, ann,
		"SELECT concat_ws('|', current_setting('aidb.principal', true), coalesce(aidb.principal(), ''), coalesce(aidb.agent_name(), ''), coalesce(aidb.conversation_id()::text, ''))"))
	elsewhere(t, ann, func() {
		servertest.Exec(t, ann, "BEGIN; SET LOCAL aidb.principal = 'mia'")
		require.NotEqual(t, "0", mine(ann))
		require.Contains(t, servertest.Log(t, ann, o.Conversation)[4].Response, `\"p\": \"mia\"`)
		servertest.Exec(t, ann, "ROLLBACK")
	})
}

// What SET sets stays with the server connection: the reason to use SET LOCAL.
func sessionSettings(t *testing.T) {
	bob := pooled(t, "bob")
	servertest.Exec(t, bob, "SET aidb.principal = 'zoe'")
	at := backend(t, bob)
	require.NoError(t, bob.Close(t.Context()))
	other := pooled(t, "bob")
	require.Equal(t, at, backend(t, other))
	require.Equal(t, "zoe", servertest.Value(t, other, "SELECT current_setting('aidb.principal')"), "another client's principal")
	servertest.Exec(t, other, "RESET aidb.principal")
}

func cancel(t *testing.T) {
	ann := pooled(t, "ann")
	server.Agent(t, server.Conn(t, "ann"), "endless", nil, fakemodel.Reply{Hang: true})
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	done := make(chan error, 1)
	go func() { _, err := servertest.Ask(ctx, ann, "endless", "go"); done <- err }()
	require.NoError(t, server.Model.WaitFor(ctx, "the request", func() bool { return server.Model.InFlight("endless") == 1 }))
	require.NoError(t, ann.PgConn().CancelRequest(ctx))
	require.Equal(t, "57014", servertest.State(<-done))
	require.NoError(t, server.Model.WaitFor(ctx, "the request to be closed", func() bool { return server.Model.InFlight("endless") == 0 }))
	require.Equal(t, "1", servertest.Value(t, ann, "SELECT 1"))
}

func statementTimeout(t *testing.T) {
	ann := pooled(t, "ann")
	server.Agent(t, server.Conn(t, "ann"), "slow", nil, fakemodel.Reply{Hang: true})
	servertest.Exec(t, ann, "BEGIN; SET LOCAL statement_timeout = '300ms'")
	_, err := servertest.Ask(t.Context(), ann, "slow", "go")
	require.Equal(t, "57014", servertest.State(err), "%v", err)
	servertest.Exec(t, ann, "ROLLBACK")
	require.Equal(t, "0", servertest.Value(t, ann, "SELECT current_setting('statement_timeout')"))
}

func confirm(t *testing.T) {
	ann := pooled(t, "ann")
	admin := server.Admin(t)
	servertest.Exec(t, admin, `CREATE TABLE public.doors (id int, state text); INSERT INTO public.doors VALUES (1, 'open'); GRANT ALL ON public.doors TO ann;
		SELECT aidb.create_sql_tool('close_door', 'a test', 'UPDATE public.doors SET state = ''closed'' WHERE id = ${id}',
			aidb.tool_params(aidb.tool_param('id', 'int', 'which')), read_only => false, risk => 'confirm')`)
	server.Agent(t, server.Conn(t, "ann"), "porter", []string{"close_door"}, fakemodel.Call("close_door", map[string]any{"id": 1}), fakemodel.Say("it waits"))
	servertest.MustAsk(t, ann, "porter", "close it")
	elsewhere(t, ann, func() {
		row := servertest.Rows(t, ann, "SELECT action_id::text AS id, token FROM aidb.pending_actions")
		require.Len(t, row, 1)
		require.Equal(t, "0", servertest.Value(t, admin, "SELECT count(*) FROM public.doors WHERE state = 'closed'"))
		require.NotEmpty(t, servertest.Rows(t, ann, "SELECT * FROM aidb.confirm_action($1::uuid, $2)", row[0]["id"], row[0]["token"]))
	})
	require.Equal(t, "1", servertest.Value(t, admin, "SELECT count(*) FROM public.doors WHERE state = 'closed'"))
}

func background(t *testing.T) {
	ann := pooled(t, "ann")
	server.Agent(t, server.Conn(t, "ann"), "behind", []string{"run_sql_query"}, fakemodel.Query("SELECT session_user AS s, aidb.principal() AS p"), fakemodel.Say("done"))
	servertest.Exec(t, ann, "BEGIN; SET LOCAL aidb.principal = 'mia'")
	var id, conversation string
	require.NoError(t, ann.QueryRow(t.Context(), "SELECT task_id::text, conversation_id FROM aidb.agent_submit('behind', 'go')").Scan(&id, &conversation))
	servertest.Exec(t, ann, "COMMIT")
	elsewhere(t, ann, func() {
		servertest.Exec(t, ann, "BEGIN; SET LOCAL aidb.principal = 'mia'")
		require.Equal(t, "SUCCESS", servertest.Value(t, ann, "SELECT status FROM aidb.wait_task($1::uuid, '30 s')", id))
		require.Contains(t, servertest.Log(t, ann, conversation)[4].Response, `{\"s\": \"ann\", \"p\": \"mia\"}`)
		servertest.Exec(t, ann, "COMMIT")
	})
	// who waits keeps a server connection, and when all of them wait others have none: poll with agent_task instead
	server.Model.Script("behind", fakemodel.Reply{Hang: true})
	hanging := servertest.Value(t, ann, "SELECT task_id FROM aidb.agent_submit('behind', 'hang')")
	ctx, stop := context.WithCancel(t.Context())
	for range poolSize {
		conn := pooled(t, "ann")
		go func() { _, _ = conn.Exec(ctx, "SELECT * FROM aidb.wait_task($1::uuid)", hanging) }()
	}
	admin := server.Admin(t)
	require.True(t, cluster.Wait(patience, func() bool {
		return servertest.Value(t, admin, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%wait_task%' AND usename = 'ann' AND state = 'active'") == "2"
	}))
	short, over := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer over()
	late := pooled(t, "ann")
	_, err := late.Exec(short, "SELECT 1")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	servertest.Exec(t, server.Conn(t, "ann"), "SELECT aidb.cancel_task('"+hanging+"')")
	stop()
	require.True(t, cluster.Wait(patience, func() bool {
		return servertest.Value(t, admin, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%wait_task%' AND usename = 'ann' AND state = 'active'") == "0"
	}))
}

// The task is submitted through the pooler; who wants to be told listens on a connection of its own to the server.
func listen(t *testing.T) {
	direct, ann := server.Conn(t, "ann"), pooled(t, "ann")
	server.Agent(t, server.Conn(t, "ann"), "heard", nil, fakemodel.Say("done"))
	servertest.Exec(t, direct, "LISTEN aidb_task")
	id := servertest.Value(t, ann, "SELECT task_id FROM aidb.agent_submit('heard', 'go')")
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	for seen := ""; !(strings.Contains(seen, id) && strings.Contains(seen, "SUCCESS")); {
		n, err := direct.WaitForNotification(ctx)
		require.NoError(t, err)
		seen = n.Payload
	}
}
