package policy

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/cluster"
	"aidb/tests/servertest"
)

// governor makes a role that writes policies, with what it may read, and connects as it.
func governor(t *testing.T, name string) *pgx.Conn {
	t.Helper()
	servertest.Exec(t, server.Admin(t), "CREATE ROLE "+name+" LOGIN IN ROLE aidb_governance")
	return server.Conn(t, name)
}

// one creates a policy with one transition that stays in its state, under a condition.
func one(t *testing.T, conn *pgx.Conn, name, tool, condition string) error {
	t.Helper()
	_, err := conn.Exec(t.Context(), "SELECT aidb.create_policy($1, ARRAY[aidb.transition('start', $2, NULL, $3)])", name, tool, condition)
	return err
}

// A refund of at most the order's own total, three an hour.
func TestCondition_OverArgumentsTablesAndEvents(t *testing.T) {
	admin, ann, gov := server.Admin(t), server.Conn(t, "ann"), governor(t, "gov_cond")
	servertest.Exec(t, admin, "CREATE TABLE public.cond (id int PRIMARY KEY, total numeric); INSERT INTO public.cond VALUES (1, 100), (2, 5); GRANT SELECT ON public.cond TO gov_cond")
	require.NoError(t, one(t, gov, "cond", "refund", `(params ->> 'amount')::numeric <= (SELECT total FROM cond WHERE id = (params ->> 'id')::int)
		AND aidb.event_count(session_id, 'refund', interval '1 hour') < 3 -- three an hour`))
	servertest.Exec(t, gov, "SELECT aidb.add_transition('cond', 'start', 'undo', NULL, $$ aidb.last_event(session_id, 'refund') -> 'params' -> 'id' = params -> 'id' $$)")
	servertest.Exec(t, gov, "SELECT aidb.add_transition('cond', 'start', 'big', NULL, $$ aidb.event_sum(session_id, 'refund', 'amount') + (params ->> 'amount')::numeric <= 150 $$)")
	servertest.Exec(t, gov, "SELECT aidb.add_transition('cond', 'start', 'mine', NULL, $$ principal = params ->> 'who' $$)")
	id := servertest.Value(t, ann, "SELECT aidb.start_policy_session('cond', 'customer 7')")
	require.Equal(t, "0", servertest.Value(t, ann, "SELECT count(*) FROM aidb.session_events WHERE session_id = $1::uuid", id))

	refuse(t, ann, "DENY: undo not permitted from state start: condition ( aidb.last_event", id, "undo", `{"id": 1}`)
	require.Equal(t, "start", allow(t, ann, id, "refund", `{"id": 1, "amount": 60}`))
	refuse(t, ann, " is false", id, "refund", `{"id": 2, "amount": 60}`)
	refuse(t, ann, " is null", id, "refund", `{"id": 3, "amount": 60}`)
	refuse(t, ann, " is null", id, "refund")
	refuse(t, ann, " failed with SQLSTATE 22P02", id, "refund", `{"id": "x", "amount": 60}`)
	allow(t, ann, id, "undo", `{"id": 1}`)
	refuse(t, ann, " is false", id, "undo", `{"id": 2}`)
	allow(t, ann, id, "refund", `{"id": 1, "amount": 60}`)
	refuse(t, ann, " is false", id, "big", `{"amount": 31}`)
	allow(t, ann, id, "big", `{"amount": 30}`)
	allow(t, ann, id, "refund", `{"id": 2, "amount": 5}`)
	refuse(t, ann, " is false", id, "refund", `{"id": 2, "amount": 1}`)
	allow(t, ann, id, "mine", `{"who": "customer 7"}`)
	refuse(t, ann, " is false", id, "mine", `{"who": "customer 8"}`)

	// The same over a principal, across sessions; and what a stranger may count.
	require.Equal(t, "3", servertest.Value(t, gov, "SELECT aidb.principal_event_count('customer 7', 'refund')"))
	require.Equal(t, "125", servertest.Value(t, gov, "SELECT aidb.principal_event_sum('customer 7', 'refund', '$.amount')"))
	require.Equal(t, "3", servertest.Value(t, ann, "SELECT aidb.event_count($1::uuid, 'refund')", id))
	require.Equal(t, "0", servertest.Value(t, server.Conn(t, "bob"), "SELECT aidb.event_count($1::uuid, 'refund')", id))
	require.Equal(t, "0", servertest.Value(t, gov, "SELECT aidb.event_count($1::uuid, 'refund', interval '0')", id))

	// Replayed, each event sees what had happened before it.
	for _, row := range servertest.Rows(t, gov, "SELECT verdict, reason FROM aidb.simulate_policy('cond', '-infinity')") {
		require.Equal(t, "allow", row["verdict"], row["reason"])
	}
	servertest.Exec(t, admin, "UPDATE public.cond SET total = 59 WHERE id = 1")
	require.Equal(t, "2", servertest.Value(t, gov, "SELECT count(*) FROM aidb.simulate_policy('cond', '-infinity') WHERE tool_name = 'refund' AND verdict = 'deny' AND reason LIKE '% is false'"))
}

func TestCondition_IsCheckedWhenItIsWritten(t *testing.T) {
	admin, gov := server.Admin(t), governor(t, "gov_check")
	servertest.Exec(t, admin, "CREATE TABLE public.secret (v int); CREATE TABLE public.plain (params int)")
	servertest.Exec(t, gov, "CREATE TEMP TABLE mine (v int)")
	for condition, state := range map[string]string{
		"params ->":                           "42601",
		"no_such_column = 1":                  "42703",
		"no_such_function(params)":            "42883",
		"EXISTS (SELECT FROM no_such_table)":  "42P01",
		"EXISTS (SELECT FROM public.secret)":  "42501",
		"EXISTS (SELECT FROM mine)":           "0A000",
		"1":                                   "42804",
		"params":                              "42804",
		"true) FROM (SELECT 1":                "42601",
		"true) UNION SELECT (false":           "42601",
		"true); SELECT (true":                 "42601",
		"count(*) > 0":                        "42803",
		"generate_series(1, 2) = 1":           "42803",
		"nextval('public.s') > 0":             "42P01",
		"pg_advisory_lock(1) IS NULL":         "25006",
		"set_config('x.y', 'z', false) = 'z'": "25006",
		"EXISTS (SELECT FROM pg_catalog.pg_class FOR UPDATE)": "25006",
		"$1 IS NULL":  "42P02",
		" ":           "22023",
		"params IS $": "42601",
	} {
		err := one(t, gov, "checked", "x", condition)
		require.Error(t, err, condition)
		require.Equal(t, state, servertest.State(err), "%s: %v", condition, err)
	}
	require.Empty(t, servertest.Rows(t, admin, "SELECT FROM aidb.policies WHERE name = 'checked'"), "nothing stays of it")

	// Another governor does not get at the owner's rights.
	require.NoError(t, one(t, gov, "checked", "x", "params IS NOT NULL"))
	other := governor(t, "gov_other")
	_, err := other.Exec(t.Context(), "SELECT aidb.add_transition('checked', 'start', 'y', NULL, 'true')")
	require.Equal(t, "42501", servertest.State(err))
	require.ErrorContains(t, err, "policy 'checked' is owned by role 'gov_check'; only its owner may give it conditions")
	servertest.Exec(t, other, "SELECT aidb.add_transition('checked', 'start', 'y', NULL)")
	require.Equal(t, "params IS NOT NULL", servertest.Value(t, admin, "SELECT condition FROM aidb.tool_transitions WHERE policy = 'checked' AND tool_name = 'x'"))
}

// Whatever a condition does, the call is denied or it is not; nothing else happens.
func TestCondition_Misbehaving(t *testing.T) {
	admin, gov := server.Admin(t), governor(t, "gov_bad")
	servertest.Exec(t, admin, `CREATE SCHEMA bad AUTHORIZATION gov_bad; CREATE TABLE bad.log (v text); ALTER TABLE bad.log OWNER TO gov_bad; GRANT USAGE ON SCHEMA bad TO ann`)
	for name, body := range map[string]string{
		"writes":   "INSERT INTO bad.log VALUES ('x'); RETURN true",
		"notices":  "RAISE NOTICE 'psst %', params; RETURN true",
		"raises":   "RAISE EXCEPTION 'the secret is 42'",
		"cancels":  "RAISE EXCEPTION 'not a cancel' USING ERRCODE = '57014'",
		"setrole":  "SET ROLE postgres; RETURN true",
		"config":   "PERFORM set_config('aidb.principal', 'x', false); RETURN true",
		"notify":   "NOTIFY bad; RETURN true",
		"locks":    "PERFORM pg_advisory_lock(7); RETURN true",
		"commits":  "COMMIT; RETURN true",
		"temp":     "CREATE TEMP TABLE t (v int); RETURN true",
		"policies": "PERFORM aidb.delete_policy('bad_writes'); RETURN true",
		"guards":   "PERFORM aidb.authorize_tool_call(s, 'notices'); RETURN true",
		"slow":     "PERFORM pg_sleep(60); RETURN true",
		"loops":    "LOOP BEGIN PERFORM pg_sleep(0.05); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP",
	} {
		servertest.Exec(t, gov, "CREATE FUNCTION bad."+name+"(params jsonb, s uuid) RETURNS boolean LANGUAGE plpgsql STABLE AS $$ BEGIN "+body+"; END $$")
		servertest.Exec(t, gov, "SELECT aidb.create_policy('bad_"+name+"', ARRAY[aidb.transition('start', '"+name+"', NULL, 'bad."+name+"(params, session_id)')])")
	}
	conn, notices := server.ConnNoting(t, "ann", "aidb.tool_timeout=300ms")
	for name, text := range map[string]string{
		"writes": "SQLSTATE 0A000", "raises": "SQLSTATE P0001", "cancels": "SQLSTATE P0001", "setrole": "SQLSTATE ", "config": "SQLSTATE 42501", "notify": "SQLSTATE 0A000",
		"locks": "SQLSTATE 42501", "commits": "SQLSTATE 2D000", "temp": "SQLSTATE 0A000", "policies": "SQLSTATE 42501", "guards": "SQLSTATE 42501",
	} {
		id := session(t, conn, "bad_"+name)
		_, err := authorize(t, conn, id, name)
		require.ErrorContains(t, err, "DENY: "+name+" not permitted from state start: condition (bad."+name+"(params, session_id)) failed with "+text, name)
		require.NotContains(t, err.Error(), "secret")
		require.Empty(t, events(t, id))
	}
	require.Equal(t, "start", allow(t, conn, session(t, conn, "bad_notices"), "notices"))
	require.Empty(t, notices.Lines("NOTICE"))
	require.Equal(t, "0", servertest.Value(t, admin, "SELECT count(*) FROM bad.log"))
	require.Equal(t, "0", servertest.Value(t, admin, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 7"))

	// One that never ends has an end.
	_, err := authorize(t, conn, session(t, conn, "bad_loops"), "loops")
	require.ErrorContains(t, err, "failed with SQLSTATE 57014")
	_, err = authorize(t, conn, session(t, conn, "bad_slow"), "slow")
	require.ErrorContains(t, err, "failed with SQLSTATE 57014")
	// The user's own cancel is the user's.
	slow := server.Conn(t, "ann", "statement_timeout=200ms")
	_, err = authorize(t, slow, session(t, slow, "bad_slow"), "slow")
	require.Equal(t, "57014", servertest.State(err))
	require.NotContains(t, err.Error(), "DENY")
}

// A limit stays one when who has set it is no governor any more.
func TestCondition_OfWhoGovernedOnce(t *testing.T) {
	admin, ann, gov := server.Admin(t), server.Conn(t, "ann"), governor(t, "gov_once")
	servertest.Exec(t, admin, "GRANT aidb_users TO gov_once")
	servertest.Exec(t, gov, `SELECT aidb.create_policy('once', ARRAY[aidb.transition('start', 'pay', NULL, $$aidb.event_count(session_id, 'pay') < 1
		AND aidb.principal_event_sum(principal, 'pay', 'amount') < 1 AND aidb.last_event(session_id, 'pay') IS NULL$$)])`)
	id := session(t, ann, "once")
	allow(t, ann, id, "pay", `{"amount": 1}`)
	servertest.Exec(t, admin, "REVOKE aidb_governance FROM gov_once")
	refuse(t, ann, "is false", id, "pay", `{"amount": 1}`)
	require.Equal(t, "allow", servertest.Value(t, admin, "SELECT string_agg(verdict, ' ') FROM aidb.simulate_policy('once', '-infinity')"))
	require.Equal(t, "0", servertest.Value(t, gov, "SELECT aidb.event_count($1::uuid, 'pay')", id), "asked by themselves, it is not theirs")
}

// What a condition means does not depend on who is asking, nor on what they have planted.
func TestCondition_NothingIsPlanted(t *testing.T) {
	admin, gov := server.Admin(t), governor(t, "gov_plant")
	servertest.Exec(t, admin, "CREATE SCHEMA plant; GRANT ALL ON SCHEMA plant TO ann, gov_plant; CREATE TABLE public.plant (ok boolean); GRANT SELECT ON public.plant TO gov_plant")
	require.NoError(t, one(t, gov, "plant", "x", "EXISTS (SELECT FROM plant WHERE ok) AND length(params ->> 'a') > 3 AND upper(principal) <> 'X'"))
	ann := server.Conn(t, "ann", "search_path=plant,pg_temp,public")
	servertest.Exec(t, ann, `CREATE TEMP TABLE plant (ok boolean); INSERT INTO plant VALUES (true);
		CREATE TABLE plant.plant (ok boolean); INSERT INTO plant.plant VALUES (true); GRANT SELECT ON plant.plant TO gov_plant;
		CREATE FUNCTION plant.length(text) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 99';
		CREATE FUNCTION plant.gt(int, int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
		CREATE OPERATOR plant.> (LEFTARG = int, RIGHTARG = int, FUNCTION = plant.gt)`)
	id := session(t, ann, "plant")
	refuse(t, ann, " is false", id, "x", `{"a": "1234"}`)
	servertest.Exec(t, admin, "INSERT INTO public.plant VALUES (true)")
	refuse(t, ann, " is false", id, "x", `{"a": "123"}`)
	allow(t, ann, id, "x", `{"a": "1234"}`)
	require.Contains(t, servertest.Value(t, admin, "SELECT condition_sql FROM aidb_internal.tool_transitions WHERE policy = 'plant'"), "public.plant")

	// An owner that is gone denies.
	servertest.Exec(t, admin, "DROP OWNED BY gov_plant; DROP ROLE gov_plant")
	refuse(t, ann, "failed with SQLSTATE 42704", id, "x", `{"a": "1234"}`)
	require.NotEmpty(t, servertest.Rows(t, admin, "SELECT FROM aidb.check_policy('plant') WHERE finding LIKE '%owner does not exist%'"))
}

// Policies, sessions and events go into a dump and come out of it as they were.
func TestPolicies_SurviveDumpAndRestore(t *testing.T) {
	s := servertest.Start(t, cluster.Options{})
	dumpAndRestore(t, s)
}
