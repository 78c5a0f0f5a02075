package integration

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

func TestTools_RunWithTheCallersRights(t *testing.T) {
	admin, ann, bob := server.Admin(t), server.Conn(t, "ann"), server.Conn(t, "bob")
	servertest.Exec(t, admin, "CREATE TABLE public.bobs (secret text); INSERT INTO public.bobs VALUES ('for bob'); GRANT SELECT ON public.bobs TO bob")
	server.Agent(t, ann, "reader", sql)
	server.Model.Answer("reader", func(r fakemodel.Request) fakemodel.Reply {
		if turn := r.Turn(); len(turn) > 0 {
			return fakemodel.Say(turn[0].Result)
		}
		return fakemodel.Query("SELECT current_user AS me, (SELECT secret FROM public.bobs) AS secret")
	})
	require.Contains(t, servertest.MustAsk(t, ann, "reader", "go").Message, "permission denied")
	require.Contains(t, servertest.MustAsk(t, bob, "reader", "go").Message, "for bob")
}

func TestSuperuser_ReadsWithOneWarning(t *testing.T) {
	admin, notices := server.ConnNoting(t, "postgres")
	servertest.Exec(t, admin, "CREATE TABLE public.by_root (n int)")
	write := fakemodel.Call("execute_sql", map[string]any{"statement": "INSERT INTO public.by_root VALUES (1)"})
	server.Agent(t, admin, "rooted", []string{"run_sql_query", "execute_sql"}, fakemodel.Query("SELECT 1 AS n"), fakemodel.Query("SELECT 2 AS n"), write, fakemodel.Say("done"))
	notices.Reset()
	o := servertest.MustAsk(t, admin, "rooted", "go")
	require.Equal(t, "done", o.Message)
	require.Len(t, notices.Lines("WARNING"), 1)
	require.Equal(t, "0", servertest.Value(t, admin, "SELECT count(*) FROM public.by_root"), "an agent without a purpose writes nothing")
	turn := server.Model.Requests("rooted")[3].Turn()
	require.Contains(t, turn[2].Result, "Tool error: ")

	// The same for a tool that is called directly, where the setting opens it.
	run := `SELECT aidb.run_tool('execute_sql', '{"statement": "INSERT INTO public.by_root VALUES (1)"}')`
	_, err := admin.Exec(t.Context(), run)
	require.Equal(t, "42501", servertest.State(err), "%v", err)
	servertest.Exec(t, admin, "SET aidb.allow_superuser_tools = on")
	servertest.Exec(t, admin, run)
	require.Equal(t, "1", servertest.Value(t, admin, "SELECT count(*) FROM public.by_root"))
}

func TestConversations_AreTheirCallersOwn(t *testing.T) {
	ann, bob := server.Conn(t, "ann"), server.Conn(t, "bob")
	server.Agent(t, ann, "private", nil, fakemodel.Say("between us"))
	o := servertest.MustAsk(t, ann, "private", "a secret of ann")
	for _, relation := range []string{"aidb.conversation_log", "aidb.agent_tasks", "aidb.conversations", "aidb_internal.action_log", "aidb_internal.agent_task_queue"} {
		require.NotEqual(t, "0", servertest.Value(t, ann, "SELECT count(*) FROM "+relation+" WHERE conversation_id = $1::uuid", o.Conversation), relation)
		require.Equal(t, "0", servertest.Value(t, bob, "SELECT count(*) FROM "+relation+" WHERE conversation_id = $1::uuid", o.Conversation), relation)
	}
	for change, state := range map[string]string{
		"INSERT INTO aidb_internal.action_log SELECT * FROM aidb_internal.action_log": "42501",
		// nobody can
		"DELETE FROM aidb_internal.action_log": "55000", "UPDATE aidb_internal.action_log SET error = 'x'": "55000", "TRUNCATE aidb_internal.action_log": "42809",
		"SELECT FROM aidb_internal.logged_steps": "42501", "DELETE FROM aidb_internal.logged_steps": "42501", "TRUNCATE aidb_internal.logged_steps": "42501",
		"UPDATE aidb_internal.logged_steps SET steps = '[]'": "42501", "INSERT INTO aidb_internal.logged_steps SELECT": "42501",
	} {
		_, err := ann.Exec(t.Context(), change)
		require.Equal(t, state, servertest.State(err), "%s: %v", change, err)
	}
}

func TestOutsiders_MayDoNothing(t *testing.T) {
	admin := server.Admin(t)
	servertest.Exec(t, admin, "CREATE ROLE stranger LOGIN")
	stranger := server.Conn(t, "stranger")
	for _, call := range []string{"SELECT * FROM aidb.agents", "SELECT * FROM aidb.agent_converse('x', 'y')", "SELECT aidb.run_tool('run_sql_query', '{}')",
		"SELECT * FROM aidb.list_models()", "SELECT * FROM aidb_internal.action_log"} {
		_, err := stranger.Exec(t.Context(), call)
		require.Equal(t, "42501", servertest.State(err), call)
	}
}

// A key is given once and seen never again: not in a view, not in a table a user can read, not in an error, not in the
// server's log, not in what a tool can reach. It goes to its server and nowhere else.
func TestSecrets_AreSeenNowhere(t *testing.T) {
	ann, admin := server.Conn(t, "ann"), server.Admin(t)
	server.Agent(t, ann, "discreet", sql,
		fakemodel.Query("SELECT string_agg(m::text, ' ') FROM aidb.models m"),
		fakemodel.Fail(400, "your key "+servertest.Secret+" was refused"))
	o, err := servertest.Ask(t.Context(), ann, "discreet", "go", "debug => true")
	require.NoError(t, err)
	require.NotEmpty(t, o.Error)
	require.NotContains(t, o.Error, servertest.Secret)
	require.Equal(t, "Bearer "+servertest.Secret, server.Model.Requests("discreet")[0].Header.Get("Authorization"))
	for _, r := range server.Model.Requests("discreet") {
		require.NotContains(t, string(r.Body), servertest.Secret)
	}

	relations := servertest.Rows(t, admin, `SELECT c.oid::regclass::text AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname LIKE 'aidb%' AND c.relkind IN ('r', 'v', 'm', 'p')`)
	require.NotEmpty(t, relations)
	for _, r := range relations {
		var n int
		err := ann.QueryRow(t.Context(), fmt.Sprintf("SELECT count(*) FROM %s t WHERE strpos(t::text, $1) > 0", r["name"]), servertest.Secret).Scan(&n)
		if servertest.State(err) == "42501" {
			continue // not readable, so nothing to see
		}
		require.NoError(t, err, r["name"])
		require.Zero(t, n, r["name"])
	}
	require.NotContains(t, server.Log(), servertest.Secret)
}
