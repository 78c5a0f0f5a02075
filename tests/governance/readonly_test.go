package governance

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// writer is an agent with a purpose that may write, and a table for it.
func writer(t *testing.T, name string) *pgx.Conn {
	t.Helper()
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	purposeRole(t, name)
	servertest.Exec(t, admin, "CREATE TABLE public."+name+"_t (n int); CREATE SEQUENCE public."+name+"_s; GRANT ALL ON public."+name+"_t, public."+name+"_s TO "+name+"; "+
		"CREATE FUNCTION public."+name+"_f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public."+name+"_t VALUES (1); RETURN 1; END $$")
	agent(t, ann, name, name, both)
	return ann
}

// readOnlyRun has an agent try what writes; nothing of it may come through, and the answer may.
func readOnlyRun(t *testing.T, conn *pgx.Conn, name string, args ...string) {
	t.Helper()
	server.Model.Script(name, execute("INSERT INTO public."+name+"_t VALUES (1)"),
		fakemodel.Query("INSERT INTO public."+name+"_t VALUES (1)"), fakemodel.Query("SELECT public."+name+"_f()"),
		fakemodel.Query("SELECT nextval('public."+name+"_s')"), fakemodel.Query("WITH w AS (INSERT INTO public."+name+"_t VALUES (1) RETURNING 1) SELECT * FROM w"),
		fakemodel.Query("SELECT current_user AS me"), fakemodel.Say("done"))
	o := servertest.MustAsk(t, conn, name, "go", args...)
	require.Equal(t, "done", o.Message)
	require.Empty(t, o.Conversation, "conversation_id is NULL")

	requests := server.Model.Requests(name)
	first := requests[len(requests)-7]
	require.True(t, first.Offers("run_sql_query"))
	require.True(t, first.Offers("sleep"))
	require.False(t, first.Offers("execute_sql"), "tools that write are not even offered")
	all := seen(name)
	require.Contains(t, all[0], "Tool error: tool 'execute_sql' is not available")
	for _, text := range all[1:5] {
		require.Contains(t, text, "Tool error: ")
	}
	require.Equal(t, `[{"me": "`+name+`"}]`, all[5], "under its purpose, as ever")
}

func TestReadOnly_OnAPrimary(t *testing.T) {
	ann, admin := writer(t, "ro"), server.Admin(t)
	before := counts(t)
	readOnlyRun(t, ann, "ro", "read_only => true")
	after := counts(t)
	require.Equal(t, before["tasks"], after["tasks"])
	require.Equal(t, before["actions"], after["actions"])
	require.Greater(t, after["decisions"], before["decisions"], "but what was allowed and denied is on record")
	require.Equal(t, "0", servertest.Value(t, admin, "SELECT count(*) FROM public.ro_t"))
	require.Equal(t, "false", servertest.Value(t, admin, "SELECT is_called FROM public.ro_s"))
	require.Equal(t, "off", servertest.Value(t, ann, "SELECT current_setting('transaction_read_only')"))
	for _, d := range servertest.Rows(t, ann, "SELECT * FROM aidb.decisions WHERE agent = 'ro'") {
		require.Nil(t, d["conversation_id"])
		require.Nil(t, d["task_id"])
	}

	// In a transaction of the caller's, which writes before and after.
	servertest.Exec(t, admin, "GRANT ALL ON public.ro_t TO ann")
	servertest.Exec(t, ann, "BEGIN; INSERT INTO public.ro_t VALUES (7)")
	readOnlyRun(t, ann, "ro", "read_only => true")
	servertest.Exec(t, ann, "INSERT INTO public.ro_t VALUES (8); COMMIT")
	require.Equal(t, "7,8", servertest.Value(t, admin, "SELECT string_agg(n::text, ',' ORDER BY n) FROM public.ro_t"))
}

// An earlier conversation is the context of a read-only call, which adds nothing to it.
func TestReadOnly_ReadsAConversationAndAddsNothing(t *testing.T) {
	ann := server.Conn(t, "ann")
	agent(t, ann, "ro_history", "", query, fakemodel.Say("first"), fakemodel.Say("second"))
	first := servertest.MustAsk(t, ann, "ro_history", "one")
	before := counts(t)["actions"]
	second := servertest.MustAsk(t, ann, "ro_history", "two", "conversation_id => '"+first.Conversation+"'", "read_only => true")
	require.Equal(t, "second", second.Message)
	require.Empty(t, second.Conversation)
	require.Equal(t, before, counts(t)["actions"])
	requests := server.Model.Requests("ro_history")
	require.Len(t, requests[1].Messages, 4, "system, one, first, two")
}

// Where the transaction cannot write, a call is read-only by itself, and one that insists is told so.
func TestReadOnly_InAReadOnlyTransaction(t *testing.T) {
	ann := writer(t, "ro_xact")
	before := counts(t)
	servertest.Exec(t, ann, "BEGIN READ ONLY")
	readOnlyRun(t, ann, "ro_xact")
	servertest.Exec(t, ann, "COMMIT")
	require.Equal(t, before, counts(t), "the decisions are in the log of the server")
	servertest.Exec(t, ann, "BEGIN READ ONLY")
	o, err := servertest.Ask(t.Context(), ann, "ro_xact", "go", "read_only => false")
	require.NoError(t, err)
	require.Equal(t, servertest.Outcome{Error: "cannot run with read_only => false in a read-only transaction"}, o)
	servertest.Exec(t, ann, "COMMIT")
	require.Equal(t, before, counts(t))
}

// The mode is the call's: the next one writes.
func TestReadOnly_IsForOneCall(t *testing.T) {
	ann := writer(t, "ro_one")
	readOnlyRun(t, ann, "ro_one", "read_only => true")
	require.Equal(t, `{"rows_affected": 1}`, result(t, ann, "ro_one", execute("INSERT INTO public.ro_one_t VALUES (1)")))
}
