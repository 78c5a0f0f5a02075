package agent

// A run that is cut off after any of its steps goes on as it would have: the machine to which the log of the steps was
// handed asks for the same as the one that took them, and holds the same messages.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"aidb/extension/internal/conversation"
	"aidb/extension/internal/redact"
	"aidb/extension/internal/structured"
)

// step is a run after one of its steps: how much of the log there was, and what was asked for.
type step struct {
	logged   int
	next     Effect
	messages []conversation.Message
	round    int
	spent    spent
}

// steps drives a run to its end and keeps every step of it.
func (s *script) steps(state *State) (log []conversation.Record, taken []step) {
	var event Event = Started{At: s.at}
	for event != nil {
		var next Effect
		for _, effect := range state.Step(event) {
			switch e := effect.(type) {
			case Log:
				id := uuid.New()
				state.Logged(e, id)
				log = append(log, conversation.Record{
					ID: id, Type: e.Type, Request: e.Request, Response: e.Response, Status: e.Status, Error: e.Error, CreatedAt: s.at, CompletedAt: s.at,
				})
			case Warn, Extend:
			default:
				next = effect
			}
		}
		taken = append(taken, step{
			logged: len(log), next: next, messages: append([]conversation.Message{}, state.Messages()...), round: state.round, spent: state.spent,
		})
		if _, over := next.(Finish); over {
			return log, taken
		}
		event = s.answer(next)
		for _, late := event.(TimeUp); late; _, late = event.(TimeUp) {
			event = s.answer(next) // what is cut short by its deadline is tried with a real one
		}
	}
	return log, taken
}

// fixed is a clock that stands still.
type fixed struct{ at time.Time }

func (f fixed) Now() time.Time { return f.at }

func TestProperty_ARunThatIsCutOffGoesOn(t *testing.T) {
	t.Parallel()
	output, err := structured.Compile([]byte(`{"properties":{"a":{"type":"integer"}},"required":["a"]}`))
	require.NoError(t, err)
	resumed := 0
	for seed := range uint64(300) {
		s := &script{Rand: rand.New(rand.NewPCG(seed, 11)), at: time.Unix(1000, 0)}
		cfg := Config{
			Agent: "a", Instructions: pick(s, "", "You help."), User: "ann", Prompt: "go", Tools: []ToolSpec{{Name: "t1"}, {Name: "t2"}},
			Limits: s.limits(), Deadline: s.at.Add(60 * time.Second), Output: pick(s, nil, output),
		}
		log, taken := s.steps(NewState(cfg))
		for i, want := range taken[:len(taken)-1] {
			r := &run{
				service: &Service{Clock: fixed{log[want.logged-1].CompletedAt}}, deadline: cfg.Deadline, limits: cfg.Limits,
				state: NewState(cfg), past: &Past{Records: log[:want.logged]},
			}
			next, err := r.resume(context.Background(), Started{At: cfg.Deadline})
			require.NoError(t, err)
			at := fmt.Sprintf("seed %d, step %d of %d", seed, i, len(taken))
			require.IsType(t, want.next, next, at)
			if call, ok := want.next.(Run); ok {
				require.Equal(t, call, next, at)
			}
			require.Equal(t, texts(want.messages), texts(r.state.Messages()), at)
			require.Equal(t, want.round, r.state.round, at)
			// the size of a summary is estimated from what was kept of it
			require.InDelta(t, want.spent.input, r.state.spent.input, 20, at)
			require.InDelta(t, want.spent.output, r.state.spent.output, 20, at)
			resumed++
		}
	}
	require.Greater(t, resumed, 1000)
}

// texts leaves out the ids, which the log of a test does not keep.
func texts(messages []conversation.Message) []conversation.Message {
	out := make([]conversation.Message, len(messages))
	for i, m := range messages {
		m.ID = uuid.Nil
		out[i] = m
	}
	return out
}

// The log keeps no secrets, so a call that had one cannot be made from it.
func TestResume_DoesNotRunWhatTheLogForgot(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	cfg := Config{
		Agent: "a", Prompt: "go", Tools: []ToolSpec{{Name: "t1"}}, Limits: Limits{Strategy: StrategyError, Timeout: time.Hour}, Deadline: at.Add(time.Hour),
		Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", redact.Mark) },
	}
	state := NewState(cfg)
	var log []conversation.Record
	keep := func(effects []Effect) {
		for _, effect := range effects {
			if l, ok := effect.(Log); ok {
				id := uuid.New()
				state.Logged(l, id)
				log = append(log, conversation.Record{ID: id, Type: l.Type, Request: l.Request, Response: l.Response, CreatedAt: at, CompletedAt: at})
			}
		}
	}
	keep(state.Step(Started{At: at}))
	keep(state.Step(Replied{At: at, Reply: Reply{ToolCalls: []conversation.ToolCall{
		{ID: "1", Name: "t1", Arguments: `{"p":"hunter2"}`}, {ID: "2", Name: "t1", Arguments: `{"p":"x"}`}, {ID: "3", Name: "t1", Arguments: `{"q":"hunter2"}`}}}}))
	r := &run{service: &Service{Clock: fixed{at}}, deadline: cfg.Deadline, limits: cfg.Limits, state: NewState(cfg), past: &Past{Records: log}}
	next, err := r.resume(context.Background(), Started{At: at})
	require.NoError(t, err)
	require.Equal(t, "2", next.(Run).Call.ID)
	r.state.Step(ToolDone{At: at, Result: Result{Contents: "fine"}})
	messages := r.state.Messages()
	require.Contains(t, messages[2].Content, "make the call again")
	require.Equal(t, "fine", messages[3].Content)
	require.Contains(t, messages[4].Content, "make the call again")

	// What the model asks for next may hold what it likes.
	last := r.state.Step(Replied{At: at, Reply: Reply{ToolCalls: []conversation.ToolCall{{ID: "4", Name: "t1", Arguments: `{"p":"[redacted]"}`}}}})
	require.IsType(t, Run{}, last[len(last)-1])
}
