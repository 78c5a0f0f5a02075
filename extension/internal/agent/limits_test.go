package agent_test

// Budgets and guards on both sides of their limits. testdata has the transcripts of the usual ones.

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/testkit"
)

// busy is n turns that each make another call, and then a turn that answers.
func busy(n int) []testkit.Turn {
	var turns []testkit.Turn
	for i := range n {
		turns = append(turns, testkit.Use(testkit.Call("a", `{"n":`+strconv.Itoa(i)+`}`)).Tokens(10, 2))
	}
	return append(turns, testkit.Say("done").Tokens(10, 2))
}

func TestLimits_Rounds(t *testing.T) {
	t.Parallel()
	const ceiling = "round limit exceeded: no answer after 25 rounds"
	cases := []struct {
		name     string
		strategy string
		max      int
		busy     int // rounds that call a tool before the answer
		requests int
		message  string
		err      string
	}{
		{"error, answer in the last round", "error", 3, 2, 3, "done", ""},
		{"error, one round more", "error", 3, 3, 3, "", "iteration budget exceeded: 3 of 3 rounds used"},
		{"error without a limit, answer at the ceiling", "error", 0, 24, 25, "done", ""},
		{"error without a limit, beyond the ceiling", "error", 0, 25, 25, "", ceiling},
		{"grace, answer in its last round", "attempt_complete", 3, 5, 6, "done", ""},
		{"grace used up", "attempt_complete", 3, 6, 6, "", "iteration budget exceeded: 3 of 3 rounds used, and 3 extra rounds did not bring an answer"},
		{"default: 21 rounds and 3 of grace", "attempt_complete", 0, 23, 24, "done", ""},
		{"default: beyond them", "attempt_complete", 0, 24, 24, "", "iteration budget exceeded: 21 of 21 rounds used, and 3 extra rounds did not bring an answer"},
		{"grace does not lift the ceiling", "attempt_complete", 24, 30, 25, "", ceiling},
		{"limit beyond the ceiling", "attempt_complete", 1000, 30, 25, "", ceiling},
		{"no such strategy is the default", "whatever", 0, 30, 24, "", "iteration budget exceeded: 21 of 21 rounds used, and 3 extra rounds did not bring an answer"},
		{"summarize, within", "summarize", 3, 2, 3, "done", ""},
		{"summarize, at the limit", "summarize", 3, 3, 4, "done", ""},
		{"summarize without a limit, answer at the ceiling", "summarize", 0, 24, 25, "done", ""},
		{"summarize without a limit reports at the ceiling", "summarize", 0, 25, 26, "done", ""},
		{"summarize with a limit beyond the ceiling reports there", "summarize", 1000, 25, 26, "done", ""},
		{"ignore, answer at the ceiling", "ignore", 2, 24, 25, "done", ""},
		{"ignore, beyond the ceiling", "ignore", 2, 25, 25, "", ceiling},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := testkit.NewWorld(map[string]testkit.ToolFunc{"a": testkit.Echo}, func(d *agent.Definition) {
				d.Strategy = c.strategy
				if c.max > 0 {
					d.MaxIterations = &c.max
				}
			}, busy(c.busy)...)
			out, err := w.Ask("x")
			require.NoError(t, err)
			require.Len(t, w.Model.Requests(), c.requests)
			end := w.Store.Tasks()[0].End
			if c.err != "" {
				require.NotNil(t, out.Error)
				require.Equal(t, c.err, *out.Error)
				require.Equal(t, "ERROR", end.Status)
			} else {
				require.NotNil(t, out.Message, "%v", out.Error)
				require.Equal(t, c.message, *out.Message)
				require.Equal(t, "SUCCESS", end.Status)
			}
			want := 0
			if c.strategy == "ignore" {
				want = 1
			}
			require.Len(t, w.Tracer.Warnings(), want)
		})
	}
}

func TestLimits_TheModelIsToldThatItsTimeIsRunningOut(t *testing.T) {
	t.Parallel()
	one := 1
	w := testkit.NewWorld(map[string]testkit.ToolFunc{"a": testkit.Echo}, func(d *agent.Definition) { d.MaxIterations = &one }, busy(3)...)
	_, err := w.Ask("x")
	require.NoError(t, err)
	requests := w.Model.Requests()
	require.Len(t, requests, 4)
	require.Equal(t, "You help.", requests[0].Messages[0].Content)
	for i, left := range []string{"3 replies left", "2 replies left", "1 reply left"} {
		system := requests[i+1].Messages[0]
		require.Equal(t, conversation.System, system.Role)
		require.True(t, strings.HasPrefix(system.Content, "You help.\n\n"))
		require.Contains(t, system.Content, left)
		require.Contains(t, system.Content, "iteration budget exceeded")
		require.NotEmpty(t, requests[i+1].Tools)
	}
	// The note is for one request, it is not part of the conversation.
	require.NotContains(t, string(w.Store.Tasks()[0].Records[0].Request), "Note")
}

func TestLimits_EmptyInstructionsGiveNoSystemMessage(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(nil, func(d *agent.Definition) { d.Instructions = "" }, testkit.Say(""), testkit.Say("hi"))
	_, err := w.Ask("x")
	require.NoError(t, err)
	requests := w.Model.Requests()
	require.Equal(t, []conversation.Message{{ID: requests[0].Messages[0].ID, Role: conversation.User, Content: "x"}}, requests[0].Messages)
	require.Equal(t, conversation.System, requests[1].Messages[0].Role)
	require.Contains(t, requests[1].Messages[0].Content, "your last reply was empty")
}

func TestLimits_UnclassifiedModelErrors(t *testing.T) {
	t.Parallel()
	odd := testkit.Fail(errors.New("odd"))
	t.Run("two are survived", func(t *testing.T) {
		t.Parallel()
		w := testkit.NewWorld(nil, nil, odd, odd, testkit.Say("hi"))
		out, err := w.Ask("x")
		require.NoError(t, err)
		require.Equal(t, "hi", *out.Message)
		require.Equal(t, 1, w.Store.Tasks()[0].End.Rounds)
		require.Equal(t, w.Model.Requests()[0], w.Model.Requests()[2], "the same request again")
	})
	t.Run("the third ends the run", func(t *testing.T) {
		t.Parallel()
		w := testkit.NewWorld(nil, nil, odd)
		out, err := w.Ask("x")
		require.NoError(t, err)
		require.Equal(t, "the model call failed: odd", *out.Error)
		require.Len(t, w.Model.Requests(), 3)
	})
	t.Run("an error with a kind ends it at once", func(t *testing.T) {
		t.Parallel()
		for _, kind := range []fault.Kind{fault.ModelAuth, fault.ModelQuota, fault.ModelRateLimited, fault.ModelOverflow, fault.ModelRefused,
			fault.ModelUnavailable, fault.ModelProtocol, fault.ModelRejected, fault.Timeout} {
			w := testkit.NewWorld(nil, nil, testkit.Fail(fault.New(kind, "why")))
			out, err := w.Ask("x")
			require.NoError(t, err)
			require.Equal(t, "why", *out.Error)
			require.Len(t, w.Model.Requests(), 1)
		}
	})
}

func TestLimits_Repetition(t *testing.T) {
	t.Parallel()
	again := testkit.Use(testkit.Call("a", `{"n":1}`))
	other := testkit.Use(testkit.Call("a", `{"n":2}`))
	done := testkit.Say("done")
	refusals := 0
	cases := []struct {
		name     string
		tool     testkit.ToolFunc
		turns    []testkit.Turn
		requests int
		err      string
	}{
		{"twice is no circle", testkit.Echo, []testkit.Turn{again, again, done}, 3, ""},
		{"another call between", testkit.Echo, []testkit.Turn{again, again, other, again, again, done}, 6, ""},
		{"three times is followed by a report", testkit.Echo, []testkit.Turn{again, again, again, done, again}, 4, ""},
		{"failing twice", testkit.Raises("no"), []testkit.Turn{again, again, done}, 3, ""},
		{"failing three times", testkit.Raises("no"), []testkit.Turn{again, again, again, done}, 3, "same failing tool call in 3 rounds"},
		{"failing, each refusal with its own decision id", func(context.Context, string) (agent.Result, error) {
			refusals++
			return agent.Result{Error: "permission denied [decision_id=" + strconv.Itoa(refusals) + "]"}, nil
		}, []testkit.Turn{again, again, again, done}, 3, "same failing tool call in 3 rounds"},
		{"failing differently", testkit.Raises("no"), []testkit.Turn{again, other, again, other, done}, 5, ""},
		{"a call without a tool counts too", testkit.Echo, []testkit.Turn{testkit.Use(testkit.Call("ghost", ""))}, 3, "same failing tool call"},
		{"repeated within one reply counts once", testkit.Echo, []testkit.Turn{
			testkit.Use(testkit.Call("a", "1"), testkit.Call("a", "1"), testkit.Call("a", "1")), done}, 2, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := testkit.NewWorld(map[string]testkit.ToolFunc{"a": c.tool}, nil, c.turns...)
			out, err := w.Ask("x")
			require.NoError(t, err)
			require.Len(t, w.Model.Requests(), c.requests)
			if c.err != "" {
				require.NotNil(t, out.Error)
				require.Contains(t, *out.Error, c.err)
				require.Contains(t, *out.Error, "limit exceeded")
				return
			}
			require.NotNil(t, out.Message)
			require.Equal(t, "done", *out.Message)
		})
	}
}

func TestLimits_CallsOfOneReply(t *testing.T) {
	t.Parallel()
	for _, n := range []int{64, 65, 300} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			t.Parallel()
			var calls []conversation.ToolCall
			for i := range n {
				calls = append(calls, conversation.ToolCall{ID: "same", Name: "a", Arguments: strconv.Itoa(i)})
			}
			w := testkit.NewWorld(map[string]testkit.ToolFunc{"a": testkit.Echo}, nil, testkit.Use(calls...), testkit.Say("done"))
			_, err := w.Ask("x")
			require.NoError(t, err)
			require.Len(t, w.Toolboxes.Calls(), min(n, 64))
			ids := map[string]bool{}
			results := 0
			for _, m := range w.Model.Requests()[1].Messages {
				if m.Role == conversation.Tool {
					require.False(t, ids[m.ToolCallID])
					ids[m.ToolCallID] = true
					results++
					require.Equal(t, results > 64, strings.HasPrefix(m.Content, "Tool error: not run: more than 64 tool calls"))
				}
			}
			require.Equal(t, min(n, 256), results)
		})
	}
}

func TestLimits_ClosingReport(t *testing.T) {
	t.Parallel()
	one := 1
	setup := func(turns ...testkit.Turn) *testkit.World {
		return testkit.NewWorld(map[string]testkit.ToolFunc{"a": testkit.Echo}, func(d *agent.Definition) {
			d.MaxIterations, d.Strategy = &one, "summarize"
		}, append([]testkit.Turn{testkit.Use(testkit.Call("a", "1"))}, turns...)...)
	}
	t.Run("is asked for in the instructions", func(t *testing.T) {
		t.Parallel()
		w := setup(testkit.Say("report"))
		out, err := w.Ask("x")
		require.NoError(t, err)
		require.Equal(t, "report", *out.Message)
		last := w.Model.Requests()[1]
		require.Contains(t, last.Messages[0].Content, "brief status report")
		require.NotEmpty(t, last.Tools)
	})
	t.Run("text beside a call counts the second time", func(t *testing.T) {
		t.Parallel()
		both := testkit.Use(testkit.Call("a", "2"))
		both.Reply.Content = "let me see"
		w := setup(both)
		out, err := w.Ask("x")
		require.NoError(t, err)
		require.Equal(t, "let me see", *out.Message)
		require.Len(t, w.Model.Requests(), 3)
		require.Empty(t, w.Model.Requests()[2].Tools)
		require.Len(t, w.Toolboxes.Calls(), 1)
	})
	t.Run("a model that fails there fails the run", func(t *testing.T) {
		t.Parallel()
		w := setup(testkit.Fail(fault.New(fault.ModelUnavailable, "down")))
		out, err := w.Ask("x")
		require.NoError(t, err)
		require.Equal(t, "down", *out.Error)
	})
	t.Run("when time is up it has a time of its own", func(t *testing.T) {
		t.Parallel()
		hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		for _, c := range []struct {
			name   string
			report testkit.Turn
			status string
		}{{"enough", testkit.Say("report"), "SUCCESS"}, {"not enough", testkit.Turn{Do: hang}, "TIMEOUT"}} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				w := testkit.NewWorld(nil, func(d *agent.Definition) { d.TimeoutSeconds, d.Strategy = &one, "summarize" },
					testkit.Turn{Do: hang}, c.report)
				_, err := w.Ask("x")
				require.NoError(t, err)
				require.Equal(t, c.status, w.Store.Tasks()[0].End.Status)
			})
		}
	})
}
