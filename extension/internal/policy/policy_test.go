package policy

import (
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/extension/internal/fault"
)

func live(name string) State { return State{Name: name, Registered: true} }

func TestWithin_OwnAndThoseAbove(t *testing.T) {
	t.Parallel()
	top, err := Within(nil, "c2", live("orders"), live("desk"))
	require.NoError(t, err)
	require.Equal(t, Guards{{Conversation: "c2", Policy: "desk"}, {Conversation: "c2", Policy: "orders"}}, top, "in the order of the locks")

	same, err := Within(nil, "c2", live("orders"), live("orders"))
	require.NoError(t, err)
	require.Len(t, same, 1, "an agent and its purpose with one policy are one machine")

	below, err := Within(top, "c1", live("orders"))
	require.NoError(t, err)
	require.Equal(t, Guards{{Conversation: "c1", Policy: "orders"}, top[0], top[1]}, below)
	require.Len(t, top, 2, "the run above keeps its own")

	unguarded, err := Within(nil, "c1")
	require.NoError(t, err)
	require.Empty(t, unguarded)
}

func TestWithin_WhatIsNotLiveIsRefused(t *testing.T) {
	t.Parallel()
	for text, p := range map[string]State{
		"policy 'gone' is not registered": {Name: "gone"},
		"policy 'old' has been retired":   {Name: "old", Registered: true, Retired: true},
	} {
		_, err := Within(nil, "c", live("orders"), p)
		require.EqualError(t, err, text)
		require.Equal(t, fault.Privilege, fault.KindOf(err))
	}
}

func TestExempt(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"sleep", "act", "describe_actions"} {
		require.True(t, Exempt(tool))
	}
	require.False(t, Exempt("refund_order"))
}
