package agent_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/testkit"
)

func TestMeter_StopsAtEachQuota(t *testing.T) {
	t.Parallel()
	n := func(i int64) *int64 { return &i }
	for name, c := range map[string]struct {
		quota agent.Quota
		asks  int // that pass
		err   string
	}{
		"tokens":            {agent.Quota{Of: "role 'ann'", Tokens: n(25)}, 3, "quota exceeded: role 'ann' used 30 of 25 tokens today"},
		"with what is used": {agent.Quota{Of: "role 'ann'", Tokens: n(25), Used: agent.Usage{Used: agent.Used{Tokens: 20}}}, 1, "quota exceeded: role 'ann' used 30 of 25 tokens today"},
		"cost":              {agent.Quota{Of: "role 'ann'", Cost: n(20)}, 2, "quota exceeded: role 'ann' used 0.00000000002 of 0.00000000002 today"},
		"calls":             {agent.Quota{Of: "role 'ann'", Calls: n(2), Used: agent.Usage{Calls: 2}}, 0, "quota exceeded: role 'ann' made 2 of 2 calls today"},
		"the last call":     {agent.Quota{Of: "role 'ann'", Calls: n(2), Used: agent.Usage{Calls: 1}}, 5, ""},
	} {
		m := agent.Meter{Quotas: []agent.Quota{c.quota}}
		model := m.Model(testkit.NewModel(testkit.Say("x").Tokens(9, 1)), "m", &agent.Price{Input: 1, Output: 1})
		for i := range 5 {
			_, err := model.Complete(context.Background(), agent.Request{})
			if i < c.asks {
				require.NoError(t, err, name)
				continue
			}
			require.EqualError(t, err, c.err, name)
		}
		require.EqualValues(t, min(1, c.asks), m.Used.Calls)
	}
	m := agent.Meter{Quotas: []agent.Quota{{Of: "role 'ann'", Cost: n(1)}}}
	_, err := m.Model(testkit.NewModel(testkit.Say("x")), "m", nil).Complete(context.Background(), agent.Request{})
	require.EqualError(t, err, "the cost of role 'ann' is limited, but model 'm' has no price")
}

// What is shared is told as it is used, and a quota is compared with what it has come to.
func TestMeter_SharesTheCount(t *testing.T) {
	t.Parallel()
	limit := int64(100)
	m := agent.Meter{Quotas: []agent.Quota{{Of: "role 'ann'", Tokens: &limit, Calls: &limit}}}
	var shared agent.Usage
	m.Share = func(_ context.Context, u agent.Usage) error {
		shared.Calls, shared.Tokens = shared.Calls+u.Calls, shared.Tokens+u.Tokens
		m.Quotas[0].Used = shared
		return nil
	}
	model := m.Model(testkit.NewModel(testkit.Say("x").Tokens(9, 1)), "m", nil)
	ask := func() error {
		_, err := model.Complete(context.Background(), agent.Request{})
		return err
	}
	require.NoError(t, ask())
	require.Equal(t, agent.Usage{Calls: 1, Used: agent.Used{Tokens: 10}}, shared)
	shared.Tokens = 99 // others
	require.NoError(t, ask())
	require.EqualError(t, ask(), "quota exceeded: role 'ann' used 109 of 100 tokens today")
	require.Equal(t, agent.Usage{Calls: 1, Used: agent.Used{Tokens: 20}}, m.Used)

	m.Used, shared = agent.Usage{}, agent.Usage{Calls: 100}
	require.EqualError(t, ask(), "quota exceeded: role 'ann' made 100 of 100 calls today")
	require.EqualValues(t, 100, shared.Calls, "a call that is refused is none")
}
