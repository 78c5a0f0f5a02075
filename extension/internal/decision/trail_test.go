package decision

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func TestTrail_RunsWithinARun(t *testing.T) {
	t.Parallel()
	trail := &Trail{NewID: uuid.New, Base: Record{Agent: "desk", Caller: "ann", Principal: "ann", SessionUser: "ann", Role: "ann"}}
	trail.Base.TaskID, trail.Base.Purpose, trail.Base.ConversationID = "t1", "p1", "c1"
	at := time.Unix(1700000000, 0)
	trail.Add(Record{At: at, Point: Delegation})

	leave := trail.Enter("spec")
	require.Zero(t, trail.Count())
	require.Equal(t, Record{Agent: "spec", Caller: "ann", Principal: "ann", SessionUser: "ann", Role: "ann"}, trail.Base)
	trail.Base.TaskID = "t2"
	trail.Add(Record{At: at, Point: ModelCall})
	inner := trail.Enter("deeper")
	trail.Add(Record{At: at, Point: ModelCall})
	inner()
	require.Equal(t, "t2", trail.Base.TaskID)
	require.Equal(t, 1, trail.Count())
	require.Len(t, trail.Take(), 3)
	leave()

	trail.Add(Record{At: at, Point: SQLExec})
	require.Equal(t, 2, trail.Count(), "its own only")
	records := trail.Records()
	require.Len(t, records, 4)
	for i, want := range [][2]string{{"desk", "t1"}, {"spec", "t2"}, {"deeper", ""}, {"desk", "t1"}} {
		require.Equal(t, want, [2]string{records[i].Agent, records[i].TaskID})
		require.Equal(t, "ann", records[i].Caller)
		if i > 0 {
			require.True(t, records[i].At.After(records[i-1].At), "one order for all")
		}
	}
	require.Equal(t, "p1", records[3].Purpose)
	require.True(t, trail.Pending())
}
