package purpose

import (
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/extension/internal/fault"
)

func TestResolve_HasThreeOutcomes(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name  string
		state *State
		role  string
		err   string
		kind  fault.Kind
	}{
		{"no purpose runs as the caller", nil, "", "", 0},
		{"live purpose runs as its role", &State{Name: "p", Registered: true, Role: "r"}, "r", "", 0},
		{"retired purpose refuses", &State{Name: "p", Registered: true, Retired: true, Role: "r"}, "", "purpose 'p' has been retired", fault.Privilege},
		{"unregistered purpose refuses", &State{Name: "p", Role: "r"}, "", "purpose 'p' is not registered", fault.Privilege},
		{"purpose without a role never runs as the caller", &State{Name: "p", Registered: true}, "", "purpose 'p' has no role", fault.Internal},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			as, err := Resolve(c.state)
			require.Equal(t, c.role, as.Role)
			if c.state != nil {
				require.Equal(t, "p", as.Purpose)
			}
			if c.err == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, c.err)
			require.Equal(t, c.kind, fault.KindOf(err))
		})
	}
}

func TestResolve_TakesTheWholeRole(t *testing.T) {
	t.Parallel()
	as, err := Resolve(&State{Name: "p", Registered: true, Role: "r", RoleID: "16384", Elevated: true})
	require.NoError(t, err)
	require.Equal(t, Acting{Purpose: "p", Role: "r", RoleID: "16384", Elevated: true}, as)
}
