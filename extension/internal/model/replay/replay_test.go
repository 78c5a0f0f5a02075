package replay_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/model/replay"
	"aidb/extension/internal/testkit"
)

// record has a conversation and returns its log.
func record(t *testing.T, tools map[string]testkit.ToolFunc, change func(*agent.Definition), prompts []string, turns ...testkit.Turn) []conversation.Record {
	t.Helper()
	w := testkit.NewWorld(tools, change, turns...)
	ask(t, w, prompts...)
	return w.Store.Records(w.Store.Tasks()[0].ConversationID)
}

func ask(t *testing.T, w *testkit.World, prompts ...string) (answers []string) {
	t.Helper()
	var id *string
	for _, p := range prompts {
		out, err := w.Service.Converse(context.Background(), agent.Call{Agent: "helper", Prompt: p, ConversationID: id, Caller: testkit.Ann})
		require.NoError(t, err)
		if out.Error != nil {
			answers = append(answers, *out.Error)
			continue
		}
		id = out.ConversationID
		answers = append(answers, *out.Message)
	}
	return answers
}

// again has it once more, with the recorded replies.
func again(t *testing.T, records []conversation.Record, tools map[string]testkit.ToolFunc, change func(*agent.Definition), prompts ...string) []string {
	t.Helper()
	w := testkit.NewWorld(tools, change)
	w.Service.Models = opener(func() agent.Model {
		return replay.Open(records, replay.Options{ID: "c1", Redact: func(s string) string { return strings.ReplaceAll(s, "secret", "[redacted]") }})
	})
	return ask(t, w, prompts...)
}

type opener func() agent.Model

func (o opener) Open(context.Context, agent.ModelRef) (agent.Model, error) { return o(), nil }

func TestReplay_TheSameConversationAgain(t *testing.T) {
	t.Parallel()
	tools := map[string]testkit.ToolFunc{"a": testkit.Returns("seven"), "b": testkit.Raises("no [decision_id=018f0000-0000-7000-8000-000000000001]")}
	prompts := []string{"how many?", "and now?"}
	records := record(t, tools, nil, prompts,
		testkit.Use(testkit.Call("a", `{"x":1}`), testkit.Call("b", "{}")), testkit.Say(""), testkit.Say("seven"), testkit.Say("still seven"))
	require.Equal(t, []string{"seven", "still seven"}, again(t, records, tools, nil, prompts...))

	tools["b"] = testkit.Raises("no [decision_id=018f0000-0000-7000-8000-0000000000ff]")
	require.Equal(t, []string{"seven", "still seven"}, again(t, records, tools, nil, prompts...), "an id made anew is no difference")

	tools["a"] = testkit.Returns("eight")
	require.Equal(t, []string{`the request differs from the recording of conversation 'c1': part 4, a result of 'a', was "seven" and now is "eight"`},
		again(t, records, tools, nil, "how many?"))

	tools["a"] = testkit.Returns("seven")
	require.Equal(t, []string{`the request differs from the recording of conversation 'c1': part 1, a user message, was "how many?" and now is "how much?"`},
		again(t, records, tools, nil, "how much?"))
	delete(tools, "b")
	require.Equal(t, []string{`the request differs from the recording of conversation 'c1': the tools were a, b, now they are a`},
		again(t, records, tools, nil, "how many?"))
}

func TestReplay_EndsWithTheRecording(t *testing.T) {
	t.Parallel()
	records := record(t, nil, nil, []string{"one"}, testkit.Say("first"))
	require.Equal(t, []string{"first", `the request differs from the recording of conversation 'c1': part 2 was not there, now it is a assistant message "first"`},
		again(t, records, nil, nil, "one", "two"))
	m := replay.Open(nil, replay.Options{ID: "c1"})
	_, err := m.Complete(context.Background(), agent.Request{})
	require.EqualError(t, err, "the recording of conversation 'c1' has no further reply: it ends after 0")
}

func TestReplay_FailuresAndSummaries(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 400)
	small := func(d *agent.Definition) { d.Model.Context = 420 }
	prompts := []string{"one" + long, "two" + long, "three", "four"}
	turns := []testkit.Turn{testkit.Say("1" + long), testkit.Say("2" + long), testkit.Say("summary with a secret"), testkit.Say("3"),
		testkit.Fail(fault.New(fault.ModelAuth, "who are you"))}
	records := record(t, nil, small, prompts, turns...)
	got := again(t, records, nil, small, prompts...)
	require.Equal(t, []string{"1" + long, "2" + long, "3", "who are you"}, got)
	require.Contains(t, again(t, records, nil, func(d *agent.Definition) { d.Model.Context = 100 }, prompts...)[1], "the request differs")
}

func TestConfig(t *testing.T) {
	t.Parallel()
	id, err := replay.Config([]byte(`{"conversation_id":"x"}`))
	require.NoError(t, err)
	require.Equal(t, "x", id)
	_, err = replay.Config([]byte(`{}`))
	require.Error(t, err)
}
