package agent_test

// Compaction: what stays, what goes, and what becomes of a run when no summary is to be had. That the log of a run with
// compactions gives the messages that the run held is TestProperty_LogIsTheState's.

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/testkit"
)

// small gives the agent's model a context of so many tokens.
func small(tokens int64, settings agent.CompactionSettings) func(*agent.Definition) {
	return func(d *agent.Definition) {
		d.Model.Context, d.Compaction = tokens, settings
	}
}

// go on asks in the conversation of an earlier outcome.
func goOn(t *testing.T, w *testkit.World, id *string, prompt string) agent.Outcome {
	t.Helper()
	out, err := w.Service.Converse(context.Background(), agent.Call{Agent: "helper", Prompt: prompt, ConversationID: id, Caller: testkit.Ann})
	require.NoError(t, err)
	return out
}

func texts(r agent.Request) (all []string) {
	for _, m := range r.Messages {
		all = append(all, string(m.Role)+": "+m.Content)
	}
	return all
}

func compactions(t *testing.T, w *testkit.World) (requests []map[string]any, summaries []string) {
	t.Helper()
	for _, task := range w.Store.Tasks() {
		for _, r := range task.Records {
			if r.Type != conversation.Compaction {
				continue
			}
			var request map[string]any
			var response struct{ Summary string }
			require.NoError(t, json.Unmarshal(r.Request, &request))
			require.NoError(t, json.Unmarshal(r.Response, &response))
			requests, summaries = append(requests, request), append(summaries, response.Summary)
		}
	}
	return requests, summaries
}

func long(word string) string { return word + " " + strings.Repeat("x", 400) }

func TestCompaction_OldTurnsGiveWayToASummary(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(nil, small(500, agent.CompactionSettings{}),
		testkit.Say(long("one")), testkit.Say(long("two")), testkit.Say("they said one and two"), testkit.Say("three"))
	out, err := w.Ask(long("first"))
	require.NoError(t, err)
	goOn(t, w, out.ConversationID, long("second"))
	last := goOn(t, w, out.ConversationID, "third")
	require.Equal(t, "three", *last.Message)

	requests := w.Model.Requests()
	require.Len(t, requests, 4)
	asked := requests[2]
	require.Empty(t, asked.Tools)
	require.Contains(t, asked.Messages[1].Content, "[user] first xxx")
	require.Contains(t, asked.Messages[1].Content, "[assistant] one xxx")
	require.NotContains(t, asked.Messages[1].Content, "second", "the newest two turns stay")
	require.Equal(t, []string{
		"system: You help.", "user: " + conversation.Summary("they said one and two").Content, "user: " + long("second"),
		"assistant: " + long("two"), "user: third",
	}, texts(requests[3]))

	records, summaries := compactions(t, w)
	require.Equal(t, []string{"they said one and two"}, summaries)
	require.Equal(t, "size", records[0]["reason"])
	require.EqualValues(t, 2, records[0]["messages"])
	all := w.Store.Records(w.Store.Tasks()[0].ConversationID)
	require.Equal(t, all[0].ID.String(), records[0]["from"], "what was replaced can be found in the log")
	require.Equal(t, all[2].ID.String(), records[0]["until"])
}

func TestCompaction_KeepsPinnedResultsAndThePromptInHand(t *testing.T) {
	t.Parallel()
	// One turn that outgrows the context: its own rounds are summarized, but not the pinned one, and no call is parted
	// from its result.
	turns := []testkit.Turn{testkit.Use(testkit.Call("pinned", "{}"))}
	for range 5 {
		turns = append(turns, testkit.Use(testkit.Call("a", "{}"), testkit.Call("b", "{}")))
	}
	turns = append(turns, testkit.Say("a summary"), testkit.Say("done"))
	n := 0
	w := testkit.NewWorld(map[string]testkit.ToolFunc{
		"a": func(context.Context, string) (agent.Result, error) {
			n++
			return agent.Result{Contents: strings.Repeat("y", 300) + string(rune('a'+n))}, nil
		},
		"b": testkit.Returns("b"), "pinned": testkit.Returns("remember me"),
	}, small(400, agent.CompactionSettings{Pin: []string{"pinned"}, Threshold: 1}), turns...)
	out, err := w.Ask("the prompt in hand")
	require.NoError(t, err)
	require.Equal(t, "done", *out.Message)
	last := w.Model.Requests()[7]
	all := strings.Join(texts(last), "\n")
	require.Contains(t, all, "the prompt in hand")
	require.Contains(t, all, "tool: remember me")
	require.Contains(t, all, "a summary")
	require.Equal(t, last.Messages[1:], conversation.Repair(last.Messages[1:]))
}

func TestCompaction_AfterTheProviderRefused(t *testing.T) {
	t.Parallel()
	overflow := testkit.Fail(fault.New(fault.ModelOverflow, "too long for me"))
	w := testkit.NewWorld(nil, nil, testkit.Say("one"), overflow, testkit.Say("summary of one"), testkit.Say("two"),
		overflow, testkit.Say("again"), overflow)
	out, err := w.Ask("first")
	require.NoError(t, err)
	second := goOn(t, w, out.ConversationID, "second")
	require.Equal(t, "two", *second.Message)
	records, _ := compactions(t, w)
	require.Equal(t, "overflow", records[0]["reason"])

	// Once for a request: what still does not fit is the call's error.
	third := goOn(t, w, out.ConversationID, "third")
	require.Equal(t, "too long for me", *third.Error)
	require.Len(t, w.Model.Requests(), 7)
	records, _ = compactions(t, w)
	require.Len(t, records, 2)
}

func TestCompaction_NothingToReplaceIsAnError(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(nil, nil, testkit.Fail(fault.New(fault.ModelOverflow, "too long for me")))
	out, err := w.Ask("alone")
	require.NoError(t, err)
	require.Equal(t, "too long for me", *out.Error)
	require.Len(t, w.Model.Requests(), 1)
}

func TestCompaction_GoesOnWithoutASummary(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(nil, small(500, agent.CompactionSettings{KeepTurns: 1}),
		testkit.Say(long("one")), testkit.Say(long("two")), testkit.Fail(fault.New(fault.ModelUnavailable, "down")), testkit.Say("three"))
	out, err := w.Ask(long("first"))
	require.NoError(t, err)
	goOn(t, w, out.ConversationID, long("second"))
	last := goOn(t, w, out.ConversationID, "third")
	require.Equal(t, "three", *last.Message)
	_, summaries := compactions(t, w)
	require.Contains(t, summaries[0], "No summary could be made")
	require.Contains(t, summaries[0], "[user] first")
}

func TestCompaction_ByAnotherModelAtItsPrice(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(nil, func(d *agent.Definition) {
		small(500, agent.CompactionSettings{Model: "cheap", KeepTurns: 1})(d)
		d.Model.Price = &agent.Price{Input: 10, Output: 10}
	}, testkit.Say(long("one")).Tokens(200, 0), testkit.Say(long("two")).Tokens(450, 0), testkit.Say("three").Tokens(100, 0))
	cheap := testkit.NewModel(testkit.Say("short").Tokens(7, 3))
	w.Service.OpenModel = func(_ context.Context, name string) (agent.Model, *agent.Price, error) {
		require.Equal(t, "cheap", name)
		return cheap, &agent.Price{Input: 1, Output: 2}, nil
	}
	out, err := w.Ask(long("first"))
	require.NoError(t, err)
	goOn(t, w, out.ConversationID, long("second"))
	goOn(t, w, out.ConversationID, "third")
	require.Len(t, cheap.Requests(), 1)
	tasks := w.Store.Tasks()
	require.EqualValues(t, 1000+7+6, *tasks[2].End.Cost)
}

func TestCompaction_DoesNotRunAfterItself(t *testing.T) {
	t.Parallel()
	// The prompt alone is above the threshold: there is nothing worth replacing, in no round.
	w := testkit.NewWorld(map[string]testkit.ToolFunc{"a": testkit.Echo}, small(50, agent.CompactionSettings{}), busy(6)...)
	out, err := w.Ask(long("huge"))
	require.NoError(t, err)
	require.Equal(t, "done", *out.Message)
	require.Len(t, w.Model.Requests(), 7)
}
