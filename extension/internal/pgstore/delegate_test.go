package pgstore

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/spi"
)

func TestStore_Delegates_InTheOrderOfTheirNames(t *testing.T) {
	t.Parallel()
	h := &script{answers: [][]spi.Rows{{{Values: [][]*string{values(`[{"Name": "b", "Instructions": "Do b."}, {"Name": "a\"", "Instructions": ""}]`)}}}}}
	found, err := New(h, new(Natives)).Delegates(context.Background(), []string{`a"`, "gone", "b"})
	require.NoError(t, err)
	require.Equal(t, []agent.Delegate{{Name: `a"`}, {Name: "b", Instructions: "Do b."}}, found)
	require.Equal(t, []any{`{"a\"","gone","b"}`}, h.batches[0][0].Args)

	found, err = New(&script{answers: [][]spi.Rows{{{Values: [][]*string{values(nil)}}}}}, new(Natives)).Delegates(context.Background(), []string{"x"})
	require.NoError(t, err)
	require.Empty(t, found)

	_, err = New(&script{err: fault.New(fault.Internal, "gone")}, new(Natives)).Delegates(context.Background(), []string{"x"})
	require.Equal(t, fault.Internal, fault.KindOf(err))
}

func TestStore_Narrower(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rows [][]*string
		want bool
	}{
		"a member":                            {[][]*string{values("t")}, true},
		"no member":                           {[][]*string{values("f")}, false},
		"a role that does not exist has none": {nil, true},
	} {
		h := &script{answers: [][]spi.Rows{{{Values: c.rows}}}}
		got, err := New(h, new(Natives)).Narrower(context.Background(), "own", "above")
		require.NoError(t, err)
		require.Equal(t, c.want, got, name)
		require.Equal(t, []any{"own", "above"}, h.batches[0][0].Args)
	}
}

func TestJournal_NamesTheTaskAbove(t *testing.T) {
	t.Parallel()
	h := &script{}
	j := New(h, new(Natives)).Journal(nil)
	task, above := someTask(), uuid.New()
	task.Parent = &above
	require.NoError(t, j.Begin(context.Background(), task))
	require.NoError(t, j.Finish(context.Background(), agent.TaskEnd{ID: task.ID, Status: conversation.StatusSuccess}))
	require.Equal(t, above.String(), copied(t, h.batches[0][0])[0]["parent_task_id"])
}

func TestServer_DelegatesAndRoles(t *testing.T) {
	c := connect(t)
	c.do(`INSERT INTO aidb_internal.agents (name, instructions, model, enabled, owner) VALUES
		('t "one"', 'Do one.', 'm', true, pg_catalog.quote_ident(CURRENT_USER)::regrole),
		('t_off', 'Do nothing.', 'm', false, pg_catalog.quote_ident(CURRENT_USER)::regrole)`)
	c.do(`CREATE ROLE t_small; CREATE ROLE t_big; CREATE ROLE t_middle; GRANT t_small TO t_middle; GRANT t_middle TO t_big`)
	ctx, s := context.Background(), New(c, new(Natives))
	found, err := s.Delegates(ctx, []string{"t_off", `t "one"`, "t_gone"})
	require.NoError(t, err)
	require.Equal(t, []agent.Delegate{{Name: `t "one"`, Instructions: "Do one."}}, found)
	for _, roles := range [][2]string{{"t_small", "t_big"}, {"t_big", "t_big"}, {"t_gone", "t_big"}} {
		narrower, err := s.Narrower(ctx, roles[0], roles[1])
		require.NoError(t, err)
		require.True(t, narrower, roles)
	}
	for _, roles := range [][2]string{{"t_big", "t_small"}, {"t_small", "t_gone"}} {
		narrower, err := s.Narrower(ctx, roles[0], roles[1])
		require.NoError(t, err)
		require.False(t, narrower, roles)
	}
}
