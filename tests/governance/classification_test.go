package governance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/tests/servertest"
)

// Why a call was refused is told by what stopped it, never by a text: by the C function that raised, whose name differs
// between majors. So this table is what is to be run first on a new one (tests/scripts/newer-major).
func TestClassification_IsByWhatStoppedTheStatement(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	purposeRole(t, "cls")
	servertest.Exec(t, admin, `
		CREATE ROLE cls_sibling; GRANT cls_sibling TO cls;
		CREATE SCHEMA cls_closed; CREATE TABLE cls_closed.inner_table (n int); GRANT SELECT ON cls_closed.inner_table TO cls;
		CREATE SCHEMA cls_open; GRANT USAGE ON SCHEMA cls_open TO cls;
		CREATE TABLE cls_open.shut (n int, secret text); CREATE TABLE cls_open.columns (n int, secret text); GRANT SELECT (n) ON cls_open.columns TO cls;
		CREATE TABLE cls_open.free (n int CHECK (n < 100)); GRANT ALL ON cls_open.free TO cls;
		CREATE VIEW cls_open.view AS SELECT * FROM cls_open.shut; GRANT SELECT ON cls_open.view TO cls; ALTER VIEW cls_open.view OWNER TO cls_sibling;
		CREATE SEQUENCE cls_open.numbers;
		CREATE FUNCTION cls_open.closed_function() RETURNS int LANGUAGE sql AS 'SELECT 1'; REVOKE ALL ON FUNCTION cls_open.closed_function() FROM PUBLIC;
		CREATE FUNCTION cls_open.set_role() RETURNS int LANGUAGE sql SET role = 'cls_sibling' AS 'SELECT 1';
		CREATE FUNCTION cls_open.set_session() RETURNS int LANGUAGE sql SET session_authorization = 'cls_sibling' AS 'SELECT 1';
		CREATE FUNCTION cls_open.gated() RETURNS int LANGUAGE sql SET log_min_messages = 'panic' AS 'SELECT 1';
		CREATE FUNCTION cls_open.plain_setting() RETURNS text LANGUAGE sql SET work_mem = '1MB' AS 'SELECT current_setting(''work_mem'')';
		CREATE PROCEDURE cls_open.become() LANGUAGE plpgsql AS $$ BEGIN SET LOCAL ROLE cls_sibling; END $$;
		CREATE FUNCTION cls_open.own_refusal() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE 'not at night' USING ERRCODE = '42501'; END $$;
		CREATE TABLE cls_open.tenants (owner text); ALTER TABLE cls_open.tenants ENABLE ROW LEVEL SECURITY;
		CREATE POLICY own ON cls_open.tenants USING (owner = 'me') WITH CHECK (owner = 'me'); GRANT ALL ON cls_open.tenants TO cls;
		CREATE TYPE cls_open.closed_type AS ENUM ('a'); REVOKE ALL ON TYPE cls_open.closed_type FROM PUBLIC;`)
	agent(t, ann, "cls", "cls", both)

	const (
		allowed, object, escalation, rejected = "", "engine_privilege_denied", "escalation_blocked", "pre_execution_rejected"
		roleText                              = `cannot set parameter "role" within security-definer function`
		sessionText                           = `cannot set parameter "session_authorization" within security-definer function`
	)
	for _, c := range []struct {
		sql, reason, text, state string
		attempted                bool
	}{
		// Identity: the engine's own refusal, at any depth.
		{"SET ROLE cls_sibling", escalation, roleText, "42501", true},
		{"SET LOCAL ROLE cls_sibling", escalation, roleText, "42501", true},
		{"SET ROLE NONE", escalation, roleText, "42501", true},
		{"SET role TO DEFAULT", escalation, roleText, "42501", true},
		{"SET SESSION AUTHORIZATION cls_sibling", escalation, sessionText, "42501", true},
		{"SET SESSION AUTHORIZATION DEFAULT", escalation, sessionText, "42501", true},
		{"RESET SESSION AUTHORIZATION", escalation, sessionText, "42501", true},
		{"DO $$ BEGIN SET ROLE cls_sibling; END $$", escalation, roleText, "42501", true},
		{"DO $$ BEGIN RESET ROLE; END $$", escalation, roleText, "42501", true},
		{"DO $$ BEGIN EXECUTE 'SET ' || 'ROLE cls_sibling'; END $$", escalation, roleText, "42501", true},
		{"CALL cls_open.become()", escalation, roleText, "42501", true},
		{"SELECT cls_open.set_role()", escalation, roleText, "42501", true},
		{"SELECT cls_open.set_session()", escalation, sessionText, "42501", true},
		{"SELECT set_config('role', 'cls_sibling', false)", escalation, "function set_config is not allowed in a tool call", "42501", true},
		{"SELECT pg_catalog.set_config('role', 'cls_sibling', true) FROM cls_open.free", escalation, "function set_config is not allowed in a tool call", "42501", true},
		{"DO $$ BEGIN PERFORM set_config('session_authorization', 'cls_sibling', true); END $$", escalation, "function set_config is not allowed in a tool call", "42501", true},
		// A parameter that needs a privilege.
		{"SELECT cls_open.gated()", escalation, `permission denied to set parameter "log_min_messages"`, "42501", true},
		// Bare bodies are refused before they run.
		{"RESET ROLE", escalation, "RESET is not allowed in a tool call", "42501", true},
		{"RESET ALL", escalation, "RESET is not allowed in a tool call", "42501", true},
		{"DISCARD ALL", escalation, "DISCARD ALL is not allowed in a tool call", "42501", true},
		// Refused before execution, with an identity switch at the top: still an attempt to escape.
		{"SELECT 1; SET ROLE cls_sibling", escalation, "a tool call takes exactly one statement, not 2", "42601", true},
		{"RESET SESSION AUTHORIZATION; SELECT 1", escalation, "a tool call takes exactly one statement, not 2", "42601", true},
		// ... and with one only inside an expression: not.
		{"SELECT 1; SELECT set_config('role', 'x', true)", rejected, "a tool call takes exactly one statement, not 2", "42601", true},
		{"SELECT 1; SELECT 2", rejected, "a tool call takes exactly one statement, not 2", "42601", false},
		{"SET work_mem = '1GB'", rejected, "SET is not allowed in a tool call", "42501", false},
		{"RESET work_mem", rejected, "RESET is not allowed in a tool call", "42501", false},
		{"PREPARE q AS SELECT 1", rejected, "PREPARE is not allowed in a tool call", "42501", false},
		{"DEALLOCATE ALL", rejected, "DEALLOCATE ALL is not allowed in a tool call", "42501", false},
		{"LISTEN x", rejected, "LISTEN is not allowed in a tool call", "42501", false},
		{"UNLISTEN *", rejected, "UNLISTEN is not allowed in a tool call", "42501", false},
		{"DISCARD PLANS", rejected, "DISCARD PLANS is not allowed in a tool call", "42501", false},
		{"CREATE TABLE cls_open.mine (n int)", rejected, "CREATE TABLE is not allowed in a tool call", "42501", false},
		{"CREATE TEMP TABLE mine (n int)", rejected, "CREATE TABLE is not allowed in a tool call", "42501", false},
		{"SELECT pg_advisory_lock(1)", rejected, "function pg_advisory_lock is not allowed in a tool call", "42501", false},
		{"COMMIT", rejected, "COMMIT is not allowed in a tool call", "42501", false},
		{"ALTER ROLE cls SUPERUSER", rejected, "ALTER ROLE is not allowed in a tool call", "42501", true},
		{"", "", "the statement is empty", "22023", false},
		// Ordinary privileges on objects.
		{"SELECT * FROM cls_open.shut", object, "permission denied for table shut", "42501", false},
		{"INSERT INTO cls_open.shut VALUES (1)", object, "permission denied for table shut", "42501", false},
		{"SELECT secret FROM cls_open.columns", object, "permission denied for table columns", "42501", false},
		{"SELECT * FROM cls_closed.inner_table", object, "permission denied for schema cls_closed", "42501", false},
		{"SELECT * FROM cls_open.view", object, "permission denied for table shut", "42501", false},
		{"SELECT nextval('cls_open.numbers')", object, "permission denied for sequence numbers", "42501", false},
		{"SELECT cls_open.closed_function()", object, "permission denied for function closed_function", "42501", false},
		{"DO $$ BEGIN PERFORM * FROM cls_open.shut; END $$", object, "permission denied for table shut", "42501", false},
		{"INSERT INTO cls_open.tenants VALUES ('you')", object, `new row violates row-level security policy for table "tenants"`, "42501", false},
		{"SELECT pg_read_file('x')", object, "permission denied for function pg_read_file", "42501", false},
		{"SELECT cls_open.own_refusal()", object, "not at night", "42501", false},
		{"TRUNCATE cls_open.shut", object, "permission denied for table shut", "42501", false},
		// What stopped it counts, not what it would have tried; the flag tells of that.
		{"DO $$ BEGIN PERFORM * FROM cls_open.shut; EXECUTE 'SET ROLE cls_sibling'; END $$", object, "permission denied for table shut", "42501", true},
		{"DO $$ BEGIN SET ROLE cls_sibling; PERFORM * FROM cls_open.shut; END $$", escalation, roleText, "42501", true},
		{"DO $$ BEGIN BEGIN SET ROLE cls_sibling; EXCEPTION WHEN OTHERS THEN NULL; END; PERFORM * FROM cls_open.shut; END $$", object, "permission denied for table shut", "42501", true},
		{"DO $$ BEGIN BEGIN PERFORM set_config('a.b', 'c', false); EXCEPTION WHEN OTHERS THEN NULL; END; PERFORM * FROM cls_open.shut; END $$", object, "permission denied for table shut", "42501", true},
		{"DO $$ BEGIN BEGIN PERFORM pg_advisory_lock(1); EXCEPTION WHEN OTHERS THEN RAISE; END; END $$", rejected, "function pg_advisory_lock is not allowed in a tool call", "42501", false},
		// Allowed, whatever became of it afterwards.
		{"SELECT 1 AS one", allowed, "", "", false},
		{"SELECT cls_open.plain_setting() AS w", allowed, "", "", false},
		{"DO $$ BEGIN BEGIN SET ROLE cls_sibling; EXCEPTION WHEN OTHERS THEN NULL; END; END $$", allowed, "", "", true},
		{"DO $$ BEGIN BEGIN PERFORM pg_advisory_lock(1); EXCEPTION WHEN OTHERS THEN NULL; END; PERFORM 1 / 0; END $$", allowed, "division by zero", "22012", false},
		{"SELECT 1 / 0", allowed, "division by zero", "22012", false},
		{"SELECT * FROM cls_open.not_there", allowed, `relation "cls_open.not_there" does not exist`, "42P01", false},
		{"SELEC 1", allowed, `syntax error at or near "SELEC"`, "42601", false},
		{"INSERT INTO cls_open.free VALUES (100)", allowed, `new row for relation "free" violates check constraint "free_n_check"`, "23514", false},
		{"SELECT 'SET ROLE is what I talk about' AS s", allowed, "", "", true}, // the scan is of the text; it only marks
	} {
		name := c.sql
		if name == "" {
			name = "empty"
		}
		t.Run(name, func(t *testing.T) {
			all, o := results(t, ann, "cls", execute(c.sql))
			text := all[0]
			if c.sql == "" {
				require.Contains(t, text, c.text) // an argument that is no statement: there is nothing to decide
				return
			}
			rows := sqlDecisions(t, ann, o.Conversation)
			require.Len(t, rows, 1, "one record for one tool call")
			d := rows[0]
			if c.reason == "" {
				require.Equal(t, "allowed", d["status"], text)
				require.Nil(t, d["denial_reason"])
				if c.text != "" {
					require.Contains(t, text, "Tool error: "+c.text)
				} else {
					require.NotContains(t, text, "Tool error: ")
				}
				require.NotContains(t, text, "decision_id")
			} else {
				require.Equal(t, d, requireRefused(t, ann, text, c.text, c.reason))
			}
			state, _ := d["sqlstate"].(string)
			require.Equal(t, c.state, state)
			require.Equal(t, c.attempted, d["attempted_escalation"], "attempted_escalation")
			require.Equal(t, c.sql, d["query_text"])
			require.Equal(t, "cls", d["role"])
			require.Equal(t, "ann", servertest.Value(t, ann, "SELECT current_user"))
		})
	}
}
