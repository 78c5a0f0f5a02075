package agent_test

// Answers of an output type. testdata has transcripts of the usual ones; what an output type is, package structured tests.

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/testkit"
)

const (
	numbered = `{"fields": [{"name": "n", "type": "integer"}]}`
	named    = `{"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}`
)

func typed(raw string) func(*agent.Definition) {
	return func(d *agent.Definition) { d.OutputType = json.RawMessage(raw) }
}

func TestTyped_WhichTypeHolds(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, own, call, answer string
		accepted                bool
	}{
		{"none", "", "", "words", true},
		{"the agent's", numbered, "", `{"n": 1}`, true},
		{"the agent's, not met", numbered, "", `{"name": "x"}`, false},
		{"the call's", "", named, `{"name": "x"}`, true},
		{"the call's wins", numbered, named, `{"name": "x"}`, true},
		{"and the agent's does not count then", numbered, named, `{"n": 1}`, false},
		{"a null of the call is free text", numbered, "null", "words", true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := testkit.NewWorld(nil, typed(c.own), testkit.Say(c.answer))
			out, err := w.Service.Converse(context.Background(), agent.Call{Agent: "helper", Prompt: "x", OutputType: json.RawMessage(c.call), Caller: testkit.Ann})
			require.NoError(t, err)
			if c.accepted {
				require.NotNil(t, out.Message, "%v", out.Error)
				require.Equal(t, c.answer, *out.Message)
				return
			}
			require.Contains(t, *out.Error, "answer does not match the output type: /: ")
			require.Len(t, w.Model.Requests(), 3)
			require.Equal(t, "ERROR", w.Store.Tasks()[0].End.Status)
		})
	}
}

func TestTyped_TheModelIsTold(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(nil, typed(named), testkit.Say("x"))
	_, err := w.Ask("x")
	require.NoError(t, err)
	system := w.Model.Requests()[0].Messages[0].Content
	require.True(t, strings.HasPrefix(system, "You help.\n\nYour final answer must be one JSON object"))
	require.True(t, strings.HasSuffix(system, `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`))
	require.Empty(t, w.Model.Requests()[0].Tools, "nothing but words: no tool, no format")
	for _, r := range w.Model.Requests()[1:] {
		require.Equal(t, []conversation.Role{conversation.System, conversation.User}, []conversation.Role{r.Messages[0].Role, r.Messages[1].Role})
		require.Len(t, r.Messages, 2)
	}
}

func TestTyped_ARejectedAnswerIsNoHistory(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(nil, typed(numbered), testkit.Say("one"), testkit.Say(`{"n": 1}`), testkit.Say(`{"n": 2}`))
	out, err := w.Ask("first")
	require.NoError(t, err)
	_, err = w.Service.Converse(context.Background(), agent.Call{Agent: "helper", Prompt: "second", ConversationID: out.ConversationID, Caller: testkit.Ann})
	require.NoError(t, err)
	require.Equal(t, []string{"first", `{"n": 1}`, "second"}, contents(w.Model.Requests()[2])[1:])

	log := w.Store.Tasks()[0].Records
	require.Equal(t, conversation.ModelResponse, log[2].Type)
	require.Equal(t, "ERROR", log[2].Status)
	require.Equal(t, "not valid JSON: invalid character 'o' looking for beginning of value", log[2].Error)
	require.Contains(t, string(log[2].Response), `"contents":"one"`, "the log has it all the same")
}

func TestTyped_RepairsAreCountedOnceForTheRun(t *testing.T) {
	t.Parallel()
	use := testkit.Use(testkit.Call("a", "{}"))
	no := testkit.Say("no")
	w := testkit.NewWorld(map[string]testkit.ToolFunc{"a": testkit.Echo}, typed(numbered), no, use, no, testkit.Say(""), no, testkit.Say(`{"n": 1}`))
	out, err := w.Ask("x")
	require.NoError(t, err)
	require.Contains(t, *out.Error, "answer does not match the output type")
	require.Len(t, w.Model.Requests(), 5)
	// A note is about the last reply only.
	for i, want := range []string{"", "not accepted", "", "not accepted", "was empty"} {
		system := w.Model.Requests()[i].Messages[0].Content
		require.Equal(t, want != "", strings.Contains(system, "Note from the system"), "%d: %s", i, system)
		require.Contains(t, system, want)
	}
}

func TestTyped_TextBesideCallsIsNoAnswer(t *testing.T) {
	t.Parallel()
	both := testkit.Use(testkit.Call("a", "{}"))
	both.Reply.Content = "Let me see."
	w := testkit.NewWorld(map[string]testkit.ToolFunc{"a": testkit.Echo}, typed(numbered), both, testkit.Say(`{"n": 1}`))
	out, err := w.Ask("x")
	require.NoError(t, err)
	require.Equal(t, `{"n": 1}`, *out.Message)
	require.Equal(t, "Let me see.", w.Model.Requests()[1].Messages[2].Content)
}

func TestTyped_WhatIsStoredCanBeReadAsJSON(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(nil, typed(named), testkit.Say("{\"name\": \"a\\u0000b\\ud800c\xff\"}"))
	out, err := w.Ask("x")
	require.NoError(t, err)
	require.Equal(t, "{\"name\": \"ab\\ufffdc\uFFFD\"}", *out.Message)
}

func TestTyped_LongAnswersAreQuotedInPart(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20)
	w := testkit.NewWorld(nil, typed(numbered), testkit.Say(long), testkit.Say(`{"n": "`+long+`"}`), testkit.Say(`{"n": 1}`))
	out, err := w.Ask("x")
	require.NoError(t, err)
	require.Equal(t, `{"n": 1}`, *out.Message)
	for _, r := range w.Model.Requests() {
		require.Less(t, len(r.Messages[0].Content), 12<<10)
	}
}

func TestTyped_AnAnswerThatIsCompleteCountsWhateverItsFinish(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(nil, typed(numbered), testkit.Say(`{"n": 1}`).Finish(agent.FinishLength))
	out, err := w.Ask("x")
	require.NoError(t, err)
	require.Equal(t, `{"n": 1}`, *out.Message)
	require.Len(t, w.Model.Requests(), 1)
}

func TestTyped_AnUnusableTypeEndsTheCallBeforeAnyModel(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`[]`:                     "output_type must be a JSON object",
		`{"fields": []}`:         `output_type cannot be used: "fields" must be`,
		`{"type": "objekt"}`:     "output_type cannot be used: JSON Schema is not valid: 'objekt' at / is not a type",
		`{"$ref": "#/$defs/no"}`: "output_type cannot be used: JSON Schema is not valid: its reference '#/$defs/no' at / leads to no schema",
		`{"$ref": "#"}`:          "refers to itself without end",
	} {
		w := testkit.NewWorld(nil, nil, testkit.Say("never"))
		out, err := w.Service.Converse(context.Background(), agent.Call{Agent: "helper", Prompt: "x", OutputType: json.RawMessage(raw), Caller: testkit.Ann})
		require.NoError(t, err)
		require.Contains(t, *out.Error, want)
		require.Empty(t, w.Model.Requests())
		require.Empty(t, w.Toolboxes.Requests())
		require.Equal(t, "ERROR", w.Store.Tasks()[0].End.Status)
	}
}
