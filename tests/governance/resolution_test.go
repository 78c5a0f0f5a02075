package governance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// whoami asks as whom a tool runs. Each use must differ from the last: a call that repeats itself ends the run.
var whoami = fakemodel.Query("SELECT current_user AS me")

const (
	asRole   = "SELECT current_user AS me, 1 AS n"
	asRoleOf = "SELECT current_user AS me, 2 AS n"
)

// Three outcomes: no purpose is the caller, a live one is its role, and anything else is nobody at all.
func TestResolution_HasThreeOutcomes(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	purposeRole(t, "outcome")
	agent(t, ann, "free", "", query, whoami, fakemodel.Say("done"))
	agent(t, ann, "bound", "outcome", both, whoami, fakemodel.Say("done"))
	require.Equal(t, `[{"me": "ann"}]`, result(t, ann, "free", whoami))
	all, o := results(t, ann, "bound", whoami, fakemodel.Query("SELECT current_user AS me, session_user AS session"),
		execute("DO $$ BEGIN IF current_user <> 'outcome' THEN RAISE 'no'; END IF; END $$"))
	require.Equal(t, []string{`[{"me": "outcome"}]`, `[{"me": "outcome", "session": "ann"}]`, `{"command": "DO"}`}, all)
	require.Equal(t, "ann", servertest.Value(t, ann, "SELECT current_user"), "only for that call")
	require.Equal(t, "outcome", servertest.Value(t, ann, "SELECT role FROM aidb_internal.agent_task_queue WHERE conversation_id = $1::uuid", o.Conversation))

	for _, c := range []struct{ change, want string }{
		{"SELECT aidb.delete_purpose('outcome')", "purpose 'outcome' has been retired"},
		{"DELETE FROM aidb_internal.purpose_registry WHERE name = 'outcome'", "purpose 'outcome' is not registered"},
	} {
		servertest.Exec(t, admin, c.change)
		server.Model.Script("bound", whoami, fakemodel.Say("done"))
		asked := len(server.Model.Requests("bound"))
		for _, args := range [][]string{nil, {"read_only => true"}} {
			o, err := servertest.Ask(t.Context(), ann, "bound", "go", args...)
			require.NoError(t, err)
			require.Equal(t, c.want, o.Error)
			require.Empty(t, o.Message)
		}
		require.Len(t, server.Model.Requests("bound"), asked, "the model is not even asked")
		require.Equal(t, "DENIED", servertest.Value(t, ann, "SELECT status FROM aidb.agent_tasks ORDER BY created_at DESC LIMIT 1"))
	}
	// The superuser is no exception.
	o, err := servertest.Ask(t.Context(), admin, "bound", "go")
	require.NoError(t, err)
	require.Equal(t, "purpose 'outcome' is not registered", o.Error)
}

// A purpose is resolved once a call: what is changed meanwhile takes effect with the next one.
func TestResolution_IsOnceACall(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	purposeRole(t, "point_a")
	purposeRole(t, "point_b")
	servertest.Exec(t, admin, "SELECT aidb.create_purpose('pointer', 'point_a')")
	agent(t, ann, "pointed", "pointer", query)
	for _, c := range []struct{ change, during, after string }{
		{"SELECT aidb.update_purpose('pointer', role => 'point_b')", "point_a", "point_b"},
		{"SELECT aidb.delete_purpose('pointer')", "point_b", ""},
	} {
		h := hold(t, ann, "pointed", fakemodel.Query(asRole), fakemodel.Query(asRoleOf))
		servertest.Exec(t, admin, c.change)
		require.Equal(t, []string{`[{"me": "` + c.during + `", "n": 1}]`, `[{"me": "` + c.during + `", "n": 2}]`}, h.release(t, "pointed"))
		if c.after == "" {
			o, err := servertest.Ask(t.Context(), ann, "pointed", "go")
			require.NoError(t, err)
			require.Equal(t, "purpose 'pointer' has been retired", o.Error)
			continue
		}
		require.Equal(t, `[{"me": "`+c.after+`"}]`, result(t, ann, "pointed", whoami))
	}
	servertest.Exec(t, admin, "SELECT aidb.create_purpose('pointer', 'point_a')")
	require.Equal(t, `[{"me": "point_a"}]`, result(t, ann, "pointed", whoami), "revived, without touching the agent")
}

// That the role is there and the caller a member is looked at for each tool call anew, as it is then.
func TestAssumption_IsCheckedAtEachToolCall(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	for _, c := range []struct{ name, change, want, reason string }{
		{"revoked_m", "REVOKE revoked_m FROM ann", "current user is not a member of role 'revoked_m'; refusing to switch", "not_role_member"},
		{"dropped_m", "DROP OWNED BY dropped_m; DROP ROLE dropped_m", "role 'dropped_m' does not exist", "role_not_found"},
		{"renamed_m", "ALTER ROLE renamed_m RENAME TO renamed_away", "role 'renamed_m' does not exist", "role_not_found"},
		{"elevated_m", "ALTER ROLE elevated_m BYPASSRLS", "role 'elevated_m' bypasses row-level security; refusing to run tools as it", "pre_execution_rejected"},
		{"outside_m", "GRANT pg_read_server_files TO outside_m", "role 'outside_m' is a member of pg_read_server_files; refusing to run tools as it", "pre_execution_rejected"},
		{"parent_m", "ALTER ROLE parent_of_m SUPERUSER", "role 'parent_m' is a member of a superuser; refusing to run tools as it", "pre_execution_rejected"},
		{"function_m", "REVOKE EXECUTE ON FUNCTION aidb.run_sql_query(text) FROM function_m", "permission denied for function run_sql_query", "engine_privilege_denied"},
		{
			"anew_m", "DROP OWNED BY anew_m; DROP ROLE anew_m; CREATE ROLE anew_m; GRANT anew_m TO ann; GRANT EXECUTE ON FUNCTION aidb.run_sql_query(text) TO anew_m",
			"role 'anew_m' is not the one that the purpose was set to; refusing to switch", "role_not_found",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			purposeRole(t, c.name)
			agent(t, ann, c.name, c.name, query)
			if c.name == "parent_m" {
				servertest.Exec(t, admin, "CREATE ROLE parent_of_m; GRANT parent_of_m TO parent_m")
			}
			h := hold(t, ann, c.name, fakemodel.Query(asRole), fakemodel.Query(asRoleOf))
			servertest.Exec(t, admin, c.change)
			all := h.release(t, c.name)
			require.Equal(t, `[{"me": "`+c.name+`", "n": 1}]`, all[0])
			requireRefused(t, ann, all[1], c.want, c.reason)
			if c.name == "parent_m" {
				servertest.Exec(t, admin, "DROP ROLE parent_of_m")
			}
		})
	}
}

// The same while a tool call itself is under way: the sleep tool keeps the run inside the server.
func TestAssumption_IsCheckedAfterASleep(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	purposeRole(t, "sleeper")
	agent(t, ann, "sleeper", "sleeper", query)
	pid := int(ann.PgConn().PID())
	server.Model.Script("sleeper", fakemodel.Query(asRole), fakemodel.Call("sleep", map[string]any{"seconds": 1}),
		fakemodel.Query(asRoleOf), fakemodel.Say("done"))
	done := make(chan error, 1)
	ctx := t.Context()
	go func() {
		_, err := servertest.Ask(ctx, ann, "sleeper", "go")
		done <- err
	}()
	require.NoError(t, server.Model.WaitFor(ctx, "the sleep", func() bool {
		return len(server.Model.Requests("sleeper")) == 2 && server.Model.InFlight("sleeper") == 0
	}))
	servertest.Exec(t, admin, "REVOKE sleeper FROM ann")
	require.Equal(t, "active", servertest.Value(t, admin, "SELECT state FROM pg_stat_activity WHERE pid = $1", pid), "the call still sleeps")
	require.NoError(t, <-done)
	all := seen("sleeper")
	require.Equal(t, `{"slept": 1}`, all[1])
	requireRefused(t, ann, all[2], "current user is not a member of role 'sleeper'; refusing to switch", "not_role_member")
}

// A role that was dropped and made anew under the name is another one, until a governor says otherwise.
func TestRecreatedRole_IsFlaggedAndNotRebound(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	purposeRole(t, "reborn")
	agent(t, ann, "reborn", "reborn", query)
	require.Equal(t, `[{"me": "reborn"}]`, result(t, ann, "reborn", whoami))
	servertest.Exec(t, admin, "DROP OWNED BY reborn; DROP ROLE reborn; CREATE ROLE reborn; GRANT reborn TO ann; GRANT EXECUTE ON FUNCTION aidb.run_sql_query(text) TO reborn")
	text := result(t, ann, "reborn", whoami)
	requireRefused(t, ann, text, "role 'reborn' is not the one that the purpose was set to; refusing to switch", "role_not_found")
	findings := servertest.Rows(t, admin, "SELECT * FROM aidb.check_purpose('reborn') WHERE severity = 'error'")
	require.Len(t, findings, 1)
	require.Contains(t, findings[0]["finding"], "was dropped and created anew")
	servertest.Exec(t, admin, findings[0]["advice"].(string))
	require.Empty(t, servertest.Rows(t, admin, "SELECT * FROM aidb.check_purpose('reborn') WHERE severity = 'error'"))
	require.Equal(t, `[{"me": "reborn"}]`, result(t, ann, "reborn", whoami))
}

// A role that did not exist when the purpose was made is accepted when it comes: there was none to tell it from.
func TestLateRole_IsAccepted(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	servertest.Exec(t, admin, "SELECT aidb.create_purpose('late', 'late')")
	agent(t, ann, "late", "late", query)
	requireRefused(t, ann, result(t, ann, "late", whoami), "role 'late' does not exist", "role_not_found")
	servertest.Exec(t, admin, "CREATE ROLE late; GRANT late TO ann; GRANT EXECUTE ON FUNCTION aidb.run_sql_query(text) TO late")
	require.Equal(t, `[{"me": "late"}]`, result(t, ann, "late", whoami))
}

// Membership through another role counts, whether or not it is inherited.
func TestMembership_MayBeInherited(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	servertest.Exec(t, admin, "CREATE ROLE chain_top; CREATE ROLE chain_mid NOINHERIT; CREATE ROLE chain_low NOINHERIT LOGIN IN ROLE aidb_users; "+
		"GRANT chain_top TO chain_mid; GRANT chain_mid TO chain_low; GRANT EXECUTE ON FUNCTION aidb.run_sql_query(text) TO chain_top; "+
		"SELECT aidb.create_purpose('chain', 'chain_top')")
	agent(t, ann, "chained", "chain", query)
	// aidb_users itself comes by SET ROLE for a NOINHERIT role, so its rights are given to it directly.
	servertest.Exec(t, admin, "GRANT USAGE ON SCHEMA aidb, aidb_internal TO chain_low; GRANT SELECT ON aidb.decisions TO chain_low; "+
		"GRANT EXECUTE ON FUNCTION aidb.agent_converse(text, text, text, boolean, jsonb, boolean) TO chain_low")
	low := server.Conn(t, "chain_low")
	require.Equal(t, `[{"me": "chain_top"}]`, result(t, low, "chained", whoami))
	requireRefused(t, ann, result(t, ann, "chained", whoami), "current user is not a member of role 'chain_top'; refusing to switch", "not_role_member")
}

// Membership is all that is looked at. From 16 on there is one by which nothing is inherited and SET ROLE is not allowed: it
// lets somebody use a role through its agents and in no other way.
func TestMembership_IsEnoughWithoutSet(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	purposeRole(t, "agents_only")
	if servertest.Value(t, admin, "SELECT current_setting('server_version_num')::int >= 160000") == "true" {
		servertest.Exec(t, admin, "REVOKE agents_only FROM ann; GRANT agents_only TO ann WITH INHERIT FALSE, SET FALSE")
		requireError(t, ann, "42501", `permission denied to set role "agents_only"`, "SET ROLE agents_only")
	}
	agent(t, ann, "agents_only", "agents_only", query)
	require.Equal(t, "allowed", explained(t, ann, "agents_only")["run_sql_query as agents_only"])
	require.Equal(t, `[{"me": "agents_only"}]`, result(t, ann, "agents_only", whoami))
}

// What a purpose's role inherits, it may; where it would have to SET ROLE, it may not.
func TestSiblingRoles_WorkByInheritanceOnly(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	purposeRole(t, "heir")
	servertest.Exec(t, admin, "CREATE ROLE heirloom; CREATE TABLE public.heirlooms AS SELECT 'clock' AS what; GRANT SELECT ON public.heirlooms TO heirloom; GRANT heirloom TO heir")
	agent(t, ann, "heir", "heir", both)
	read := fakemodel.Query("SELECT what FROM public.heirlooms")
	require.Equal(t, `[{"what": "clock"}]`, result(t, ann, "heir", read))
	text := result(t, ann, "heir", execute("SET ROLE heirloom"))
	requireRefused(t, ann, text, `cannot set parameter "role" within security-definer function`, "escalation_blocked")

	// From 16 on whether a membership is inherited is said when it is granted.
	servertest.Exec(t, admin, "REVOKE heirloom FROM heir; ALTER ROLE heir NOINHERIT; GRANT heirloom TO heir")
	d := requireRefused(t, ann, result(t, ann, "heir", read), "permission denied for table heirlooms", "engine_privilege_denied")
	require.Equal(t, "heirlooms", d["object"])
}
