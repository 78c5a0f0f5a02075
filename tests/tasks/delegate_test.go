package tasks

import (
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// A delegation counts in the transaction in which the delegate begins: a crash between the two would have it counted twice, and
// a policy that permits it once refuse to go on.
func TestDelegation_CountsWhenItBegins(t *testing.T) {
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	servertest.Exec(t, admin, "SELECT aidb.create_policy('handover', ARRAY[aidb.transition('start', 'handover_helper', 'handed')])")
	server.Agent(t, ann, "handover_helper", nil, fakemodel.Say("helped"))
	server.Agent(t, ann, "handover", nil, fakemodel.Call("handover_helper", map[string]any{"prompt": "help"}), fakemodel.Say("done"))
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('handover', delegates => '{handover_helper}', policy => 'handover')")
	k := submit(t, ann, "handover", "go")
	require.Equal(t, result{Status: "SUCCESS", Message: "done", Rounds: 2}, wait(t, ann, k))
	require.Equal(t, "handover_helper handed t", servertest.Value(t, admin, `
		SELECT concat_ws(' ', e.tool_name, e.to_state, pg_xact_commit_timestamp(e.xmin) = pg_xact_commit_timestamp(l.xmin))
		FROM aidb_internal.session_events e
		JOIN aidb_internal.agent_task_queue t ON t.parent_task_id = $1::uuid
		JOIN aidb_internal.logged_steps l ON l.task_id = t.id AND l.prompt_id IS NOT NULL
		WHERE e.session_id = $2::uuid`, k.ID, k.Conversation))
}
