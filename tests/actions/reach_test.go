package actions

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aidb/tests/cluster"
	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// The switch stops a call that is running: its statement began long before, and its next tool call is refused. Reading goes on.
func TestSwitch_StopsARunningCall(t *testing.T) {
	goods(t, "switched")
	sqlTool(t, "switched_add", "INSERT INTO public.switched SELECT 100 + ${id}", "risk => 'safe'")
	ann, admin := server.Conn(t, "ann"), server.Admin(t)
	server.Agent(t, ann, "switched", []string{"switched_add", "run_sql_query"}, fakemodel.Say("unused"))
	defer apply(t, admin, "ALTER SYSTEM RESET aidb.actions")
	refused := 0
	server.Model.Answer("switched", func(r fakemodel.Request) fakemodel.Reply {
		turn := r.Turn()
		n := len(turn)
		switch {
		case n == 0:
			return use("switched_add", 0)
		case n == 1:
			apply(t, admin, "ALTER SYSTEM SET aidb.actions = off")
		case strings.Contains(turn[n-1].Result, "actions are switched off"):
			refused = n
			return fakemodel.Query("SELECT count(*) AS n FROM public.switched")
		case refused > 0:
			return fakemodel.Say("over: " + turn[n-1].Result)
		}
		return use("switched_add", n)
	})
	o := servertest.MustAsk(t, ann, "switched", "go")
	require.Equal(t, fmt.Sprintf(`over: [{"n": %d}]`, 5+refused-1), o.Message)
	// for a person's own call too
	_, err := ann.Exec(t.Context(), "SELECT aidb.run_tool('switched_add', '{\"id\": 50}')")
	require.Equal(t, "42501", servertest.State(err))
	_, err = ann.Exec(t.Context(), "SELECT aidb.run_sql_query('SELECT 1')")
	require.NoError(t, err)
}

// What governance says while a call runs holds for its next tool call: of the class, of the agent, of its tools.
func TestClassAndAgent_AreReadAtEachCall(t *testing.T) {
	goods(t, "fresh")
	sqlTool(t, "fresh_add", "INSERT INTO public.fresh SELECT 100 + ${id}", "risk => 'safe'")
	ann, admin := server.Conn(t, "ann"), server.Admin(t)
	server.Agent(t, ann, "fresh", []string{"fresh_add"}, fakemodel.Say("unused"))
	for change, want := range map[string]string{
		"SELECT aidb.classify_tool('fresh_add', 'forbidden')":                                                                   "tool 'fresh_add' is forbidden",
		"SELECT aidb.classify_tool('fresh_add', 'confirm')":                                                                     "awaiting_confirmation",
		"SELECT * FROM aidb.update_agent('fresh', enabled => false)":                                                            "agent 'fresh' is disabled",
		"SELECT * FROM aidb.update_agent('fresh', tools => '{run_sql_query}')":                                                  "not one of the agent's any more",
		"SELECT aidb.update_sql_tool('fresh_add', sql_statement => 'UPDATE public.fresh SET state = ''new'' WHERE id = ${id}')": `{"rows_affected": 1}`,
	} {
		server.Model.Answer("fresh", func(r fakemodel.Request) fakemodel.Reply {
			switch len(r.Turn()) {
			case 0:
				return fakemodel.Call("sleep", map[string]any{"seconds": 0})
			case 1:
				servertest.Exec(t, admin, change)
				return use("fresh_add", 1)
			}
			return fakemodel.Say(r.Turn()[1].Result)
		})
		// the caller's snapshot is older than the change
		servertest.Exec(t, ann, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT")
		require.Contains(t, servertest.MustAsk(t, ann, "fresh", "go").Message, want, change)
		servertest.Exec(t, ann, "COMMIT")
		servertest.Exec(t, admin, "SELECT aidb.classify_tool('fresh_add', NULL); SELECT * FROM aidb.update_agent('fresh', enabled => true, tools => '{fresh_add}')")
	}
	require.Equal(t, "1", count(t, "fresh", "new"))
	for _, p := range waiting(t, ann) {
		servertest.Exec(t, ann, "SELECT aidb.reject_action($1::uuid)", p.id)
	}
}

// unclassified_tools, and what becomes of a class when its tool changes.
func TestUnclassified(t *testing.T) {
	goods(t, "plain")
	sqlTool(t, "plain_set", "UPDATE public.plain SET state = 'set' WHERE id = ${id}")
	ann, admin := server.Conn(t, "ann"), server.Admin(t)
	server.Agent(t, ann, "plain", []string{"plain_set"}, use("plain_set", 1), fakemodel.Say("x"))
	ask := func(setting string) string {
		servertest.Exec(t, admin, "ALTER ROLE ann SET aidb.unclassified_tools = "+setting)
		defer servertest.Exec(t, admin, "ALTER ROLE ann RESET aidb.unclassified_tools")
		server.Model.Script("plain", use("plain_set", 1), fakemodel.Say("x"))
		conn := server.Conn(t, "ann")
		servertest.MustAsk(t, conn, "plain", "go")
		for _, p := range waiting(t, conn) {
			servertest.Exec(t, conn, "SELECT aidb.reject_action($1::uuid)", p.id)
		}
		return lastResult(t, "plain")
	}
	require.Contains(t, ask("deny"), "not classified")
	require.Contains(t, ask("confirm"), "awaiting_confirmation")
	require.Contains(t, ask("allow"), "rows_affected")
	servertest.Exec(t, admin, "SELECT aidb.classify_tool('plain_set', 'safe')")
	require.Contains(t, ask("deny"), "rows_affected")
	servertest.Exec(t, admin, "SELECT aidb.update_sql_tool('plain_set', description => 'other')")
	require.Contains(t, ask("deny"), "not classified", "what was judged harmless was the tool as it was")
	servertest.Exec(t, admin, "SELECT aidb.classify_tool('plain_set', 'forbidden'); SELECT aidb.delete_tool('plain_set')")
	sqlTool(t, "plain_set", "UPDATE public.plain SET state = 'set' WHERE id = ${id}", "risk => 'safe'")
	require.Contains(t, ask("allow"), "forbidden", "made anew under its name it is what it was")
	for sql, state := range map[string]string{
		"SELECT aidb.classify_tool('plain_set', 'read')": "22023", "SELECT aidb.classify_tool('plain_set', 'so so')": "22023", "SELECT aidb.classify_tool('no such', 'safe')": "42704",
	} {
		_, err := admin.Exec(t.Context(), sql)
		require.Equal(t, state, servertest.State(err), sql)
	}
	_, err := ann.Exec(t.Context(), "SELECT aidb.classify_tool('plain_set', 'safe')")
	require.Equal(t, "42501", servertest.State(err))
}

// From inside a tool call nobody changes what decides how far agents reach: every function of the extension that is VOLATILE and
// not itself a tool is tried, found in the catalog and not listed here, and the tables behind, as a superuser, in nested functions,
// views, triggers and DO blocks.
func TestOutOfReach(t *testing.T) {
	admin := server.Conn(t, "postgres", "aidb.allow_superuser_tools=on")
	servertest.Exec(t, admin, `CREATE TABLE public.reach (id int); CREATE TABLE public.reach_hits (n int)`)
	call := func(sql string) error {
		_, err := admin.Exec(t.Context(), "SELECT aidb.execute_sql($1)", sql)
		return err
	}
	functions := servertest.Rows(t, admin, `SELECT p.oid::regprocedure::text AS signature, p.proname::text AS name,
		(SELECT coalesce(string_agg('NULL::' || format_type(u.t, NULL), ', ' ORDER BY u.n), '') FROM unnest(p.proargtypes) WITH ORDINALITY u (t, n)) AS args
		FROM pg_proc p WHERE p.pronamespace = 'aidb'::regnamespace AND p.provolatile = 'v' ORDER BY 1`)
	require.Greater(t, len(functions), 20)
	for i, f := range functions {
		direct := fmt.Sprintf("SELECT aidb.%s(%s)", f["name"], f["args"])
		inner := fmt.Sprintf("public.reach_%d", i)
		servertest.Exec(t, admin, fmt.Sprintf(`CREATE FUNCTION %[1]s() RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS $f$ BEGIN EXECUTE %[2]s; RETURN 1; END $f$;
			CREATE VIEW %[1]s_view AS SELECT %[1]s() AS n;
			CREATE FUNCTION %[1]s_trigger() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN PERFORM %[1]s(); RETURN new; END $f$;
			CREATE TABLE %[1]s_table (id int); CREATE TRIGGER t BEFORE INSERT ON %[1]s_table FOR EACH ROW EXECUTE FUNCTION %[1]s_trigger()`, inner, quote(direct)))
		for _, sql := range []string{
			direct, "SELECT " + inner + "()", "SELECT * FROM " + inner + "_view", "INSERT INTO " + inner + "_table VALUES (1)",
			"DO $d$ BEGIN PERFORM " + inner + "(); END $d$",
			"DO $d$ BEGIN PERFORM " + inner + "(); EXCEPTION WHEN OTHERS THEN INSERT INTO public.reach_hits VALUES (1); RAISE; END $d$",
		} {
			err := call(sql)
			require.Equal(t, "42501", servertest.State(err), "%s: %v", sql, err)
			require.ErrorContains(t, err, "cannot be called from inside a tool call", sql)
		}
	}
	tables := servertest.Rows(t, admin, `SELECT c.oid::regclass::text AS name FROM pg_class c WHERE c.relnamespace = 'aidb_internal'::regnamespace AND c.relkind = 'r' ORDER BY 1`)
	require.Greater(t, len(tables), 8)
	for _, r := range tables {
		for _, sql := range []string{"DELETE FROM %s", "TRUNCATE %s CASCADE", "INSERT INTO %[1]s OVERRIDING SYSTEM VALUE SELECT * FROM %[1]s", "WITH d AS (DELETE FROM %s RETURNING 1) SELECT count(*) FROM d"} {
			err := call(fmt.Sprintf(sql, r["name"]))
			require.Equal(t, "42501", servertest.State(err), "%s of %s: %v", sql, r["name"], err)
		}
	}
	for _, sql := range []string{
		"SELECT * FROM aidb_internal.action_tokens", "SELECT * FROM aidb_internal.model_credentials", "SELECT * FROM aidb_internal.mcp_credentials",
		"SELECT * FROM aidb_internal.mcp_authorizations", "GRANT ALL ON ALL TABLES IN SCHEMA aidb_internal TO PUBLIC",
	} {
		require.Equal(t, "42501", servertest.State(call(sql)), sql)
	}
	require.NoError(t, call("SELECT count(*) FROM aidb.agents"), "reading what everybody may read")
	reachCatalogs(t, call)
	for _, setting := range []string{"aidb.actions", "aidb.unclassified_tools", "aidb.principal", "aidb.confirmation_ttl"} {
		require.Equal(t, "42501", servertest.State(call("SET "+setting+" = 'on'")), setting)
		require.Equal(t, "42501", servertest.State(call("SELECT set_config('"+setting+"', 'on', false)")), setting)
	}
	require.Equal(t, "0", servertest.Value(t, admin, "SELECT count(*) FROM public.reach_hits"))
}

// reachCatalogs tries to change what the server itself keeps: memberships, settings of roles, what functions and triggers are, and
// the order of events.
func reachCatalogs(t *testing.T, call func(string) error) {
	t.Helper()
	servertest.Exec(t, server.Admin(t), `CREATE SEQUENCE public.reach_own;
		CREATE FUNCTION public.reach_set(regclass) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $f$ DECLARE n bigint; BEGIN n := setval($1, 7); RETURN n; END $f$;
		CREATE RULE reach_rule AS ON UPDATE TO public.reach DO INSTEAD UPDATE pg_catalog.pg_authid SET rolsuper = true;
		CREATE VIEW public.reach_members AS SELECT * FROM pg_catalog.pg_auth_members`)
	for _, sql := range []string{
		"INSERT INTO pg_catalog.pg_db_role_setting VALUES (0, 0, '{aidb.actions=on}')", "UPDATE pg_catalog.pg_proc SET provolatile = 's' WHERE proname = 'create_purpose'",
		"DELETE FROM pg_catalog.pg_trigger", "INSERT INTO pg_catalog.pg_auth_members SELECT * FROM pg_catalog.pg_auth_members", "DELETE FROM public.reach_members",
		"UPDATE public.reach SET id = 1", "WITH w AS (UPDATE pg_catalog.pg_class SET relname = relname RETURNING 1) SELECT count(*) FROM w",
		"DO $d$ BEGIN EXECUTE 'UPDATE pg_catalog.pg_authid SET rolsuper = true'; EXCEPTION WHEN OTHERS THEN INSERT INTO public.reach_hits VALUES (1); RAISE; END $d$",
		"TRUNCATE pg_catalog.pg_statistic", "UPDATE pg_catalog.pg_settings SET setting = 'off' WHERE name = 'aidb.actions'", "DELETE FROM aidb_otel.traces",
		"SELECT setval('aidb_internal.session_events_id_seq', 1)", "SELECT public.reach_set('aidb_internal.session_events_id_seq')",
		"DO $d$ BEGIN PERFORM setval('aidb_internal.session_events_id_seq', 1, false); END $d$",
		"ALTER SYSTEM SET aidb.actions = on", "ALTER ROLE ann SET aidb.principal = 'x'", "ALTER DATABASE postgres SET aidb.actions = on", "GRANT aidb_governance TO ann",
		"ALTER FUNCTION aidb.create_purpose STABLE", "CREATE FUNCTION public.create_purpose(text, text) RETURNS void STABLE LANGUAGE c AS '$libdir/aidb', 'aidb_owner_call'",
		"ALTER TABLE aidb_internal.policies DISABLE TRIGGER ALL", "ALTER TABLE aidb_internal.purpose_registry INHERIT public.reach", "LISTEN aidb_action", "NOTIFY aidb_action",
	} {
		err := call(sql)
		require.Equal(t, "42501", servertest.State(err), "%s: %v", sql, err)
	}
	require.NoError(t, call("SELECT nextval('public.reach_own')"))
}

// Whatever a function makes of arguments that are NULL, the server lives: those behind the API are a superuser's to call.
func TestFunctions_OfNothing(t *testing.T) {
	admin := server.Conn(t, "postgres", "statement_timeout=1s", "client_min_messages=error")
	for _, r := range servertest.Rows(t, admin, `SELECT format('SELECT %s(%s)', p.oid::regproc, (SELECT string_agg('NULL::' || format_type(u.t, NULL), ', ' ORDER BY u.n)
			FROM unnest(p.proargtypes) WITH ORDINALITY u (t, n))) AS sql
		FROM pg_proc p WHERE p.pronamespace IN ('aidb'::regnamespace, 'aidb_internal'::regnamespace) AND p.pronargs > 0 AND p.prorettype <> 'trigger'::regtype ORDER BY 1`) {
		_, err := admin.Exec(t.Context(), r["sql"].(string))
		require.False(t, admin.IsClosed(), "%s: %v", r["sql"], err)
	}
}

// A connection that is lost in the middle of a confirmation leaves it as it was.
func TestConfirm_LostConnection(t *testing.T) {
	goods(t, "lost")
	sqlTool(t, "lost_slow", "UPDATE public.lost SET state = 'slow' WHERE id <= ${id} AND pg_sleep(0.02) IS NOT NULL", "risk => 'confirm'")
	ann := server.Conn(t, "ann")
	server.Agent(t, ann, "lost", []string{"lost_slow"}, use("lost_slow", 5), fakemodel.Say("?"))
	servertest.MustAsk(t, ann, "lost", "go")
	p := theOne(t, ann)
	other := server.Conn(t, "ann")
	pid := servertest.Value(t, other, "SELECT pg_backend_pid()")
	done := make(chan error, 1)
	go func() {
		_, err := other.Exec(context.Background(), "BEGIN; SELECT * FROM aidb.confirm_action('"+p.id+"', '"+p.token+"'); SELECT pg_sleep(60)")
		done <- err
	}()
	require.True(t, cluster.Wait(time.Minute, func() bool {
		return servertest.Value(t, server.Admin(t), "SELECT wait_event = 'PgSleep' AND query LIKE '%pg_sleep(60)%' FROM pg_stat_activity WHERE pid = "+pid) == "true"
	}), "the confirmation does not end")
	servertest.Exec(t, server.Admin(t), "SELECT pg_terminate_backend("+pid+")")
	require.Error(t, <-done)
	require.Equal(t, p, theOne(t, ann))
	require.Equal(t, "SUCCESS", mustConfirm(t, ann, p)[0].Status)
	require.Equal(t, "5", count(t, "lost", "slow"))
}
