package agent_test

// What a delegate that fails, or cannot begin, means for its caller.

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/testkit"
)

func TestDelegate_WhatIsGoneMeanwhile(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*testkit.World){
		"agent 'spec' not found":   func(w *testkit.World) { w.Store.Delete("spec") },
		"agent 'spec' is disabled": func(w *testkit.World) { w.AddAgent("spec", func(d *agent.Definition) { d.Enabled = false }) },
		"Model not found: gone": func(w *testkit.World) {
			w.AddAgent("spec", func(d *agent.Definition) { d.Model, d.ModelName = nil, "gone" })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var w *testkit.World
			first := hand("p")
			first.Do = func(context.Context) error { change(w); return nil }
			w = withSpec(first, testkit.Say("done"))
			w.AddAgent("spec", nil, testkit.Say("never"))
			out, err := w.Ask("x")
			require.NoError(t, err)
			require.Equal(t, "done", *out.Message)
			require.Equal(t, "Tool error: "+name, lastResult(t, w.Model, 1))
		})
	}
}

func TestDelegate_RaisesWhatIsTheEngines(t *testing.T) {
	t.Parallel()
	broken := fault.New(fault.Internal, "server process is going away")
	for operation, nth := range map[string]int{"agent": 2, "conversation": 1, "delegates": 1, "narrower": 1, "begin": 2, "append": 4, "finish": 1} {
		t.Run(operation, func(t *testing.T) {
			t.Parallel()
			w := withSpec(testkit.Use(testkit.Call("spec", `{"prompt": "p", "conversation_id": "`+testkit.ID(77).String()+`"}`)), testkit.Say("done"))
			w.AddAgent("spec", func(d *agent.Definition) { d.Purpose = &agent.PurposeState{Name: "p", Registered: true, Role: "r"} }, testkit.Say("inner"))
			w.Service.Narrowest = true
			seen := 0
			w.Store.Fail = func(o string) error {
				if o == operation {
					if seen++; seen == nth {
						return broken
					}
				}
				return nil
			}
			_, err := w.Ask("x")
			require.ErrorIs(t, err, broken)
		})
	}
	t.Run("cancel", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancelCause(context.Background())
		w := withSpec(hand("p"))
		w.AddAgent("spec", nil, testkit.Turn{Do: func(ctx context.Context) error {
			cancel(fault.New(fault.Canceled, "canceling statement due to user request"))
			<-ctx.Done()
			return ctx.Err()
		}})
		_, err := w.Service.Converse(ctx, agent.Call{Agent: "helper", Prompt: "x", Caller: testkit.Ann})
		require.EqualError(t, err, "canceling statement due to user request")
		for _, task := range w.Store.Tasks() {
			require.Nil(t, task.End)
		}
	})
	t.Run("also when the time above is over meanwhile", func(t *testing.T) {
		t.Parallel()
		one, begin := 1, hand("p")
		var timed context.Context
		begin.Do = func(ctx context.Context) error {
			timed = ctx
			return nil
		}
		w := testkit.NewWorld(nil, func(d *agent.Definition) { d.Delegates, d.TimeoutSeconds = []string{"spec"}, &one }, begin)
		w.AddAgent("spec", nil, testkit.Say("inner"))
		w.Service.Clock = agent.SystemClock{}
		w.Store.Fail = func(o string) error {
			if o == "finish" {
				<-timed.Done()
				return broken
			}
			return nil
		}
		_, err := w.Ask("x")
		require.ErrorIs(t, err, broken)
	})
}

func TestDelegate_ABusyConversationIsAToolError(t *testing.T) {
	t.Parallel()
	w := withSpec(testkit.Use(testkit.Call("spec", `{"prompt": "p", "conversation_id": "`+testkit.ID(77).String()+`"}`)), testkit.Say("done"))
	w.AddAgent("spec", nil, testkit.Say("inner"))
	w.Store.Fail = func(o string) error {
		if o == "conversation" {
			return fault.New(fault.Busy, "canceling statement due to lock timeout")
		}
		return nil
	}
	out, err := w.Ask("x")
	require.NoError(t, err)
	require.Equal(t, "done", *out.Message)
	require.Equal(t, "Tool error: canceling statement due to lock timeout", lastResult(t, w.Model, 1))
}
