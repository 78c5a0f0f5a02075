package agent_test

// How runs end that do not end with an answer: raised, canceled, over their time, ended by a tool. And the service
// under odd texts and many callers.

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

func TestConverse_RaisesWhatIsTheEngines(t *testing.T) {
	t.Parallel()
	broken := fault.New(fault.Internal, "server process is going away")
	for _, operation := range []string{"agent", "conversation", "begin", "append", "finish"} {
		t.Run(operation, func(t *testing.T) {
			t.Parallel()
			w := testkit.NewWorld(nil, nil, testkit.Say("hi"))
			w.Store.Fail = func(o string) error {
				if o == operation {
					return broken
				}
				return nil
			}
			call := agent.Call{Agent: "helper", Prompt: "x", ConversationID: ptr(uuid.NewString()), Caller: testkit.Ann}
			out, err := w.Service.Converse(context.Background(), call)
			require.ErrorIs(t, err, broken)
			require.Equal(t, agent.Outcome{}, out)
		})
	}
	t.Run("journal, whatever the kind", func(t *testing.T) {
		t.Parallel()
		w := testkit.NewWorld(nil, nil, testkit.Say("hi"))
		w.Store.Fail = func(o string) error {
			if o == "finish" {
				return fault.New(fault.Privilege, "permission denied for table action_log")
			}
			return nil
		}
		_, err := w.Ask("x")
		require.ErrorContains(t, err, "permission denied")
	})
	t.Run("tool", func(t *testing.T) {
		t.Parallel()
		w := testkit.NewWorld(map[string]testkit.ToolFunc{"a": func(context.Context, string) (agent.Result, error) {
			return agent.Result{}, broken
		}}, nil, testkit.Use(testkit.Call("a", "{}")))
		_, err := w.Ask("x")
		require.ErrorIs(t, err, broken)
	})
	t.Run("model that was canceled by the server", func(t *testing.T) {
		t.Parallel()
		w := testkit.NewWorld(nil, nil, testkit.Fail(fault.New(fault.Canceled, "canceling statement due to user request")))
		_, err := w.Ask("x")
		require.Equal(t, fault.Canceled, fault.KindOf(err))
	})
}

func TestConverse_BusyConversationIsARow(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(nil, nil, testkit.Say("hi"))
	w.Store.Fail = func(o string) error {
		if o == "conversation" {
			return fault.New(fault.Busy, "canceling statement due to lock timeout")
		}
		return nil
	}
	out, err := w.Service.Converse(context.Background(),
		agent.Call{Agent: "helper", Prompt: "x", ConversationID: ptr(uuid.NewString()), Caller: testkit.Ann})
	require.NoError(t, err)
	require.Equal(t, "canceling statement due to lock timeout", *out.Error)
}

func TestConverse_CancelIsRaised(t *testing.T) {
	t.Parallel()
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	tools := map[string]testkit.ToolFunc{"a": func(ctx context.Context, _ string) (agent.Result, error) {
		return agent.Result{}, hang(ctx)
	}}
	asking := testkit.Use(testkit.Call("a", "{}"))
	thinking := testkit.Turn{Do: hang}
	for name, turn := range map[string]testkit.Turn{"while the model thinks": thinking, "in a tool": asking} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := testkit.NewWorld(tools, nil, turn)
			ctx, cancel := context.WithCancelCause(context.Background())
			time.AfterFunc(5*time.Millisecond, func() {
				cancel(fault.New(fault.Canceled, "canceling statement due to user request").WithState("57014"))
			})
			out, err := w.Service.Converse(ctx, agent.Call{Agent: "helper", Prompt: "x", Caller: testkit.Ann})
			require.EqualError(t, err, "canceling statement due to user request")
			require.Equal(t, "57014", fault.SQLState(err))
			require.Equal(t, agent.Outcome{}, out)
			require.Nil(t, w.Store.Tasks()[0].End)
		})
	}
	t.Run("without a cause", func(t *testing.T) {
		t.Parallel()
		w := testkit.NewWorld(nil, nil, thinking)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
		defer cancel()
		_, err := w.Service.Converse(ctx, agent.Call{Agent: "helper", Prompt: "x", Caller: testkit.Ann})
		require.Equal(t, fault.Canceled, fault.KindOf(err))
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestConverse_DeadlineReachesModelAndTool(t *testing.T) {
	t.Parallel()
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	tools := map[string]testkit.ToolFunc{"a": func(ctx context.Context, _ string) (agent.Result, error) {
		return agent.Result{}, hang(ctx)
	}}
	for name, turn := range map[string]testkit.Turn{"model": {Do: hang}, "tool": testkit.Use(testkit.Call("a", "{}"), testkit.Call("a", "{}"))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := testkit.NewWorld(tools, func(d *agent.Definition) { d.TimeoutSeconds = ptr(1) }, turn)
			out, err := w.Ask("x")
			require.NoError(t, err)
			require.Equal(t, "time budget exceeded: the call took longer than 1 seconds", *out.Error)
			task := w.Store.Tasks()[0]
			require.Equal(t, "TIMEOUT", task.End.Status)
			last := task.Records[len(task.Records)-1]
			require.Equal(t, conversation.Failure, last.Type)
			require.Equal(t, "TIMEOUT", last.Status)
			if name == "tool" {
				require.Contains(t, string(task.Records[4].Response), "stopped: the time budget was used up")
				require.Contains(t, string(task.Records[6].Response), "not run: the time budget was used up")
			}
		})
	}
}

func TestConverse_AToolMayEndTheRun(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(map[string]testkit.ToolFunc{"a": func(context.Context, string) (agent.Result, error) {
		return agent.Result{}, fault.New(fault.LimitExceeded, "delegation depth limit (10) exceeded")
	}}, nil, testkit.Use(testkit.Call("a", "{}"), testkit.Call("a", "{}")), testkit.Say("no"))
	out, err := w.Ask("x")
	require.NoError(t, err)
	require.Equal(t, "delegation depth limit (10) exceeded", *out.Error)
	require.Len(t, w.Toolboxes.Calls(), 1)
	require.Len(t, w.Model.Requests(), 1)
	require.Equal(t, "ERROR", w.Store.Tasks()[0].End.Status)
}

func TestConverse_LargeAndDirtyTexts(t *testing.T) {
	t.Parallel()
	prompt := strings.Repeat("0123456789abcdef", 1<<16)
	dirty := "a\x00b\xed\xa0\x80c\xff"
	w := testkit.NewWorld(map[string]testkit.ToolFunc{"a": testkit.Returns(dirty)}, nil,
		testkit.Use(conversation.ToolCall{ID: dirty, Name: "a", Arguments: `{"t":"x\u0000y\ud83d"}`},
			conversation.ToolCall{ID: "2", Name: strings.Repeat("n", 1<<20), Arguments: strings.Repeat("[", 1<<20)}),
		testkit.Say(dirty))
	call := agent.Call{Agent: "helper", Prompt: prompt, Debug: true, Caller: testkit.Ann}
	out, err := w.Service.Converse(context.Background(), call)
	require.NoError(t, err)
	require.Equal(t, "ab\uFFFDc\uFFFD", *out.Message)
	require.Equal(t, []string{`a {"t":"xy\ufffd"}`}, w.Toolboxes.Calls())
	for _, line := range w.Tracer.Notices() {
		require.Less(t, len(line), 9000)
		require.Equal(t, conversation.Clean(line), line)
	}
	for _, r := range w.Store.Tasks()[0].Records {
		require.Equal(t, conversation.Clean(string(r.Request)), string(r.Request))
		require.Equal(t, conversation.Clean(string(r.Response)), string(r.Response))
		require.True(t, r.Response == nil || json.Valid(r.Response))
		require.True(t, r.Request == nil || json.Valid(r.Request))
	}
}

func TestConverse_ManyAtOnceShareAService(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(map[string]testkit.ToolFunc{"a": testkit.Echo}, nil, testkit.Say("hi"))
	errs := make(chan error)
	const n = 32
	for range n {
		go func() {
			out, err := w.Ask("x")
			if err == nil && (out.Message == nil || *out.Message != "hi") {
				err = errors.New("wrong answer")
			}
			errs <- err
		}()
	}
	for range n {
		require.NoError(t, <-errs)
	}
	require.Len(t, w.Store.Tasks(), n)
}
