package tool

import (
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// The matrix is what each role is told by tool_allowed, for whoever asks, and what happens when that role calls.
func TestToolMatrix_ShowsEveryToolForEveryRoleThatMayCall(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	servertest.Exec(t, admin, `CREATE TABLE public.matrix (a integer); INSERT INTO public.matrix VALUES (1);
		CREATE ROLE m_group NOLOGIN IN ROLE aidb_users; CREATE ROLE m_stranger LOGIN; CREATE ROLE m_desk NOLOGIN;
		CREATE ROLE m_governor LOGIN IN ROLE aidb_governance; CREATE ROLE m_auditor LOGIN IN ROLE aidb_auditor;
		GRANT SELECT ON public.matrix TO m_group; GRANT m_desk TO m_group; GRANT UPDATE (a) ON public.matrix TO m_desk`)
	create(t, ann, "m_read", "SELECT a FROM public.matrix", "")
	create(t, ann, "m_write", "UPDATE public.matrix SET a = 2", "", "false", "risk => 'safe'")
	server.Agent(t, ann, "matrix", []string{"m_read", "sleep", "m_write"})
	const told = `SELECT tool, caller, runs_as, allowed, reason, missing FROM aidb.tool_matrix('matrix')
		WHERE caller IN ('ann', 'm_group', 'm_stranger', 'm_desk', 'm_governor', 'm_auditor', 'postgres')`
	row := func(tool, caller, role string, reason any, missing ...any) map[string]any {
		return map[string]any{"tool": tool, "caller": caller, "runs_as": role, "allowed": reason == nil, "reason": reason, "missing": append([]any{}, missing...)}
	}
	want := []map[string]any{
		row("m_read", "ann", "ann", "role 'ann' lacks privileges", "SELECT on table public.matrix"),
		row("m_read", "m_group", "m_group", nil),
		row("m_read", "postgres", "postgres", nil),
		row("sleep", "ann", "ann", nil),
		row("sleep", "m_group", "m_group", nil),
		row("sleep", "postgres", "postgres", nil),
		row("m_write", "ann", "ann", "role 'ann' lacks privileges", "UPDATE on table public.matrix"),
		row("m_write", "m_group", "m_group", nil),
		row("m_write", "postgres", "postgres", "tools that write do not run as a superuser"),
	}
	for _, role := range []string{"ann", "m_governor", "m_auditor", "postgres"} {
		require.Equal(t, want, servertest.Rows(t, server.Conn(t, role), told), role)
	}
	refused(t, server.Conn(t, "m_stranger"), "42501", told)
	require.Contains(t, refused(t, ann, "42704", "SELECT * FROM aidb.tool_matrix('nobody')"), "agent 'nobody' not found")

	// With a purpose tools run as its role; who is no member of it is shown with that.
	servertest.Exec(t, admin, "SELECT aidb.create_purpose('matrixed', 'm_desk')")
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('matrix', purpose => 'matrixed', tools => '{m_read,m_write}', tool_exposure => 'catalog')")
	foreign := "current user is not a member of role 'm_desk'"
	group := []map[string]any{
		row("m_read", "m_group", "m_desk", "role 'm_desk' lacks privileges", "SELECT on table public.matrix"),
		row("m_write", "m_group", "m_desk", nil),
		row("sleep", "m_group", "m_desk", nil),
		row("describe_actions", "m_group", "m_desk", nil),
		row("act", "m_group", "m_desk", nil),
	}
	require.Equal(t, group, servertest.Rows(t, ann, told+" AND caller = 'm_group'"))
	require.Equal(t, []map[string]any{row("m_read", "ann", "m_desk", foreign), row("m_write", "ann", "m_desk", foreign), row("sleep", "ann", "m_desk", foreign),
		row("describe_actions", "ann", "m_desk", foreign), row("act", "ann", "m_desk", foreign)}, servertest.Rows(t, ann, told+" AND caller = 'ann'"))

	// A role that nobody logs in as is told the same, and calls.
	servertest.Exec(t, admin, "SET ROLE m_group")
	for _, r := range group {
		allowed := servertest.Rows(t, admin, "SELECT allowed, reason, missing FROM aidb.tool_allowed('matrix', $1)", r["tool"])
		require.Equal(t, []map[string]any{{"allowed": r["allowed"], "reason": r["reason"], "missing": r["missing"]}}, allowed, r["tool"])
	}
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('matrix', tool_exposure => 'direct')")
	server.Model.Script("matrix", fakemodel.Call("m_read", map[string]any{}), fakemodel.Call("m_write", map[string]any{}), fakemodel.Say("done"))
	require.Equal(t, "done", servertest.MustAsk(t, admin, "matrix", "go").Message)
	requests := server.Model.Requests("matrix")
	turn := requests[len(requests)-1].Turn()
	require.Contains(t, turn[0].Result, "permission denied for table matrix")
	require.JSONEq(t, `{"rows_affected": 1}`, turn[1].Result)
}
