package agent_test

// What crosses the handoff to a delegate and what does not, and how runs within a run end. testdata has transcripts.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/decision"
	"aidb/extension/internal/testkit"
)

// hand is a call of the delegate spec.
func hand(prompt string) testkit.Turn {
	return testkit.Use(testkit.Call("spec", `{"prompt": "`+prompt+`"}`))
}

// withSpec is a world whose helper delegates to spec.
func withSpec(turns ...testkit.Turn) *testkit.World {
	return testkit.NewWorld(nil, func(d *agent.Definition) { d.Delegates = []string{"spec"} }, turns...)
}

// lastResult is the content of the last message of the n-th request.
func lastResult(t *testing.T, m *testkit.Model, n int) string {
	t.Helper()
	require.Greater(t, len(m.Requests()), n)
	messages := m.Requests()[n].Messages
	return messages[len(messages)-1].Content
}

func TestDelegate_IsATool(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(map[string]testkit.ToolFunc{"a": testkit.Echo}, func(d *agent.Definition) {
		d.Delegates = []string{"spec", "off", "gone", "quiet", "a"}
	}, testkit.Say("hi"))
	w.AddAgent("spec", func(d *agent.Definition) { d.Instructions = strings.Repeat("é", 600) })
	w.AddAgent("off", func(d *agent.Definition) { d.Enabled = false })
	w.AddAgent("quiet", func(d *agent.Definition) { d.Instructions = " " })
	w.AddAgent("a", nil)
	_, err := w.Ask("x")
	require.NoError(t, err)
	tools := w.Model.Requests()[0].Tools
	require.Len(t, tools, 3, "what is disabled, deleted or has the name of a tool is not offered")
	require.Equal(t, []string{"a", "spec", "quiet"}, []string{tools[0].Name, tools[1].Name, tools[2].Name})
	require.Equal(t, "does a", tools[0].Description)
	require.Equal(t, strings.Repeat("é", 500)+"…", tools[1].Description)
	require.Equal(t, "Another agent.", tools[2].Description)
	var schema struct {
		Properties map[string]struct{ Type string }
		Required   []string
	}
	require.NoError(t, json.Unmarshal(tools[1].Parameters, &schema))
	require.Equal(t, []string{"prompt"}, schema.Required)
	require.Equal(t, "string", schema.Properties["prompt"].Type)
	require.Equal(t, "string", schema.Properties["conversation_id"].Type)
}

func TestDelegate_HasATaskOfItsOwn(t *testing.T) {
	t.Parallel()
	w := withSpec(hand("p"), testkit.Say("outer"))
	spec := w.AddAgent("spec", nil, testkit.Say("inner").Tokens(1000, 500))
	out, err := w.Ask("x")
	require.NoError(t, err)
	require.Equal(t, "outer", *out.Message)
	tasks := w.Store.Tasks()
	require.Len(t, tasks, 2)
	require.Nil(t, tasks[0].Parent)
	require.Equal(t, tasks[0].ID, *tasks[1].Parent)
	require.NotEqual(t, tasks[0].ConversationID, tasks[1].ConversationID)
	require.Equal(t, testkit.Ann, tasks[1].Caller)
	require.EqualValues(t, 1500, tasks[1].End.BudgetConsumed)
	require.Less(t, tasks[0].End.BudgetConsumed, int64(1500), "a delegate's tokens are not the one above's")
	require.Equal(t, "You are spec.", spec.Requests()[0].Messages[0].Content)
	require.Equal(t, "p", spec.Requests()[0].Messages[1].Content)
	require.Contains(t, string(tasks[1].Records[0].Request), `"user":"ann"`)
	require.JSONEq(t, `{"answer": "inner", "conversation_id": "`+tasks[1].ConversationID.String()+`"}`, lastResult(t, w.Model, 1))
	require.Empty(t, w.Tracer.Notices(), "no debug, no notices")
}

func TestDelegate_Conversations(t *testing.T) {
	t.Parallel()
	goOn := func(id string) testkit.Turn {
		return testkit.Use(testkit.Call("spec", fmt.Sprintf(`{"prompt": "second", "conversation_id": %s}`, id)))
	}
	quoted := func(id uuid.UUID) string { return `"` + id.String() + `"` }
	// One call has left a conversation with spec; want looks at what the next one gets when it hands over an id.
	cases := []struct {
		name string
		id   func(w *testkit.World) string
		call agent.Call
		want func(t *testing.T, w *testkit.World, spec *testkit.Model)
	}{
		{"goes on", func(w *testkit.World) string { return quoted(w.Store.Tasks()[1].ConversationID) }, agent.Call{}, func(t *testing.T, w *testkit.World, spec *testkit.Model) {
			require.Equal(t, []string{"You are spec.", "first", "one", "second"}, contents(spec.Requests()[1]))
			require.Equal(t, w.Store.Tasks()[1].ConversationID, w.Store.Tasks()[3].ConversationID)
		}},
		{"an empty id is none", func(*testkit.World) string { return `""` }, agent.Call{}, fresh},
		{"a null is none", func(*testkit.World) string { return `null` }, agent.Call{}, fresh},
		{"an id that nobody used", func(*testkit.World) string { return quoted(testkit.ID(99)) }, agent.Call{}, fresh},
		{"another user's", func(w *testkit.World) string { return quoted(w.Store.Tasks()[1].ConversationID) },
			agent.Call{Caller: agent.Caller{Role: "bob", SessionUser: "bob"}}, refusedWith("belongs to another caller")},
		{"another end user's", func(w *testkit.World) string { return quoted(w.Store.Tasks()[1].ConversationID) },
			agent.Call{Caller: agent.Caller{Role: "ann", SessionUser: "ann", Principal: "user:2"}}, refusedWith("belongs to another caller")},
		{"another agent's", func(w *testkit.World) string { return quoted(w.Store.Tasks()[0].ConversationID) }, agent.Call{}, refusedWith("belongs to agent 'helper'")},
		{"no id at all", func(*testkit.World) string { return `"first"` }, agent.Call{}, refusedWith("invalid conversation id 'first': not a uuid")},
		{"a number", func(*testkit.World) string { return `17` }, agent.Call{}, refusedWith("argument 'conversation_id' must be a string, got number")},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := withSpec(hand("first"), testkit.Say("a"))
			spec := w.AddAgent("spec", nil, testkit.Say("one"), testkit.Say("two"))
			_, err := w.Ask("x")
			require.NoError(t, err)
			w.Model.Script(goOn(c.id(w)), testkit.Say("b"))
			c.call.Agent, c.call.Prompt = "helper", "y"
			if c.call.Caller.Role == "" {
				c.call.Caller = testkit.Ann
			}
			out, err := w.Service.Converse(context.Background(), c.call)
			require.NoError(t, err)
			require.Equal(t, "b", *out.Message)
			c.want(t, w, spec)
		})
	}
}

func contents(r agent.Request) []string {
	var all []string
	for _, m := range r.Messages {
		all = append(all, m.Content)
	}
	return all
}

func fresh(t *testing.T, _ *testkit.World, spec *testkit.Model) {
	t.Helper()
	require.Equal(t, []string{"You are spec.", "second"}, contents(spec.Requests()[1]))
}

func refusedWith(text string) func(*testing.T, *testkit.World, *testkit.Model) {
	return func(t *testing.T, w *testkit.World, spec *testkit.Model) {
		t.Helper()
		require.Len(t, spec.Requests(), 1)
		result := lastResult(t, w.Model, 3)
		require.True(t, strings.HasPrefix(result, "Tool error: "), result)
		require.Contains(t, result, text)
		require.Len(t, w.Store.Tasks(), 3, "a delegation that did not begin leaves no task")
	}
}

func TestDelegate_TwoCallsOfOneRunGoOnWithOneConversation(t *testing.T) {
	t.Parallel()
	id := testkit.ID(1 << 20).String()
	call := testkit.Call("spec", `{"prompt": "p", "conversation_id": "`+id+`"}`)
	w := withSpec(testkit.Use(call, call), testkit.Say("done"))
	spec := w.AddAgent("spec", nil, testkit.Say("one"), testkit.Say("two"))
	_, err := w.Ask("x")
	require.NoError(t, err)
	require.Equal(t, []string{"You are spec.", "p", "one", "p"}, contents(spec.Requests()[1]))
}

func TestDelegate_NotIntoAConversationThatIsInUse(t *testing.T) {
	t.Parallel()
	id := testkit.ID(1 << 20).String()
	again := testkit.Use(testkit.Call("helper", `{"prompt": "p", "conversation_id": "`+id+`"}`))
	w := testkit.NewWorld(nil, func(d *agent.Definition) { d.Delegates = []string{"helper"} }, again, testkit.Say("done"))
	out, err := w.Service.Converse(context.Background(), agent.Call{Agent: "helper", Prompt: "x", ConversationID: &id, Caller: testkit.Ann})
	require.NoError(t, err)
	require.Equal(t, "done", *out.Message)
	require.Equal(t, "Tool error: conversation '"+id+"' is in use by this very call", lastResult(t, w.Model, 1))
}

// chain defines n agents, each of which delegates to the next; the last one answers.
func chain(w *testkit.World, n int) {
	for i := 1; i <= n; i++ {
		next := fmt.Sprintf("a%d", i+1)
		if i == n {
			w.AddAgent(fmt.Sprintf("a%d", i), nil, testkit.Say("end"))
			return
		}
		w.AddAgent(fmt.Sprintf("a%d", i), func(d *agent.Definition) { d.Delegates = []string{next} },
			testkit.Use(testkit.Call(next, `{"prompt": "on"}`)), testkit.Say("end"))
	}
}

func TestDelegate_Depth(t *testing.T) {
	t.Parallel()
	for _, n := range []int{10, 11} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			w := testkit.NewWorld(nil, func(d *agent.Definition) { d.Delegates = []string{"a1"} },
				testkit.Use(testkit.Call("a1", `{"prompt": "on"}`)), testkit.Say("done"))
			chain(w, n)
			out, err := w.Ask("x")
			require.NoError(t, err)
			require.Len(t, w.Store.Tasks(), 11)
			status, denied := "SUCCESS", 0
			if n == 10 {
				require.Equal(t, "done", *out.Message)
			} else {
				status, denied = "ERROR", 1
				require.Equal(t, "delegation depth limit (10) exceeded", *out.Error)
				require.Len(t, w.Model.Requests(), 1, "no model is asked again")
			}
			for _, task := range w.Store.Tasks() {
				require.Equal(t, status, task.End.Status)
			}
			for _, d := range w.Trail.Records() {
				if d.Status == decision.Denied {
					denied--
					require.Equal(t, []string{"a10", "a11", decision.DelegationDepth, "53400"}, []string{d.Agent, d.Object, d.Reason, d.SQLState})
				}
			}
			require.Zero(t, denied)
		})
	}
}

func TestDelegate_Role(t *testing.T) {
	t.Parallel()
	purposeOf := func(name, role string) *agent.PurposeState {
		return &agent.PurposeState{Name: name, Registered: true, Role: role, RoleID: "1" + role, Elevated: role == "big"}
	}
	retired := purposeOf("child", "small")
	retired.Retired = true
	cases := []struct {
		name      string
		narrowest bool
		above     *agent.PurposeState
		own       *agent.PurposeState
		want      string // purpose role role id elevated
		refused   string
	}{
		{"the role above wins", false, purposeOf("parent", "big"), purposeOf("child", "small"), "parent big 1big true", ""},
		{"and the caller does, too", false, nil, purposeOf("child", "small"), "   false", ""},
		{"without a purpose of its own", false, purposeOf("parent", "big"), nil, "parent big 1big true", ""},
		{"its own is not even read", false, purposeOf("parent", "big"), retired, "parent big 1big true", ""},
		{"nor whether it is registered", false, nil, &agent.PurposeState{Name: "child"}, "   false", ""},
		{"narrowest: its own is a part of the role above", true, purposeOf("parent", "big"), purposeOf("child", "small"), "child small 1small false", ""},
		{"narrowest: its own is not", true, purposeOf("parent", "small"), purposeOf("child", "big"), "parent small 1small false", ""},
		{"narrowest: a part of the caller", true, nil, purposeOf("child", "small"), "child small 1small false", ""},
		{"narrowest: no part of the caller", true, nil, purposeOf("child", "other"), "   false", ""},
		{"narrowest: without a purpose of its own", true, purposeOf("parent", "big"), nil, "parent big 1big true", ""},
		{"narrowest: retired", true, purposeOf("parent", "big"), retired, "", "purpose 'child' has been retired"},
		{"narrowest: unregistered", true, nil, &agent.PurposeState{Name: "child"}, "", "purpose 'child' is not registered"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := testkit.NewWorld(nil, func(d *agent.Definition) { d.Delegates, d.Purpose = []string{"spec"}, c.above }, hand("p"), testkit.Say("done"))
			w.AddAgent("spec", func(d *agent.Definition) { d.Purpose = c.own }, testkit.Say("inner"))
			w.Service.Narrowest = c.narrowest
			w.Store.Members = map[string][]string{"small": {"big", "ann"}}
			out, err := w.Ask("x")
			require.NoError(t, err)
			require.Equal(t, "done", *out.Message)
			task := w.Store.Tasks()[1]
			made := w.Trail.Records()[0]
			require.Equal(t, []string{"helper", decision.Delegation, "spec"}, []string{made.Agent, made.Point, made.Object})
			if c.refused != "" {
				require.Len(t, w.Toolboxes.Requests(), 1)
				require.Equal(t, "DENIED", task.End.Status)
				require.Equal(t, c.refused, task.End.Error)
				require.Equal(t, "Tool error: "+c.refused+" [decision_id="+made.ID.String()+"]", lastResult(t, w.Model, 1))
				require.Equal(t, []string{decision.Denied, decision.PurposeRefused, "42501"}, []string{made.Status, made.Reason, made.SQLState})
				return
			}
			require.Equal(t, decision.Allowed, made.Status)
			r := w.Toolboxes.Requests()[1]
			require.Equal(t, c.want, fmt.Sprint(r.Purpose, " ", r.Role, " ", r.RoleID, " ", r.Elevated))
			require.Equal(t, []string{r.Role, r.Purpose, "spec"}, []string{task.Role, task.Purpose, r.Agent})
		})
	}
}

func TestDelegate_ReadOnlyAndDebugGoDown(t *testing.T) {
	t.Parallel()
	w := withSpec(hand("p"), testkit.Say("done"))
	w.AddAgent("spec", nil, testkit.Say("inner"))
	out, err := w.Service.Converse(context.Background(), agent.Call{Agent: "helper", Prompt: "x", ReadOnly: ptr(true), Debug: true, Caller: testkit.Ann})
	require.NoError(t, err)
	require.Equal(t, "done", *out.Message)
	require.Nil(t, out.ConversationID)
	require.Empty(t, w.Store.Tasks())
	for _, r := range w.Toolboxes.Requests() {
		require.True(t, r.ReadOnly)
		require.Zero(t, r.TaskID)
	}
	require.Equal(t, `{"answer": "inner", "conversation_id": null}`, lastResult(t, w.Model, 1))
	require.Contains(t, w.Tracer.Notices(), "[answer] inner")
}

func TestDelegate_OutputTypesAreTheirOwn(t *testing.T) {
	t.Parallel()
	number := json.RawMessage(`{"fields": [{"name": "n", "type": "integer"}]}`)
	w := testkit.NewWorld(nil, func(d *agent.Definition) { d.Delegates = []string{"spec", "plain"} },
		testkit.Use(testkit.Call("spec", `{"prompt": "p"}`), testkit.Call("plain", `{"prompt": "p"}`)), testkit.Say(`{"n": 1}`))
	spec := w.AddAgent("spec", func(d *agent.Definition) { d.OutputType = number }, testkit.Say("seven"), testkit.Say("```\n{\"n\": 7}\n```"))
	w.AddAgent("plain", nil, testkit.Say("words"))
	out, err := w.Service.Converse(context.Background(), agent.Call{Agent: "helper", Prompt: "x", OutputType: number, Caller: testkit.Ann})
	require.NoError(t, err)
	require.Equal(t, `{"n": 1}`, *out.Message)
	require.Len(t, spec.Requests(), 2)
	results := contents(w.Model.Requests()[1])
	require.Contains(t, results[len(results)-2], `{"answer": "{\"n\": 7}", "conversation_id"`)
	require.Contains(t, results[len(results)-1], `{"answer": "words", "conversation_id"`)
}

func TestDelegate_Time(t *testing.T) {
	t.Parallel()
	hang := testkit.Turn{Do: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
	const own, above = "time budget exceeded: the call took longer than 1 seconds", "time budget exceeded: the agent that delegated this call has no time left"
	cases := []struct {
		name             string
		outer, inner     int // seconds; 0 is the default of 300
		strategy, below  string
		status, inStatus string
		outError, inErr  string
	}{
		{"its own is over", 0, 1, "", "", "SUCCESS", "TIMEOUT", "", own},
		{"the time above is over", 1, 0, "", "", "TIMEOUT", "TIMEOUT", own, above},
		{"also for a delegate that ignores budgets", 1, 0, "", "ignore", "TIMEOUT", "TIMEOUT", own, above},
		{"also for one that would summarize", 1, 0, "", "summarize", "TIMEOUT", "TIMEOUT", own, above},
		{"an agent above that ignores budgets sets no limit", 1, 1, "ignore", "", "SUCCESS", "TIMEOUT", "", own},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			set := func(d *agent.Definition, seconds int, strategy string) {
				if seconds > 0 {
					d.TimeoutSeconds = &seconds
				}
				d.Strategy = strategy
			}
			w := testkit.NewWorld(nil, func(d *agent.Definition) { d.Delegates = []string{"spec"}; set(d, c.outer, c.strategy) }, hand("p"), testkit.Say("done"))
			w.AddAgent("spec", func(d *agent.Definition) { set(d, c.inner, c.below) }, hang)
			// The deadlines are the real clock's here.
			w.Service.Clock = agent.SystemClock{}
			out, err := w.Ask("x")
			require.NoError(t, err)
			tasks := w.Store.Tasks()
			require.Equal(t, []string{c.status, c.inStatus}, []string{tasks[0].End.Status, tasks[1].End.Status})
			require.Equal(t, c.inErr, tasks[1].End.Error)
			if c.outError != "" {
				require.Equal(t, c.outError, *out.Error)
			} else {
				require.Equal(t, "Tool error: "+c.inErr, lastResult(t, w.Model, 1))
			}
		})
	}
}

func TestDelegate_WithoutATrailNothingIsRecorded(t *testing.T) {
	t.Parallel()
	w := withSpec(hand("p"), testkit.Say("done"))
	w.AddAgent("spec", nil, testkit.Fail(errors.New("odd")))
	w.Service.Decisions = nil
	out, err := w.Ask("x")
	require.NoError(t, err)
	require.Equal(t, "done", *out.Message)
	require.Equal(t, "Tool error: the model call failed: odd", lastResult(t, w.Model, 1))
}
