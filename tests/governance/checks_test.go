package governance

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/servertest"
)

// findings are what a check has to say, as "severity: finding".
func findings(t *testing.T, conn *pgx.Conn, check, name string) []string {
	t.Helper()
	var list []string
	for _, r := range servertest.Rows(t, conn, "SELECT severity, finding FROM aidb."+check+"($1)", name) {
		list = append(list, r["severity"].(string)+": "+r["finding"].(string))
	}
	return list
}

// temporary is said of each role as long as PUBLIC may make temporary tables, which is PostgreSQL's default.
const temporary = "may create temporary objects (a tool call may not; a session of the role may)"

// Each thing that makes a role a poor choice is found, and the advice mends it.
func TestCheckRole_FindsAndMends(t *testing.T) {
	admin := server.Admin(t)
	servertest.Exec(t, admin, "CREATE ROLE cr_clean; CREATE TABLE public.cr_table (n int); CREATE SCHEMA cr_schema; CREATE ROLE cr_other; CREATE ROLE cr_super SUPERUSER")
	require.Equal(t, []string{"notice: " + temporary}, findings(t, admin, "check_role", "cr_clean"))
	require.Equal(t, []string{"error: role 'cr_nobody' does not exist"}, findings(t, admin, "check_role", "cr_nobody"))
	for name, c := range map[string]struct{ make, want string }{
		"superuser":  {"ALTER ROLE cr_it SUPERUSER", "error: is a superuser: nothing confines it"},
		"bypass":     {"ALTER ROLE cr_it BYPASSRLS", "error: bypasses row-level security"},
		"createrole": {"ALTER ROLE cr_it CREATEROLE", "error: may create roles"},
		"replicate":  {"ALTER ROLE cr_it REPLICATION", "error: may replicate"},
		"files":      {"GRANT pg_write_server_files TO cr_it", "error: is a member of pg_write_server_files, which reaches outside the database"},
		"member":     {"GRANT cr_super TO cr_it", "error: is a member of superuser cr_super"},
		"login":      {"ALTER ROLE cr_it LOGIN", "warning: can log in with a password: whoever knows it is outside the sandbox"},
		"admin":      {"GRANT cr_other TO cr_it WITH ADMIN OPTION", "warning: may grant role cr_other to others (ADMIN OPTION)"},
		"database":   {"GRANT CREATE ON DATABASE aidb TO cr_it", "warning: may create schemas and extensions in this database"},
		"schema":     {"GRANT CREATE ON SCHEMA cr_schema TO cr_it", "warning: may create objects in schema cr_schema, where others may find them"},
	} {
		t.Run(name, func(t *testing.T) {
			servertest.Exec(t, admin, "CREATE ROLE cr_it; "+c.make)
			defer servertest.Exec(t, admin, "DROP OWNED BY cr_it; DROP ROLE cr_it")
			rows := servertest.Rows(t, admin, "SELECT severity, finding, advice FROM aidb.check_role('cr_it')")
			require.Equal(t, c.want, rows[0]["severity"].(string)+": "+rows[0]["finding"].(string), "worst first")
			servertest.Exec(t, admin, rows[0]["advice"].(string))
			require.Equal(t, []string{"notice: " + temporary}, findings(t, admin, "check_role", "cr_it"))
		})
	}
	for name, c := range map[string]struct{ make, want string }{
		"owns":    {"ALTER TABLE public.cr_table OWNER TO cr_it", "warning: owns 1 tables, views or sequences: code of its triggers, defaults, policies and checks runs with the rights of whoever uses it"},
		"trigger": {"GRANT ALL ON public.cr_table TO cr_it", "warning: may put triggers on 1 tables of others"},
		"dblink":  {"CREATE EXTENSION dblink", "warning: may call public.dblink_exec(text,text), which reaches other servers or files"},
	} {
		t.Run(name, func(t *testing.T) {
			servertest.Exec(t, admin, "CREATE ROLE cr_it; "+c.make)
			defer servertest.Exec(t, admin, "ALTER TABLE public.cr_table OWNER TO postgres; DROP EXTENSION IF EXISTS dblink; DROP OWNED BY cr_it; DROP ROLE cr_it")
			require.Contains(t, findings(t, admin, "check_role", "cr_it"), c.want)
		})
	}
}

// check_purpose prints what is missing as statements; when they have been run, it has nothing left to say but what is only
// good to know, and the agent works.
func TestCheckPurpose_PrintsTheGrants(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	servertest.Exec(t, admin, "CREATE ROLE cp_role; SELECT aidb.create_purpose('cp', 'cp_role')")
	require.Equal(t, []string{"warning: role cp_role has no members: only superusers may call agents with this purpose", "notice: role cp_role: " + temporary,
		"notice: no agent has this purpose"}, findings(t, admin, "check_purpose", "cp"))
	servertest.Exec(t, admin, "GRANT cp_role TO ann")
	agent(t, ann, "cp_one", "cp", append([]string{"catalog_list_objects", "list_models"}, both...))
	agent(t, ann, "cp_two", "cp", query)

	rows := servertest.Rows(t, ann, "SELECT * FROM aidb.check_purpose('cp') WHERE severity IN ('error', 'warning')")
	var grants, missing []string
	for _, r := range rows {
		missing = append(missing, r["agent"].(string)+" "+r["tool"].(string)+": "+r["finding"].(string))
		grants = append(grants, r["advice"].(string))
	}
	require.Equal(t, []string{
		"cp_one catalog_list_objects: role cp_role may not use tool catalog_list_objects", "cp_one execute_sql: role cp_role may not use tool execute_sql",
		"cp_one list_models: role cp_role may not use tool list_models", "cp_one run_sql_query: role cp_role may not use tool run_sql_query",
		"cp_two run_sql_query: role cp_role may not use tool run_sql_query",
	}, missing)
	require.Contains(t, grants, "GRANT EXECUTE ON FUNCTION aidb.run_sql_query(text) TO cp_role;")
	servertest.Exec(t, admin, strings.Join(grants, "\n"))
	require.Empty(t, servertest.Rows(t, ann, "SELECT * FROM aidb.check_purpose('cp') WHERE severity IN ('error', 'warning')"))
	servertest.Exec(t, admin, "REVOKE TEMPORARY ON DATABASE aidb FROM PUBLIC")
	require.Empty(t, findings(t, ann, "check_purpose", "cp"))
	servertest.Exec(t, admin, "GRANT TEMPORARY ON DATABASE aidb TO PUBLIC")
	require.Equal(t, `[{"me": "cp_role"}]`, result(t, ann, "cp_two", whoami))
}

func TestCheckPurpose_SeesWhatBecameOfIt(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	require.Equal(t, []string{"error: purpose 'cp_none' is not registered"}, findings(t, admin, "check_purpose", "cp_none"))
	purposeRole(t, "cp_gone")
	agent(t, ann, "cp_gone", "cp_gone", query)
	servertest.Exec(t, admin, "DROP OWNED BY cp_gone; DROP ROLE cp_gone")
	require.Equal(t, []string{"error: role cp_gone: role 'cp_gone' does not exist"}, findings(t, admin, "check_purpose", "cp_gone"))
	servertest.Exec(t, admin, "SELECT aidb.delete_purpose('cp_gone')")
	require.Equal(t, "error: purpose 'cp_gone' has been retired", findings(t, admin, "check_purpose", "cp_gone")[0])
}

// Who may ask: users see what their agents lack; what a role could do is for those who govern or audit.
// A statement that cannot be analysed is no grant that is missing, and nobody's code is run to find out.
func TestCheckPurpose_SaysWhatItCannotCheck(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	servertest.Exec(t, admin, `CREATE ROLE cu_role; GRANT cu_role TO ann; SELECT aidb.create_purpose('cu', 'cu_role'); CREATE SCHEMA cu AUTHORIZATION ann;
		CREATE TABLE public.cu_seen (who text); GRANT INSERT ON public.cu_seen TO PUBLIC`)
	servertest.Exec(t, ann, `CREATE FUNCTION cu.spy(text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN INSERT INTO public.cu_seen VALUES (current_user); RETURN true; END $$;
		CREATE DOMAIN cu.watched AS text CHECK (cu.spy(VALUE));
		SELECT aidb.create_sql_tool('cu_literal', 'x', 'SELECT ''{x}''::cu.watched[] AS v', '[]', read_only => false);
		SELECT aidb.create_sql_tool('cu_gone', 'x', 'SELECT * FROM cu.gone', '[]', read_only => false)`)
	require.Empty(t, servertest.Rows(t, ann, "SELECT * FROM aidb.create_agent('cu', 'x', 'none', tools => '{cu_literal,cu_gone}', purpose => 'cu')"))
	said := findings(t, admin, "check_purpose", "cu")
	require.Contains(t, said, "error: the statement cannot be checked: the statement cannot be looked at without running function spy")
	require.Contains(t, said, `error: the statement cannot be checked: relation "cu.gone" does not exist`)
	require.Empty(t, servertest.Value(t, admin, "SELECT string_agg(who, ',') FROM public.cu_seen"))
}

func TestChecks_AreForThoseWhoGovernOrAudit(t *testing.T) {
	admin := server.Admin(t)
	servertest.Exec(t, admin, "CREATE ROLE gov_check LOGIN IN ROLE aidb_governance; CREATE ROLE aud_check LOGIN IN ROLE aidb_auditor")
	for _, role := range []string{"gov_check", "aud_check"} {
		conn := server.Conn(t, role)
		require.NotEmpty(t, findings(t, conn, "check_role", "postgres"))
		require.NotEmpty(t, findings(t, conn, "check_purpose", "nothing"))
	}
	requireError(t, server.Conn(t, "ann"), "42501", "permission denied for function check_role", "SELECT * FROM aidb.check_role('ann')")
}

// explained is what explain_agent says, as "tool as role: true" or the reason.
func explained(t *testing.T, conn *pgx.Conn, agent string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, r := range servertest.Rows(t, conn, "SELECT * FROM aidb.explain_agent($1)", agent) {
		text := "allowed"
		if r["allowed"] != true {
			text, _ = r["reason"].(string)
		}
		all[r["tool"].(string)+" as "+r["runs_as"].(string)] = text
	}
	return all
}

func TestExplainAgent_TellsWhatWouldRunAsWhom(t *testing.T) {
	admin, ann, bob := server.Admin(t), server.Conn(t, "ann"), server.Conn(t, "bob")
	purposeRole(t, "ex")
	agent(t, ann, "ex_bound", "ex", append([]string{"list_models"}, both...), whoami)
	agent(t, ann, "ex_free", "", both, whoami)
	before := counts(t)
	lacks := "role 'ex' lacks privileges: EXECUTE on function aidb.list_models()"

	// A member, somebody else, a superuser.
	require.Equal(t, map[string]string{"run_sql_query as ex": "allowed", "execute_sql as ex": "allowed", "list_models as ex": lacks, "sleep as ex": "allowed"}, explained(t, ann, "ex_bound"))
	stranger := "current user is not a member of role 'ex'"
	require.Equal(t, map[string]string{"run_sql_query as ex": stranger, "execute_sql as ex": stranger, "list_models as ex": stranger, "sleep as ex": stranger}, explained(t, bob, "ex_bound"))
	require.Equal(t, explained(t, ann, "ex_bound"), explained(t, admin, "ex_bound"))

	// Without a purpose.
	needs := "tool 'execute_sql' needs an agent with a purpose"
	require.Equal(t, map[string]string{"run_sql_query as bob": "allowed", "execute_sql as bob": needs, "sleep as bob": "allowed"}, explained(t, bob, "ex_free"))
	require.Equal(t, map[string]string{"run_sql_query as postgres": "allowed", "execute_sql as postgres": needs, "sleep as postgres": "allowed"}, explained(t, admin, "ex_free"))

	// What stops the whole agent.
	servertest.Exec(t, admin, "SELECT aidb.delete_purpose('ex')")
	for tool, reason := range explained(t, ann, "ex_bound") {
		require.Equal(t, "purpose 'ex' has been retired", reason, tool)
	}
	servertest.Exec(t, admin, "SELECT aidb.create_purpose('ex', 'ex_nobody')")
	require.Equal(t, "role 'ex_nobody' does not exist", explained(t, ann, "ex_bound")["run_sql_query as ex_nobody"])
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('ex_free', enabled => false)")
	require.Equal(t, "agent 'ex_free' is disabled", explained(t, ann, "ex_free")["run_sql_query as ann"])
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('ex_free', enabled => true, model => 'ex_no_model')")
	require.Equal(t, "Model not found: ex_no_model", explained(t, ann, "ex_free")["run_sql_query as ann"])
	requireError(t, ann, "42704", "agent 'nobody' not found", "SELECT * FROM aidb.explain_agent('nobody')")

	// Nothing was run, and nothing written down.
	require.Equal(t, before, counts(t))
	require.Empty(t, server.Model.Requests("ex_bound"))
}

// What explain_agent promises is what happens.
func TestExplainAgent_AgreesWithTheCall(t *testing.T) {
	ann := server.Conn(t, "ann")
	purposeRole(t, "ex_true")
	agent(t, ann, "ex_true", "ex_true", append([]string{"list_models", "catalog_list_schemas"}, query...))
	for tool, reason := range explained(t, ann, "ex_true") {
		name, _, _ := strings.Cut(tool, " ")
		if name == "sleep" {
			continue
		}
		args := map[string]any{}
		if name == "run_sql_query" {
			args["query"] = "SELECT 1"
		}
		text := result(t, ann, "ex_true", fakeCall(name, args))
		require.Equal(t, reason == "allowed", !strings.HasPrefix(text, "Tool error: "), "%s: %s / %s", tool, reason, text)
	}
}

// counts is how much has been written down so far.
func counts(t *testing.T) map[string]any {
	t.Helper()
	return servertest.Rows(t, server.Admin(t), `SELECT (SELECT count(*) FROM aidb_internal.decision_log) AS decisions, (SELECT count(*) FROM aidb_internal.action_log) AS actions,
		(SELECT count(*) FROM aidb_internal.agent_task_queue) AS tasks, (SELECT count(*) FROM aidb_otel.traces) AS traces`)[0]
}
