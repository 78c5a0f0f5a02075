package agent_test

import (
	"context"
	"testing"
	"time"

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
		require.EqualValues(t, 1, m.Used.Calls)
	}
	m := agent.Meter{Quotas: []agent.Quota{{Of: "role 'ann'", Cost: n(1)}}}
	_, err := m.Model(testkit.NewModel(testkit.Say("x")), "m", nil).Complete(context.Background(), agent.Request{})
	require.EqualError(t, err, "the cost of role 'ann' is limited, but model 'm' has no price")
}

func TestTally_CountsByPersonAndDay(t *testing.T) {
	t.Parallel()
	var tally agent.Tally
	day := time.Date(2026, 1, 2, 23, 59, 0, 0, time.UTC)
	tally.Add(day, "app", "mia", agent.Usage{Calls: 1, Used: agent.Used{Tokens: 5}})
	tally.Add(day, "app", "noa", agent.Usage{Calls: 1, Used: agent.Used{Tokens: 7}})
	tally.Add(day, "other", "mia", agent.Usage{Calls: 1})
	require.EqualValues(t, 5, tally.Of("app", "mia", true).Tokens)
	require.EqualValues(t, 12, tally.Of("app", "mia", false).Tokens)
	tally.Turn(day.Add(time.Hour))
	require.Zero(t, tally.Of("app", "mia", false))
}
