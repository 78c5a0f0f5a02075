package governance

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// histories are the relations that hold what agents did, each with what tells the conversation.
var histories = []string{"aidb.agent_tasks", "aidb.conversations", "aidb.conversation_log", "aidb.decisions", "aidb_internal.action_log", "aidb_internal.agent_task_queue"}

// sees says what of a conversation a session can read: all of it, in every way there is to read it, or nothing at all.
func sees(t *testing.T, conn *pgx.Conn, o servertest.Outcome, message string) bool {
	t.Helper()
	var all []bool
	for _, relation := range histories {
		all = append(all, servertest.Value(t, conn, "SELECT count(*) > 0 FROM "+relation+" WHERE conversation_id = $1::uuid", o.Conversation) == "true")
	}
	all = append(all, len(servertest.Rows(t, conn, "SELECT * FROM aidb.get_conversation($1)", o.Conversation)) > 0)
	row := servertest.Rows(t, conn, "SELECT * FROM aidb.get_message($1)", message)[0]
	all = append(all, row["error"] == nil)
	if row["error"] != nil {
		require.Equal(t, "message '"+message+"' not found", row["error"], "no other text than for one that does not exist")
	}
	for _, one := range all {
		require.Equal(t, all[0], one, "%v of %v, get_conversation, get_message", all, histories)
	}
	return all[0]
}

func prompt(t *testing.T, conn *pgx.Conn, o servertest.Outcome) string {
	t.Helper()
	return servertest.Value(t, conn, "SELECT request_message_id FROM aidb.agent_tasks WHERE conversation_id = $1::uuid", o.Conversation)
}

// History is visible to the role that called the agent with the principal it had then, and to auditors.
func TestHistory_IsVisibleByCallerAndPrincipal(t *testing.T) {
	admin := server.Admin(t)
	servertest.Exec(t, admin, "CREATE ROLE pool LOGIN IN ROLE aidb_users; CREATE ROLE aud_hist LOGIN IN ROLE aidb_auditor; "+
		"CREATE ROLE aud_user LOGIN IN ROLE aidb_auditor, aidb_users; CREATE ROLE pool_boss LOGIN IN ROLE pool; CREATE ROLE pool_kin LOGIN IN ROLE aidb_users; GRANT pool TO pool_kin")
	one, two := server.Conn(t, "pool", "aidb.principal=user:1"), server.Conn(t, "pool", "aidb.principal=user:2")
	bare := server.Conn(t, "pool")
	agent(t, one, "history", "", query)
	_, ofOne := results(t, one, "history", whoami)
	_, ofTwo := results(t, two, "history", whoami)
	_, ofPool := results(t, bare, "history", whoami)
	_, ofBoth := results(t, server.Conn(t, "aud_user"), "history", whoami)
	m1, m2, mp := prompt(t, one, ofOne), prompt(t, two, ofTwo), prompt(t, bare, ofPool)
	mb := prompt(t, server.Conn(t, "aud_user"), ofBoth)

	for _, c := range []struct {
		who                  string
		conn                 *pgx.Conn
		one, two, pool, both bool
	}{
		{"one", one, true, false, false, false},
		{"two", two, false, true, false, false},
		{"the pool without a principal", bare, false, false, true, false},
		{"the principal of another role", server.Conn(t, "ann", "aidb.principal=user:1"), false, false, false, false},
		{"a principal named like a role", server.Conn(t, "ann", "aidb.principal=pool"), false, false, false, false},
		{"a member of the role", server.Conn(t, "pool_kin"), false, false, false, false},
		{"a stranger", server.Conn(t, "bob"), false, false, false, false},
		{"an auditor", server.Conn(t, "aud_hist"), true, true, true, true},
		{"an auditor with a principal", server.Conn(t, "aud_hist", "aidb.principal=nobody"), true, true, true, true},
		{"a user who audits", server.Conn(t, "aud_user"), true, true, true, true},
	} {
		require.Equal(t, c.one, sees(t, c.conn, ofOne, m1), "%s / one", c.who)
		require.Equal(t, c.two, sees(t, c.conn, ofTwo, m2), "%s / two", c.who)
		require.Equal(t, c.pool, sees(t, c.conn, ofPool, mp), "%s / pool", c.who)
		require.Equal(t, c.both, sees(t, c.conn, ofBoth, mb), "%s / both", c.who)
	}
	// Principals are a matter of the session: set anew, the other history is there.
	servertest.Exec(t, one, "SET aidb.principal = 'user:2'")
	require.True(t, sees(t, one, ofTwo, m2))
	require.False(t, sees(t, one, ofOne, m1))
	servertest.Exec(t, one, "RESET aidb.principal")
	// current_user counts, not who logged in.
	kin := server.Conn(t, "pool_kin")
	servertest.Exec(t, kin, "SET ROLE pool")
	require.True(t, sees(t, kin, ofPool, mp))

	// Nobody continues what is not theirs, not even who may read it.
	for _, conn := range []*pgx.Conn{two, bare, server.Conn(t, "bob"), server.Conn(t, "aud_user")} {
		o, err := servertest.Ask(t.Context(), conn, "history", "mine", "conversation_id => '"+ofOne.Conversation+"'")
		require.NoError(t, err)
		require.Equal(t, "conversation '"+ofOne.Conversation+"' belongs to another caller", o.Error)
	}
}

// A reader's own function in the condition is shown no row that is not theirs.
func TestHistory_IsNotShownToLeakyFunctions(t *testing.T) {
	admin, ann, bob := server.Admin(t), server.Conn(t, "ann"), server.Conn(t, "bob")
	agent(t, ann, "leaky", "", query)
	_, _ = results(t, ann, "leaky", fakemodel.Query("SELECT 'leak-this' AS s"))
	servertest.Exec(t, admin, "CREATE FUNCTION public.leak(t text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS $$ BEGIN IF t ~ 'leak-this' THEN RAISE 'leaked: %', t; END IF; RETURN true; END $$")
	for _, relation := range histories {
		_, err := bob.Exec(t.Context(), "SELECT * FROM "+relation+" r WHERE public.leak(r::text)")
		require.NoError(t, err, relation)
	}
	_, err := ann.Exec(t.Context(), "SELECT * FROM aidb_internal.action_log r WHERE public.leak(r::text)")
	require.ErrorContains(t, err, "leak-this", "the function does see rows")
}

func TestHistory_IsWrittenByNobody(t *testing.T) {
	admin := server.Admin(t)
	servertest.Exec(t, admin, "CREATE ROLE aud_write LOGIN IN ROLE aidb_auditor, aidb_users; CREATE ROLE gov_write LOGIN IN ROLE aidb_governance")
	agent(t, server.Conn(t, "ann"), "written", "", query)
	_, _ = results(t, server.Conn(t, "ann"), "written", whoami)
	before := counts(t)
	for _, role := range []string{"ann", "bob", "aud_write", "gov_write"} {
		conn := server.Conn(t, role)
		for _, relation := range append([]string{"aidb_internal.decision_log"}, histories...) {
			for _, write := range []string{"DELETE FROM %s", "UPDATE %s SET conversation_id = gen_random_uuid()", "INSERT INTO %s (conversation_id) VALUES (gen_random_uuid())", "TRUNCATE %s"} {
				_, err := conn.Exec(t.Context(), strings.ReplaceAll(write, "%s", relation))
				require.Error(t, err, "%s: %s %s", role, write, relation)
				require.Contains(t, []string{"42501", "42809", "55000", "0A000"}, servertest.State(err), "%s: %s %s: %v", role, write, relation, err)
			}
		}
	}
	require.Equal(t, before, counts(t))
}

// Who is asking cannot be changed by what is asked: not by a tool's SQL, and not by a function of the application that changes
// the setting for itself.
func TestPrincipal_CannotBeSetInsideAToolCall(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann", "aidb.principal=customer:1")
	purposeRole(t, "who")
	servertest.Exec(t, admin, `GRANT USAGE ON SCHEMA aidb TO who; CREATE FUNCTION public.as_two() RETURNS text LANGUAGE sql STABLE SET aidb.principal = 'customer:2' AS 'SELECT aidb.principal()';
		CREATE TABLE public.owned (owner text); INSERT INTO public.owned VALUES ('customer:1'), ('customer:2');
		ALTER TABLE public.owned ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON public.owned USING (owner = aidb.principal()); GRANT ALL ON public.owned TO who;
		CREATE FUNCTION public.owned_as_two() RETURNS bigint LANGUAGE sql STABLE SET aidb.principal = 'customer:2' AS 'SELECT count(*) FROM public.owned WHERE owner = ''customer:2''';`)
	agent(t, ann, "who", "who", both)
	all, o := results(t, ann, "who",
		execute("SET aidb.principal = 'customer:2'"), execute("SET LOCAL aidb.principal = 'customer:2'"), execute("RESET aidb.principal"),
		execute("SELECT set_config('aidb.principal', 'customer:2', false)"), execute("DO $$ BEGIN SET aidb.principal = 'customer:2'; END $$"),
		fakemodel.Query("SELECT public.as_two() AS p"), fakemodel.Query("SELECT owner FROM public.owned"), fakemodel.Query("SELECT public.owned_as_two() AS n"))
	for i, want := range []string{"SET", "SET", "RESET"} {
		requireRefused(t, ann, all[i], want+" is not allowed in a tool call", "pre_execution_rejected")
	}
	requireRefused(t, ann, all[3], "function set_config is not allowed in a tool call", "escalation_blocked")
	requireRefused(t, ann, all[4], "SET is not allowed in a tool call", "pre_execution_rejected")
	requireRefused(t, ann, all[5], `parameter "aidb.principal" cannot be changed in a tool call`, "escalation_blocked")
	require.Equal(t, `[{"owner": "customer:1"}]`, all[6])
	requireRefused(t, ann, all[7], `parameter "aidb.principal" cannot be changed in a tool call`, "escalation_blocked")
	require.Equal(t, "customer:1", servertest.Value(t, ann, "SELECT current_setting('aidb.principal')"))
	for _, d := range decisions(t, ann, o.Conversation) {
		require.Equal(t, "customer:1", d["principal"])
	}
	require.Empty(t, servertest.Value(t, ann, "SELECT aidb.principal()"), "outside a tool call there is none")
}

// The history under a name is that of the role which had it: not of another one that is given the name later, which sees its
// own from its first call on. Auditors see both.
func TestHistory_IsNotOfARoleThatIsMadeAnewUnderTheName(t *testing.T) {
	admin := server.Admin(t)
	servertest.Exec(t, admin, "CREATE ROLE aud_anew LOGIN IN ROLE aidb_auditor; CREATE ROLE anew LOGIN IN ROLE aidb_users")
	old, auditor := server.Conn(t, "anew"), server.Conn(t, "aud_anew")
	require.Equal(t, "-infinity", servertest.Value(t, old, "SELECT aidb.history_since()::text"), "nobody has called under the name")
	agent(t, server.Conn(t, "ann"), "anew", "", query)
	_, first := results(t, old, "anew", whoami)
	id := prompt(t, old, first)
	require.True(t, sees(t, old, first, id))
	rows := func(conn *pgx.Conn) string {
		return servertest.Value(t, conn, "SELECT (SELECT count(*) FROM aidb.decisions) || ' ' || (SELECT count(*) FROM aidb.model_calls) || ' ' || (SELECT count(*) FROM aidb.conversations)")
	}
	require.NotContains(t, rows(old), "0")

	// Renamed: the name is free, and with it goes no history.
	servertest.Exec(t, admin, "ALTER ROLE anew RENAME TO anew_before; CREATE ROLE anew LOGIN IN ROLE aidb_users")
	second := server.Conn(t, "anew")
	require.Equal(t, "infinity", servertest.Value(t, second, "SELECT aidb.history_since()::text"))
	require.False(t, sees(t, second, first, id), "before it has called")
	require.Equal(t, "0 0 0", rows(second))
	o, err := servertest.Ask(t.Context(), second, "anew", "go on", "conversation_id => '"+first.Conversation+"'")
	require.NoError(t, err)
	require.Equal(t, "conversation '"+first.Conversation+"' belongs to another caller", o.Error)
	_, err = second.Exec(t.Context(), "SELECT aidb.fork_conversation($1)", id)
	require.ErrorContains(t, err, "message '"+id+"' not found")
	_, err = second.Exec(t.Context(), "SELECT aidb.export_conversation($1)", first.Conversation)
	require.ErrorContains(t, err, "conversation '"+first.Conversation+"' not found")
	_, ofSecond := results(t, second, "anew", whoami)
	require.True(t, sees(t, second, ofSecond, prompt(t, second, ofSecond)))
	require.False(t, sees(t, second, first, id), "after it has called")
	require.NotContains(t, rows(second), "0")
	require.True(t, sees(t, auditor, first, id))
	require.True(t, sees(t, auditor, ofSecond, prompt(t, second, ofSecond)))

	// Dropped: the third of the name sees neither; a call that is rolled back notes nothing.
	servertest.Exec(t, admin, "DROP ROLE anew; CREATE ROLE anew LOGIN IN ROLE aidb_users")
	third := server.Conn(t, "anew")
	ofThird := ""
	servertest.Exec(t, third, "BEGIN")
	servertest.MustAsk(t, third, "anew", "in a transaction")
	servertest.Exec(t, third, "ROLLBACK")
	require.Equal(t, "infinity", servertest.Value(t, third, "SELECT aidb.history_since()::text"))
	ofThird = servertest.MustAsk(t, third, "anew", "again").Conversation
	require.Equal(t, "1", servertest.Value(t, third, "SELECT count(*) FROM aidb.conversations"))
	require.Equal(t, ofThird, servertest.Value(t, third, "SELECT conversation_id FROM aidb.conversations"))
	require.False(t, sees(t, third, first, id))
	require.Equal(t, "3", servertest.Value(t, admin, "SELECT count(*) FROM aidb_internal.callers WHERE name = 'anew'"), "a role, a row")
}
