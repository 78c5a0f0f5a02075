package agent_test

// Token budgets on both sides of their limits, with and without the numbers of the provider.

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/testkit"
)

func TestLimits_Tokens(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name      string
		in, out   int
		busy      int
		requests  int
		err       string
		perceived int64
	}{
		{"input, used up exactly", 30, 0, 3, 4, "", 48},
		{"input, one token less", 29, 0, 3, 3, "input token budget exceeded: 30 of 29 tokens used", 36},
		{"output, used up exactly", 0, 6, 3, 4, "", 48},
		{"output, one token less", 0, 5, 3, 3, "output token budget exceeded: 6 of 5 tokens used", 36},
		{"both, input is named first", 9, 1, 3, 1, "input token budget exceeded: 10 of 9 tokens used", 12},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := testkit.NewWorld(map[string]testkit.ToolFunc{"a": testkit.Echo}, func(d *agent.Definition) {
				d.Strategy = "error"
				if c.in > 0 {
					d.InputTokenBudget = &c.in
				}
				if c.out > 0 {
					d.OutputTokenBudget = &c.out
				}
			}, busy(c.busy)...)
			out, err := w.Ask("x")
			require.NoError(t, err)
			require.Len(t, w.Model.Requests(), c.requests)
			require.Equal(t, c.perceived, w.Store.Tasks()[0].End.BudgetConsumed)
			if c.err == "" {
				require.Nil(t, out.Error)
			} else {
				require.Equal(t, c.err, *out.Error)
			}
		})
	}
}

// A reply may have as many tokens as are left of the budgets and one more, which is the one too many. What is cut off there is no
// answer.
func TestLimits_AReplyIsCutWhereTheBudgetEnds(t *testing.T) {
	t.Parallel()
	call := testkit.Use(testkit.Call("a", `{}`)).Tokens(10, 30)
	cut := testkit.Say("The total is").Tokens(10, 71).Finish(agent.FinishLength)
	short := testkit.Say("41.50").Tokens(10, 5)
	for _, c := range []struct {
		name, strategy string
		change         func(d *agent.Definition)
		turns          []testkit.Turn
		most           []int64
		message, err   string
		warnings       int
	}{
		{"no budget", "error", func(*agent.Definition) {}, []testkit.Turn{call, short}, []int64{0, 0}, "41.50", "", 0},
		{"error", "error", nil, []testkit.Turn{call, cut}, []int64{101, 71}, "", "output token budget exceeded: 101 of 100 tokens used", 0},
		{"grace", "attempt_complete", nil, []testkit.Turn{call, cut, short}, []int64{101, 71, 0}, "41.50", "", 0},
		{"summarize", "summarize", nil, []testkit.Turn{call, cut, short}, []int64{101, 71, 0}, "41.50", "", 0},
		{"ignore", "ignore", nil, []testkit.Turn{call, cut}, []int64{0, 0}, "The total is", "", 1},
		{"cut by the model's own limit", "error", nil, []testkit.Turn{testkit.Say("half").Tokens(1, 50).Finish(agent.FinishLength)}, []int64{101}, "half", "", 1},
		{"cut calls do not run", "error", nil, []testkit.Turn{call.Tokens(1, 101).Finish(agent.FinishLength)}, []int64{101}, "", "output token budget exceeded: 101 of 100 tokens used", 0},
		{"the tree's", "error", func(d *agent.Definition) { n := 50; d.TreeTokenBudget = &n }, []testkit.Turn{call, short}, []int64{51, 11}, "41.50", "", 0},
		{"money", "error", func(d *agent.Definition) {
			d.CostBudget, d.Model.Price = 1000, &agent.Price{Input: 1, Output: 10}
		}, []testkit.Turn{call, short}, []int64{101, 70}, "41.50", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := testkit.NewWorld(map[string]testkit.ToolFunc{"a": testkit.Echo}, func(d *agent.Definition) {
				d.Strategy = c.strategy
				if c.change == nil {
					n := 100
					d.OutputTokenBudget = &n
				} else {
					c.change(d)
				}
			}, c.turns...)
			out, err := w.Ask("x")
			require.NoError(t, err)
			var most []int64
			for _, r := range w.Model.Requests() {
				most = append(most, r.MaxOutput)
			}
			require.Equal(t, c.most, most)
			if c.err != "" {
				require.Equal(t, c.err, *out.Error)
			} else {
				require.Nil(t, out.Error)
				require.Equal(t, c.message, *out.Message)
			}
			require.Len(t, w.Tracer.Warnings(), c.warnings)
			if c.name == "grace" {
				last := w.Model.Requests()[2].Messages
				require.Contains(t, last[0].Content, "was cut off where the budget ended")
				require.NotEqual(t, conversation.Assistant, last[len(last)-1].Role, "what was cut is no part of the history")
			}
		})
	}
}

func TestLimits_TokensThatTheProviderDoesNotTell(t *testing.T) {
	t.Parallel()
	negative, zero, some := int64(-5), int64(0), int64(7)
	for name, usage := range map[string]conversation.Usage{
		"unknown": {}, "negative": {Input: &negative, Output: &negative}, "both zero": {Input: &zero, Output: &zero},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			turn := testkit.Say(strings.Repeat("y", 41))
			turn.Reply.Usage = usage
			w := testkit.NewWorld(nil, nil, turn)
			_, err := w.Ask(strings.Repeat("x", 400))
			require.NoError(t, err)
			end := w.Store.Tasks()[0].End
			// "You help." and the prompt are 409 bytes, the answer 41: one token for each four, begun ones counted.
			require.EqualValues(t, 103+11, end.BudgetConsumed)
		})
	}
	t.Run("is recorded as unknown", func(t *testing.T) {
		t.Parallel()
		turn := testkit.Say("y")
		turn.Reply.Usage.Reasoning = &some
		w := testkit.NewWorld(nil, nil, turn)
		_, err := w.Ask("x")
		require.NoError(t, err)
		require.Equal(t, conversation.Usage{Reasoning: &some}, w.Store.Tasks()[0].End.Usage)
		require.Contains(t, string(w.Store.Tasks()[0].Records[2].Response), `"usage":{"input":null,"output":null,"cached":null,"reasoning":7}`)
	})
	t.Run("holds a budget all the same", func(t *testing.T) {
		t.Parallel()
		limit := 100
		w := testkit.NewWorld(map[string]testkit.ToolFunc{"a": testkit.Echo}, func(d *agent.Definition) {
			d.InputTokenBudget, d.Strategy = &limit, "error"
		}, testkit.Use(testkit.Call("a", "{}")))
		out, err := w.Ask(strings.Repeat("x", 4000))
		require.NoError(t, err)
		require.Contains(t, *out.Error, "input token budget exceeded")
		require.Len(t, w.Model.Requests(), 1)
	})
	t.Run("absurd counts do not overflow", func(t *testing.T) {
		t.Parallel()
		w := testkit.NewWorld(map[string]testkit.ToolFunc{"a": testkit.Echo}, nil,
			testkit.Use(testkit.Call("a", "{}")).Tokens(1<<62, 1<<62), testkit.Use(testkit.Call("a", "[]")).Tokens(1<<62, 1<<62),
			testkit.Say("z").Tokens(1<<62, 1<<62))
		_, err := w.Ask("x")
		require.NoError(t, err)
		require.EqualValues(t, 1<<31-1, w.Store.Tasks()[0].End.BudgetConsumed)
	})
}
