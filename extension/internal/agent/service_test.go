package agent_test

// The service with fakes: what a call is refused for, who may continue what, what is written, and what is raised.

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/testkit"
)

func ptr[T any](v T) *T { return &v }

func TestConverse_RefusesBeforeAnythingIsWritten(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ñ", 1<<19)
	cases := []struct {
		name  string
		call  agent.Call
		agent func(*agent.Definition)
		want  string
	}{
		{"no such agent", agent.Call{Agent: "ghost", Prompt: "hi"}, nil, "agent 'ghost' not found"},
		{"name of a megabyte", agent.Call{Agent: long, Prompt: "hi"}, nil, "agent '" + long[:200] + "…' not found"},
		{"disabled agent", agent.Call{Agent: "helper", Prompt: "hi"}, func(d *agent.Definition) { d.Enabled = false }, "agent 'helper' is disabled"},
		{"empty prompt", agent.Call{Agent: "helper"}, nil, "prompt must not be empty"},
		{"blank prompt", agent.Call{Agent: "helper", Prompt: " \n\t"}, nil, "prompt must not be empty"},
		{"prompt over the limit", agent.Call{Agent: "helper", Prompt: strings.Repeat("x", 8<<20+1)}, nil, "prompt is too long: 8388609 bytes, the limit is 8388608"},
		{"id that is no uuid", agent.Call{Agent: "helper", Prompt: "hi", ConversationID: ptr("42")}, nil, "invalid conversation id '42': not a uuid"},
		{"empty id", agent.Call{Agent: "helper", Prompt: "hi", ConversationID: ptr("")}, nil, "invalid conversation id '': not a uuid"},
		{"writing on a standby", agent.Call{Agent: "helper", Prompt: "hi", ReadOnly: ptr(false), InRecovery: true}, nil,
			"cannot run with read_only => false on a standby"},
		{"writing in a read-only transaction", agent.Call{Agent: "helper", Prompt: "hi", ReadOnly: ptr(false), CannotWrite: true}, nil,
			"cannot run with read_only => false in a read-only transaction"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := testkit.NewWorld(nil, c.agent, testkit.Say("hi"))
			out, err := w.Service.Converse(context.Background(), c.call)
			require.NoError(t, err)
			require.Equal(t, agent.Outcome{Error: &c.want}, out)
			require.Empty(t, w.Store.Tasks())
			require.Empty(t, w.Model.Requests())
		})
	}
}

func TestConverse_RefusalsThatAreLogged(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		agent  func(*agent.Definition)
		change func(*testkit.World)
		status string
		want   string
	}{
		{"model that is not registered", func(d *agent.Definition) { d.Model = nil }, nil, "ERROR", "Model not found: m"},
		{"model that cannot be opened", nil, func(w *testkit.World) {
			w.Service.Models = testkit.Models{Err: fault.New(fault.Unsupported, "no such provider")}
		}, "ERROR", "no such provider"},
		{"model adapter with an error of no kind", nil, func(w *testkit.World) {
			w.Service.Models = testkit.Models{Err: errors.New("odd")}
		}, "ERROR", "could not open model 'm': odd"},
		{"tools that cannot be opened", nil, func(w *testkit.World) {
			w.Toolboxes.Err = fault.New(fault.Unsupported, "no such tool kind")
		}, "ERROR", "no such tool kind"},
		{"retired purpose", func(d *agent.Definition) {
			d.Purpose = &agent.PurposeState{Name: "p", Registered: true, Retired: true, Role: "r"}
		}, nil, "DENIED", "purpose 'p' has been retired"},
		{"unregistered purpose", func(d *agent.Definition) { d.Purpose = &agent.PurposeState{Name: "p"} }, nil,
			"DENIED", "purpose 'p' is not registered"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := testkit.NewWorld(nil, c.agent, testkit.Say("hi"))
			if c.change != nil {
				c.change(w)
			}
			out, err := w.Ask("hello")
			require.NoError(t, err)
			require.Equal(t, agent.Outcome{Error: &c.want}, out)
			require.Empty(t, w.Model.Requests())
			tasks := w.Store.Tasks()
			require.Len(t, tasks, 1)
			require.Equal(t, c.status, tasks[0].End.Status)
			require.Equal(t, c.want, tasks[0].End.Error)
			require.Nil(t, tasks[0].End.AnswerID)
			require.Equal(t, []conversation.ActionType{conversation.UserPrompt, conversation.Failure}, types(tasks[0].Records))
		})
	}
}

func types(records []conversation.Record) []conversation.ActionType {
	var all []conversation.ActionType
	for _, r := range records {
		all = append(all, r.Type)
	}
	return all
}

func TestConverse_WritesTheLog(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(map[string]testkit.ToolFunc{"good": testkit.Returns(`[{"n": 1}]`), "bad": testkit.Raises("no table")},
		func(d *agent.Definition) {
			d.TimeoutSeconds = ptr(17)
			d.Purpose = &agent.PurposeState{Name: "p", Registered: true, Role: "r"}
		},
		testkit.Use(testkit.Call("good", `{"q":"x"}`), testkit.Call("bad", `[1]`)).Tokens(100, 20),
		testkit.Say("done").Tokens(300, 4))
	out, err := w.Ask("hello")
	require.NoError(t, err)
	require.Equal(t, "done", *out.Message)
	require.Nil(t, out.Error)

	task := w.Store.Tasks()[0]
	require.Equal(t, task.ConversationID.String(), *out.ConversationID)
	require.Equal(t, "r", task.Role)
	require.Equal(t, "p", task.Purpose)
	require.Equal(t, testkit.Ann, task.Caller)
	require.Equal(t, 17*time.Second, task.TimeoutAt.Sub(task.CreatedAt))
	require.Equal(t, agent.ToolboxRequest{Names: []string{"bad", "good"}, Role: "r", Purpose: "p", AgentID: task.AgentID,
		Agent: "helper", Caller: testkit.Ann, TaskID: task.ID, ConversationID: task.ConversationID,
		RootAgentID: task.AgentID, RootConversationID: task.ConversationID}, w.Toolboxes.Requests()[0])

	want := []struct {
		kind              conversation.ActionType
		request, response string
		status, error     string
		round             int
	}{
		{"user_prompt", `{"contents":"hello","user":"ann"}`, "", "SUCCESS", "", 0},
		{"model_request", `{"model":"m","round":1,"messages":2,"tools":["bad","good"]}`, "", "SUCCESS", "", 1},
		{"model_response", "", `{"contents":null,"tool_calls":[{"id":"call_1_1","name":"good","arguments":"{\"q\":\"x\"}"},` +
			`{"id":"call_1_2","name":"bad","arguments":"[1]"}],"finish_reason":"tool_calls","model":"scripted",` +
			`"usage":{"input":100,"output":20,"cached":null,"reasoning":null}}`, "SUCCESS", "", 1},
		{"tool_call", `{"tool_name":"good","arguments":{"q":"x"},"tool_call_id":"call_1_1"}`, "", "SUCCESS", "", 1},
		{"tool_response", `{"tool_name":"good","tool_call_id":"call_1_1"}`, `{"contents":"[{\"n\": 1}]"}`, "SUCCESS", "", 1},
		{"tool_call", `{"tool_name":"bad","arguments":"[1]","tool_call_id":"call_1_2"}`, "", "SUCCESS", "", 1},
		{"tool_response", `{"tool_name":"bad","tool_call_id":"call_1_2"}`, `{"error":"Tool error: no table"}`, "ERROR", "", 1},
		{"model_request", `{"model":"m","round":2,"messages":5,"tools":["bad","good"]}`, "", "SUCCESS", "", 2},
		{"model_response", "", `{"contents":"done","tool_calls":[],"finish_reason":"stop","model":"scripted",` +
			`"usage":{"input":300,"output":4,"cached":null,"reasoning":null}}`, "SUCCESS", "", 2},
		{"answer", "", `{"contents":"done"}`, "SUCCESS", "", 2},
	}
	require.Len(t, task.Records, len(want))
	sequences := map[int]uuid.UUID{}
	seen := map[uuid.UUID]bool{}
	last := task.CreatedAt.Add(-time.Nanosecond)
	for i, r := range task.Records {
		require.Equal(t, want[i].kind, r.Type)
		require.Equal(t, want[i].request, string(r.Request))
		require.Equal(t, want[i].response, string(r.Response))
		require.Equal(t, want[i].status, r.Status)
		require.Equal(t, want[i].error, r.Error)
		require.True(t, r.CreatedAt.After(last), "record %d: the order of the log is the order of its times", i)
		require.False(t, r.CompletedAt.Before(r.CreatedAt))
		require.Zero(t, r.CreatedAt.Nanosecond()%1000)
		last = r.CreatedAt
		require.False(t, seen[r.ID])
		seen[r.ID] = true
		if s, ok := sequences[want[i].round]; ok {
			require.Equal(t, s, r.Sequence)
		}
		sequences[want[i].round] = r.Sequence
		for _, payload := range []json.RawMessage{r.Request, r.Response} {
			require.True(t, payload == nil || json.Valid(payload))
		}
	}
	require.Len(t, sequences, 3)
	require.Equal(t, task.PromptID, task.Records[0].ID)
	require.Equal(t, &agent.TaskEnd{ID: task.ID, Status: "SUCCESS", PromptID: task.PromptID, AnswerID: &task.Records[9].ID,
		BudgetConsumed: 424, Usage: conversation.Usage{Input: ptr(int64(400)), Output: ptr(int64(24))}, Rounds: 2,
		CompletedAt: task.End.CompletedAt, TimeoutAt: task.TimeoutAt}, task.End)
	require.False(t, task.End.CompletedAt.Before(last))
}

type frozen struct{}

func (frozen) Now() time.Time { return testkit.Epoch }

func TestConverse_OrderDoesNotDependOnTheClock(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(map[string]testkit.ToolFunc{"a": testkit.Echo}, nil, testkit.Use(testkit.Call("a", "1")), testkit.Say("x"))
	w.Service.Clock = frozen{}
	w.Service.IDs = agent.UUIDv7{}
	_, err := w.Ask("x")
	require.NoError(t, err)
	records := w.Store.Tasks()[0].Records
	for i, r := range records {
		require.Equal(t, testkit.Epoch.Add(time.Duration(i)*time.Microsecond), r.CreatedAt)
		require.Equal(t, uuid.Version(7), r.ID.Version())
	}
	require.False(t, w.Store.Tasks()[0].End.CompletedAt.Before(records[len(records)-1].CreatedAt))
	require.WithinDuration(t, time.Now(), agent.SystemClock{}.Now(), time.Minute)
}

func TestConverse_ContinuesAConversation(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(map[string]testkit.ToolFunc{"a": testkit.Returns("A")}, nil,
		testkit.Use(testkit.Call("a", `{}`)), testkit.Say("first answer"), testkit.Say("second answer"))
	first, err := w.Ask("first")
	require.NoError(t, err)
	call := agent.Call{Agent: "helper", Prompt: "second", ConversationID: first.ConversationID, Caller: testkit.Ann}
	second, err := w.Service.Converse(context.Background(), call)
	require.NoError(t, err)
	require.Equal(t, first.ConversationID, second.ConversationID)
	var said []string
	for _, m := range w.Model.Requests()[2].Messages {
		said = append(said, string(m.Role)+": "+m.Content)
	}
	require.Equal(t, []string{"system: You help.", "user: first", "assistant: ", "tool: A", "assistant: first answer", "user: second"}, said)
}

func TestConverse_AnIdNobodyUsedYetBegins(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(nil, nil, testkit.Say("hi"))
	for _, id := range []string{"8f14e45f-ceea-467e-9575-a3d1a2c1a123", "{8F14E45F-CEEA-467E-9575-A3D1A2C1A124}"} {
		out, err := w.Service.Converse(context.Background(), agent.Call{Agent: "helper", Prompt: "x", ConversationID: &id, Caller: testkit.Ann})
		require.NoError(t, err)
		require.Equal(t, strings.ToLower(strings.Trim(id, "{}")), *out.ConversationID)
	}
}

func TestConverse_ConversationsHaveOwners(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		caller agent.Caller
		agent  string
		want   string
	}{
		{"another role", agent.Caller{Role: "bob", SessionUser: "bob"}, "helper", "belongs to another caller"},
		{"same login, another role", agent.Caller{Role: "bob", SessionUser: "ann"}, "helper", "belongs to another caller"},
		{"same role, another login", agent.Caller{Role: "ann", SessionUser: "pool"}, "helper", "belongs to another caller"},
		{"same role, another end user", agent.Caller{Role: "ann", SessionUser: "ann", Principal: "user:2"}, "helper", "belongs to another caller"},
		{"superuser", agent.Caller{Role: "postgres", SessionUser: "postgres", Superuser: true}, "helper", "belongs to another caller"},
		{"another agent", testkit.Ann, "other", "belongs to agent 'helper'"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := testkit.NewWorld(nil, nil, testkit.Say("secret"))
			w.Store.Define(agent.Definition{Name: "other", Enabled: true, Model: &agent.ModelRef{}})
			first, err := w.Ask("hello")
			require.NoError(t, err)
			out, err := w.Service.Converse(context.Background(), agent.Call{Agent: c.agent, Prompt: "what did she say?",
				ConversationID: first.ConversationID, Caller: c.caller})
			require.NoError(t, err)
			want := "conversation '" + *first.ConversationID + "' " + c.want
			require.Equal(t, agent.Outcome{Error: &want}, out)
			require.Len(t, w.Model.Requests(), 1)
			require.Len(t, w.Store.Tasks(), 1)
		})
	}
}

func TestConverse_ReadOnlyStoresNothing(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name     string
		readOnly *bool
		standby  bool
	}{{"asked for", ptr(true), false}, {"on a standby", nil, true}, {"asked for on a standby", ptr(true), true}}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := testkit.NewWorld(map[string]testkit.ToolFunc{"a": testkit.Returns("A")}, nil,
				testkit.Use(testkit.Call("a", "{}")), testkit.Say("seen"))
			out, err := w.Service.Converse(context.Background(), agent.Call{Agent: "helper", Prompt: "x", ReadOnly: c.readOnly,
				InRecovery: c.standby, Caller: testkit.Ann})
			require.NoError(t, err)
			require.Equal(t, agent.Outcome{Message: ptr("seen")}, out)
			require.Empty(t, w.Store.Tasks())
			r := w.Toolboxes.Requests()[0]
			require.True(t, r.ReadOnly)
			require.Equal(t, uuid.Nil, r.TaskID)
			require.Equal(t, uuid.Nil, r.ConversationID)
			require.Empty(t, w.Tracer.Notices())
		})
	}
}
