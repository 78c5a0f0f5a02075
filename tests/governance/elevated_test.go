package governance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/tests/servertest"
)

// Roles that no sandbox holds are refused, whoever calls, unless the purpose says that they are meant.
func TestElevatedRoles_AreRefusedUnlessAllowed(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	for _, c := range []struct{ name, make, what string }{
		{"el_super", "ALTER ROLE el_super SUPERUSER", "is a superuser"},
		{"el_bypass", "ALTER ROLE el_bypass BYPASSRLS", "bypasses row-level security"},
		{"el_roles", "ALTER ROLE el_roles CREATEROLE", "may create roles"},
		{"el_repl", "ALTER ROLE el_repl REPLICATION", "may replicate"},
		{"el_read", "GRANT pg_read_server_files TO el_read", "is a member of pg_read_server_files"},
		{"el_write", "GRANT pg_write_server_files TO el_write", "is a member of pg_write_server_files"},
		{"el_exec", "GRANT pg_execute_server_program TO el_exec", "is a member of pg_execute_server_program"},
		{"el_signal", "GRANT pg_signal_backend TO el_signal", "is a member of pg_signal_backend"},
		{"el_indirect", "CREATE ROLE el_between; GRANT pg_read_server_files TO el_between; GRANT el_between TO el_indirect", "is a member of pg_read_server_files"},
	} {
		t.Run(c.name, func(t *testing.T) {
			purposeRole(t, c.name)
			agent(t, ann, c.name, c.name, both)
			servertest.Exec(t, admin, c.make)
			want := "role '" + c.name + "' " + c.what + "; refusing to run tools as it"
			requireRefused(t, ann, result(t, ann, c.name, whoami), want, "pre_execution_rejected")
			requireRefused(t, ann, result(t, ann, c.name, execute("SELECT 1")), want, "pre_execution_rejected")
			requireRefused(t, admin, result(t, admin, c.name, whoami), want, "pre_execution_rejected")
			require.Equal(t, "error", servertest.Value(t, admin, "SELECT severity FROM aidb.check_role($1) LIMIT 1", c.name))
			require.Equal(t, "error", servertest.Value(t, admin, "SELECT severity FROM aidb.check_purpose($1) LIMIT 1", c.name))
			require.Equal(t, "false", servertest.Value(t, ann, "SELECT bool_or(allowed) FROM aidb.explain_agent($1)", c.name))

			servertest.Exec(t, admin, "SELECT aidb.update_purpose($1, allow_elevated => true)", c.name)
			require.Equal(t, `[{"me": "`+c.name+`"}]`, result(t, ann, c.name, whoami))
			require.Equal(t, `[{"me": "`+c.name+`"}]`, result(t, admin, c.name, whoami), "a superuser is a member of every role")
			require.Equal(t, "", servertest.Value(t, admin, "SELECT severity FROM aidb.check_purpose($1) WHERE severity = 'error' LIMIT 1", c.name))
			require.Equal(t, "true", servertest.Value(t, ann, "SELECT bool_and(allowed) FROM aidb.explain_agent($1)", c.name))

			servertest.Exec(t, admin, "SELECT aidb.update_purpose($1, allow_elevated => false)", c.name)
			requireRefused(t, ann, result(t, ann, c.name, whoami), want, "pre_execution_rejected")
			servertest.Exec(t, admin, "ALTER ROLE "+c.name+" NOSUPERUSER") // so that nothing of it stays about
		})
	}
}

// Even where a superuser's rights are allowed, the walls stand: no identity is changed and nothing stays.
func TestElevatedRole_IsStillInTheSandbox(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	purposeRole(t, "el_wall")
	agent(t, ann, "el_wall", "el_wall", both)
	servertest.Exec(t, admin, "ALTER ROLE el_wall SUPERUSER; SELECT aidb.update_purpose('el_wall', allow_elevated => true)")
	requireRefused(t, ann, result(t, ann, "el_wall", execute("SET ROLE postgres")), `cannot set parameter "role" within security-definer function`, "escalation_blocked")
	requireRefused(t, ann, result(t, ann, "el_wall", execute("SET SESSION AUTHORIZATION postgres")),
		`cannot set parameter "session_authorization" within security-definer function`, "escalation_blocked")
	requireRefused(t, ann, result(t, ann, "el_wall", execute("ALTER SYSTEM SET work_mem = '1GB'")), "ALTER SYSTEM is not allowed in a tool call", "pre_execution_rejected")
	requireRefused(t, ann, result(t, ann, "el_wall", execute("SELECT pg_read_file('PG_VERSION')")), "function pg_read_file is not allowed in a tool call", "pre_execution_rejected")
	servertest.Exec(t, admin, "ALTER ROLE el_wall NOSUPERUSER")
}

// A governor is told at once what will not work, and is not stopped: the role is judged when a tool runs.
func TestElevatedRole_IsRemarkedOnWhenMapped(t *testing.T) {
	admin := server.Admin(t)
	servertest.Exec(t, admin, "CREATE ROLE gov_remark LOGIN IN ROLE aidb_governance")
	gov, said := server.ConnNoting(t, "gov_remark")
	servertest.Exec(t, gov, "SELECT aidb.create_purpose('remark', 'postgres')")
	require.Len(t, said.Lines("WARNING"), 1)
	said.Reset()
	servertest.Exec(t, gov, "SELECT aidb.update_purpose('remark', role => 'ann')")
	require.Empty(t, said.Lines("WARNING"))
	servertest.Exec(t, gov, "SELECT aidb.update_purpose('remark', role => 'postgres', allow_elevated => true)")
	require.Equal(t, []string{"tools of this purpose run with all the rights of role 'postgres'"}, said.Lines("WARNING"))
	said.Reset()
	servertest.Exec(t, gov, "SELECT aidb.update_purpose('remark')")
	require.Equal(t, []string{"nothing to change"}, said.Lines("NOTICE"))
}

// What aidb does for a call has values in its plans: a credential would be in the server's log wherever auto_explain looks
// into nested statements.
func TestCredentials_AreKeptFromAutoExplain(t *testing.T) {
	admin := server.Admin(t)
	servertest.Exec(t, admin, "CREATE TABLE public.vault AS SELECT '{\"api_key\": \"HUSH-of-the-vault\"}'::jsonb AS c")
	servertest.Exec(t, admin, `LOAD 'aidb'; LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_nested_statements = on;
		SET auto_explain.log_verbose = on; SET auto_explain.log_analyze = on; SET log_statement = 'all'`)
	servertest.Exec(t, admin, `SELECT aidb.create_model('vaulted', 'openai_completions', '{"model": "m", "url": "http://127.0.0.1:9/v1"}',
		credentials => (SELECT c FROM public.vault), validate => false)`)
	require.Contains(t, server.Log(), "Query Text: SELECT aidb.create_model('vaulted'", "it does look")
	require.NotContains(t, server.Log(), "HUSH-of-the-vault")
	require.Equal(t, "0", servertest.Value(t, admin, "SELECT current_setting('auto_explain.log_min_duration')"))
}
