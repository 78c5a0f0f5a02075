package agent_test

// Money, and limits that hold for a run and all that it delegates.

import (
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/testkit"
)

func TestCost_IsCountedByThePrice(t *testing.T) {
	t.Parallel()
	cached := int64(60)
	turn := testkit.Say("done").Tokens(100, 10)
	turn.Reply.Usage.Cached = &cached
	w := testkit.NewWorld(nil, func(d *agent.Definition) { d.Model.Price = &agent.Price{Input: 100, Output: 1000, Cached: 1} }, turn)
	_, err := w.Ask("go")
	require.NoError(t, err)
	task := w.Store.Tasks()[0]
	require.EqualValues(t, 40*100+60*1+10*1000, *task.End.Cost)
	require.Contains(t, string(task.Records[2].Response), `"cost":`+conversation.Money(14060))

	w = testkit.NewWorld(nil, nil, testkit.Say("done"))
	_, err = w.Ask("go")
	require.NoError(t, err)
	require.Nil(t, w.Store.Tasks()[0].End.Cost, "a model without a price costs nobody knows what")
	require.Contains(t, string(w.Store.Tasks()[0].Records[2].Response), `"estimated":{"input":3,"output":1}`)
}

func TestCostBudget(t *testing.T) {
	t.Parallel()
	const units = conversation.Units
	cases := []struct {
		name   string
		budget int64
		price  *agent.Price
		want   string
	}{
		{"exactly used up", 4 * units, &agent.Price{Input: units / 10, Output: 0}, "done"},
		{"over", 2 * units, &agent.Price{Input: units / 10, Output: 0}, "cost budget exceeded: 3 of 2 used"},
		{"no price", units, nil, "the cost of agent 'helper' is limited, but its model 'm' has no price"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := testkit.NewWorld(map[string]testkit.ToolFunc{"a": testkit.Echo}, func(d *agent.Definition) {
				d.CostBudget, d.Model.Price, d.Strategy = c.budget, c.price, agent.StrategyError
			}, busy(3)...)
			out, err := w.Ask("go")
			require.NoError(t, err)
			require.Equal(t, c.want, said(out))
		})
	}
}

func said(o agent.Outcome) string {
	if o.Error != nil {
		return *o.Error
	}
	return *o.Message
}

func TestTreeBudget_IsForTheRunAndAllBelowIt(t *testing.T) {
	t.Parallel()
	budget := 100
	world := func(strategy string) *testkit.World {
		w := testkit.NewWorld(nil, func(d *agent.Definition) {
			d.Delegates, d.TreeTokenBudget, d.Strategy = []string{"worker"}, &budget, strategy
		}, testkit.Use(testkit.Call("worker", `{"prompt":"dig"}`)).Tokens(10, 2), testkit.Say("summed up").Tokens(10, 2))
		w.Toolboxes.Tools = map[string]testkit.ToolFunc{"a": testkit.Echo}
		return w
	}

	// The delegate has no budget of its own: what is left of the tree's stops it, whatever its strategy.
	w := world(agent.StrategyError)
	w.AddAgent("worker", func(d *agent.Definition) { d.Tools, d.Strategy = []string{"a"}, agent.StrategyIgnore }, many(30)...)
	out, err := w.Ask("go")
	require.NoError(t, err)
	require.Equal(t, "tree token budget exceeded: 108 of 100 tokens used, delegates included", said(out))
	tasks := w.Store.Tasks()
	require.Equal(t, "tree budget exceeded: the budget of agent 'helper' and all that it delegates is used up", tasks[1].End.Error)
	require.EqualValues(t, 96, tasks[1].End.BudgetConsumed)
	require.EqualValues(t, 12, tasks[0].End.BudgetConsumed, "what a delegate used is not the parent's own")
	response := tasks[0].Records[4]
	require.Equal(t, conversation.ToolResponse, response.Type)
	require.Contains(t, string(response.Request), `"used_tokens":96`)

	// Under summarize the parent still reports.
	w = world(agent.StrategySummarize)
	w.AddAgent("worker", func(d *agent.Definition) { d.Tools = []string{"a"} }, many(30)...)
	out, err = w.Ask("go")
	require.NoError(t, err)
	require.Equal(t, "summed up", said(out))

	// Within it nothing happens.
	w = world(agent.StrategyError)
	w.AddAgent("worker", nil, testkit.Say("found").Tokens(70, 6))
	out, err = w.Ask("go")
	require.NoError(t, err)
	require.Equal(t, "summed up", said(out))
}

// many is n turns that each make another call.
func many(n int) []testkit.Turn { return busy(n)[:n] }

func TestTreeCostBudget_NeedsPricesBelow(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(nil, func(d *agent.Definition) {
		d.Delegates, d.TreeCostBudget = []string{"worker"}, conversation.Units
		d.Model.Price = &agent.Price{Input: 1, Output: 1}
	}, testkit.Use(testkit.Call("worker", `{"prompt":"dig"}`)), testkit.Say("done"))
	w.AddAgent("worker", nil, testkit.Say("found"))
	out, err := w.Ask("go")
	require.NoError(t, err)
	require.Equal(t, "done", said(out))
	require.Equal(t, "the cost of agent 'worker' is limited, but its model 'worker_model' has no price", w.Store.Tasks()[1].End.Error)
}
