package governance

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aidb/tests/servertest"
)

// registered is a purpose as anybody who may look sees it.
type registered struct {
	Role, Description         string
	Created, Updated, Deleted *time.Time
}

func lookUp(t *testing.T, name string) *registered {
	t.Helper()
	rows := servertest.Rows(t, server.Admin(t), "SELECT * FROM aidb.purpose_registry WHERE name = $1", name)
	if len(rows) == 0 {
		return nil
	}
	at := func(v any) *time.Time {
		if v == nil {
			return nil
		}
		moment, ok := v.(time.Time)
		require.True(t, ok)
		return &moment
	}
	r := &registered{Role: rows[0]["role"].(string), Created: at(rows[0]["created_at"]), Updated: at(rows[0]["updated_at"]), Deleted: at(rows[0]["deleted_at"])}
	if d, ok := rows[0]["description"].(string); ok {
		r.Description = d
	}
	return r
}

// The life of a purpose: each function in each state of the name (absent, live, retired).
func TestPurpose_LivesRetiresAndIsRevived(t *testing.T) {
	admin := server.Admin(t)
	servertest.Exec(t, admin, "CREATE ROLE gov_life LOGIN IN ROLE aidb_governance")
	gov, said := server.ConnNoting(t, "gov_life")

	// Absent. The governor is no member of the role, which need not even exist.
	requireError(t, gov, "42704", "purpose 'life' not found", "SELECT aidb.update_purpose('life', role => 'x')")
	requireError(t, gov, "42704", "purpose 'life' not found", "SELECT aidb.update_purpose('life', description => 'x')")
	requireError(t, gov, "42704", "purpose 'life' not found", "SELECT aidb.delete_purpose('life')")
	said.Reset()
	servertest.Exec(t, gov, "SELECT aidb.create_purpose('life', 'no_such_role', 'first')")
	require.Equal(t, []string{"role 'no_such_role' does not exist yet"}, said.Lines("NOTICE"))
	first := lookUp(t, "life")
	require.Equal(t, "no_such_role", first.Role)
	require.Equal(t, "first", first.Description)
	require.NotNil(t, first.Created)
	require.NotNil(t, first.Updated)
	require.Nil(t, first.Deleted)

	// Live.
	requireError(t, gov, "42710", "purpose 'life' already exists", "SELECT aidb.create_purpose('life', 'other')")
	servertest.Exec(t, gov, "SELECT aidb.update_purpose('life', description => 'second')")
	second := lookUp(t, "life")
	require.Equal(t, "no_such_role", second.Role, "NULL leaves it as it is")
	require.Equal(t, "second", second.Description)
	require.True(t, second.Updated.After(*first.Updated))
	require.Equal(t, first.Created, second.Created)
	servertest.Exec(t, gov, "SELECT aidb.update_purpose('life', 'role_two')")
	require.Equal(t, "role_two", lookUp(t, "life").Role)
	require.Equal(t, "second", lookUp(t, "life").Description, "NULL never clears")

	// Nothing to change: success, no row touched, whatever the state of the name.
	before := lookUp(t, "life")
	for _, call := range []string{"SELECT aidb.update_purpose('life')", "SELECT aidb.update_purpose('life', NULL, NULL)", "SELECT aidb.update_purpose('nobody')"} {
		servertest.Exec(t, gov, call)
	}
	require.Equal(t, before, lookUp(t, "life"))
	require.Nil(t, lookUp(t, "nobody"))

	// Retired: the row stays, and only create_purpose brings it back.
	servertest.Exec(t, gov, "SELECT aidb.delete_purpose('life')")
	retired := lookUp(t, "life")
	require.NotNil(t, retired.Deleted)
	require.True(t, retired.Updated.After(*before.Updated), "retiring counts as a change")
	requireError(t, gov, "55000", "purpose 'life' already deleted", "SELECT aidb.delete_purpose('life')")
	requireError(t, gov, "42704", "purpose 'life' not found", "SELECT aidb.update_purpose('life', role => 'x')")
	servertest.Exec(t, gov, "SELECT aidb.update_purpose('life')")
	require.Equal(t, retired, lookUp(t, "life"))
	servertest.Exec(t, gov, "SELECT aidb.create_purpose('life', 'role_three')")
	revived := lookUp(t, "life")
	require.Equal(t, "role_three", revived.Role)
	require.Equal(t, "second", revived.Description, "kept when omitted")
	require.Nil(t, revived.Deleted)
	require.Equal(t, first.Created, revived.Created)
	require.True(t, revived.Updated.After(*retired.Updated))
	servertest.Exec(t, gov, "SELECT aidb.delete_purpose('life'); SELECT aidb.create_purpose('life', 'role_three', 'third')")
	require.Equal(t, "third", lookUp(t, "life").Description)
}

func TestPurpose_BlankNamesAndRolesAreRefused(t *testing.T) {
	admin := server.Admin(t)
	for _, blank := range []any{nil, "", "   ", "\t\n"} {
		requireError(t, admin, "22023", "Invalid parameters: purpose name must not be empty", "SELECT aidb.create_purpose($1::text, 'r')", blank)
		requireError(t, admin, "22023", "Invalid parameters: purpose name must not be empty", "SELECT aidb.update_purpose($1::text, 'r')", blank)
		requireError(t, admin, "22023", "Invalid parameters: purpose name must not be empty", "SELECT aidb.delete_purpose($1::text)", blank)
		requireError(t, admin, "22023", "Invalid parameters: purpose role must not be empty", "SELECT aidb.create_purpose('blank', $1::text)", blank)
		if blank != nil { // which means: leave it
			requireError(t, admin, "22023", "Invalid parameters: purpose role must not be empty", "SELECT aidb.update_purpose('blank', $1::text)", blank)
		}
	}
	require.Nil(t, lookUp(t, "blank"))
	// An argument may be as long as it likes; a text that quotes it may not.
	_, err := admin.Exec(t.Context(), "SELECT aidb.delete_purpose($1)", strings.Repeat("x", 1<<20))
	require.Less(t, len(err.Error()), 400)
	servertest.Exec(t, admin, "SELECT aidb.create_purpose($1, 'r')", `O'Neil "x"`)
	requireError(t, admin, "42710", `purpose 'O'Neil "x"' already exists`, "SELECT aidb.create_purpose($1, 'r')", `O'Neil "x"`)
}

// A transaction that is rolled back takes a purpose with it, like any row.
func TestPurpose_IsTransactional(t *testing.T) {
	admin := server.Admin(t)
	servertest.Exec(t, admin, "BEGIN; SELECT aidb.create_purpose('fleeting', 'r'); ROLLBACK")
	require.Nil(t, lookUp(t, "fleeting"))
}

func TestPurpose_OnlyGovernorsWrite(t *testing.T) {
	admin := server.Admin(t)
	servertest.Exec(t, admin, "CREATE ROLE gov_only LOGIN IN ROLE aidb_governance; CREATE ROLE aud_only LOGIN IN ROLE aidb_auditor; CREATE ROLE outside LOGIN")
	servertest.Exec(t, admin, "SELECT aidb.create_purpose('guarded', 'r')")
	for _, role := range []string{"ann", "aud_only"} {
		conn := server.Conn(t, role)
		requireError(t, conn, "42501", "permission denied for function create_purpose", "SELECT aidb.create_purpose('p', 'r')")
		requireError(t, conn, "42501", "permission denied for function update_purpose", "SELECT aidb.update_purpose('p', 'r')")
		requireError(t, conn, "42501", "permission denied for function delete_purpose", "SELECT aidb.delete_purpose('p')")
	}
	requireError(t, server.Conn(t, "outside"), "42501", "permission denied for schema aidb", "SELECT aidb.create_purpose('p', 'r')")

	// The registry is read by users, governors and auditors, and written by nobody.
	for _, role := range []string{"ann", "gov_only", "aud_only"} {
		conn := server.Conn(t, role)
		require.Equal(t, "1", servertest.Value(t, conn, "SELECT count(*) FROM aidb.purpose_registry WHERE name = 'guarded'"), role)
		for _, write := range []string{"INSERT INTO %s (name, role) VALUES ('x', 'y')", "UPDATE %s SET role = 'y'", "DELETE FROM %s"} {
			requireError(t, conn, "42501", "permission denied for view purpose_registry", strings.ReplaceAll(write, "%s", "aidb.purpose_registry"))
			requireError(t, conn, "42501", "permission denied for table purpose_registry", strings.ReplaceAll(write, "%s", "aidb_internal.purpose_registry"))
		}
		requireError(t, conn, "42501", "permission denied for table purpose_registry", "TRUNCATE aidb_internal.purpose_registry")
		requireError(t, conn, "42501", "permission denied for table purpose_registry", "SELECT * FROM aidb_internal.purpose_registry")
	}
	require.Equal(t, "r", lookUp(t, "guarded").Role)
}

// The roles are independent: who governs does not thereby use, audit or read telemetry, and the other way round.
func TestRoles_AreIndependent(t *testing.T) {
	admin := server.Admin(t)
	require.Empty(t, servertest.Rows(t, admin, `SELECT m.roleid::regrole, m.member::regrole FROM pg_auth_members m
		WHERE m.roleid::regrole::text LIKE 'aidb\_%' AND m.member::regrole::text LIKE 'aidb\_%'`))
	servertest.Exec(t, admin, "CREATE ROLE gov_alone LOGIN IN ROLE aidb_governance; CREATE ROLE aud_alone LOGIN IN ROLE aidb_auditor")
	for _, role := range []string{"gov_alone", "aud_alone"} {
		conn := server.Conn(t, role)
		for function, call := range map[string]string{
			"agent_converse": "SELECT * FROM aidb.agent_converse('x', 'y')", "run_tool": "SELECT aidb.run_tool('run_sql_query', '{}')",
			"create_agent": "SELECT * FROM aidb.create_agent('x', 'y', 'z')", "run_sql_query": "SELECT aidb.run_sql_query('SELECT 1')",
			"execute_sql": "SELECT aidb.execute_sql('SELECT 1')", "create_model": "SELECT aidb.create_model('x', 'dummy', '{}')",
		} {
			requireError(t, conn, "42501", "permission denied for function "+function, call)
		}
	}
	requireError(t, server.Conn(t, "aud_alone"), "42501", "permission denied for schema aidb_otel", "SELECT * FROM aidb_otel.traces")
	servertest.Value(t, server.Conn(t, "gov_alone"), "SELECT count(*) FROM aidb_otel.traces")
}

// The agent's side: texts come as rows, nothing is changed by a refused request.
func TestAgentPurpose_IsSetAndReset(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	purposeRole(t, "worn")
	servertest.Exec(t, admin, "SELECT aidb.create_purpose('worn_out', 'worn'); SELECT aidb.delete_purpose('worn_out')")
	server.Agent(t, ann, "wearer", query)
	carries := func() string {
		return servertest.Value(t, ann, "SELECT purpose FROM aidb.agents WHERE name = 'wearer'")
	}
	refused := func(want, call string) {
		t.Helper()
		rows := servertest.Rows(t, ann, call)
		require.Len(t, rows, 1)
		require.Equal(t, want, rows[0]["error"])
	}
	for _, f := range []string{"create_agent('new', 'i', 'wearer', purpose => %s)", "update_agent('wearer', purpose => %s)"} {
		for purpose, want := range map[string]string{
			"''": "Invalid parameters: agent purpose must not be empty", "'  '": "Invalid parameters: agent purpose must not be empty",
			"'never_made'": "purpose 'never_made' is not registered", "'worn_out'": "purpose 'worn_out' has been retired",
		} {
			refused(want, "SELECT * FROM aidb."+strings.ReplaceAll(f, "%s", purpose))
		}
	}
	require.Empty(t, carries())
	require.Equal(t, "0", servertest.Value(t, ann, "SELECT count(*) FROM aidb.agents WHERE name = 'new'"))

	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('wearer', purpose => 'worn')")
	require.Equal(t, "worn", carries())
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('wearer', instructions => 'else')")
	require.Equal(t, "worn", carries(), "NULL leaves it as it is")
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('wearer', reset => ARRAY['purpose'])")
	require.Empty(t, carries())
	require.Equal(t, `[{"me": "ann"}]`, result(t, ann, "wearer", whoami), "and tools run as the caller again")
}
