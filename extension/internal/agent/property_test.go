package agent

// The log is the state: for random runs, the messages rebuilt from the log equal those that the run held, at the end
// and after every step, and whatever is sent to the model is in an order that every provider accepts.

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/structured"
)

// script makes the events of a random run.
type script struct {
	*rand.Rand
	at time.Time
}

func pick[T any](s *script, items ...T) T { return items[s.IntN(len(items))] }

// censor stands for the redactor: what the log holds is what the run held, without secrets.
func censor(s string) string { return strings.ReplaceAll(s, "fine", "good") }

func (s *script) text() string {
	return pick(s, "", "  \n", "fine", "NUL\x00here", "cut\xff\xed\xa0\x80", "quote \" back \\ tab\t", "ünïcode 🙂", "{\"a\":1}", "\u2028", "{\"a\":\"fine\"}")
}

func (s *script) reply() Reply {
	r := Reply{Content: s.text(), Model: "m" + s.text(), Finish: pick(s, FinishStop, FinishToolCalls, FinishStop, FinishLength, "weird")}
	if s.IntN(40) == 0 {
		r.Finish = FinishContentFilter
	}
	for range pick(s, 0, 0, 1, 1, 2, 3) {
		r.ToolCalls = append(r.ToolCalls, conversation.ToolCall{
			ID:        pick(s, "", "a", "b", "call_1_2", "x\x00"),
			Name:      pick(s, "t1", "t2", "missing", "", "bad\xffname"),
			Arguments: pick(s, "", "{}", `{"q":"x\u0000y","z":"\ud800"}`, `{"n":1e999999}`, "[1]", "{oops", `{"q":"fine"}`, `{"q": 1}`, "null"),
		})
	}
	if s.IntN(3) == 0 {
		in, out := s.Int64N(2000)-20, s.Int64N(200)-5
		r.Usage = conversation.Usage{Input: &in, Output: &out}
	}
	return r
}

func (s *script) limits() Limits {
	l := Limits{Timeout: time.Duration(1+s.IntN(300)) * time.Second,
		Strategy: pick(s, StrategyAttemptComplete, StrategyError, StrategySummarize, StrategyIgnore)}
	if s.IntN(2) == 0 {
		l.Rounds = 1 + s.IntN(30)
	}
	if s.IntN(3) == 0 {
		l.Input = 1 + s.Int64N(4000)
	}
	if s.IntN(3) == 0 {
		l.Output = 1 + s.Int64N(1000)
	}
	return l
}

// answer makes the event that answers an effect.
func (s *script) answer(e Effect) Event {
	s.at = s.at.Add(time.Duration(s.IntN(3000)) * time.Millisecond)
	switch e.(type) {
	case Ask:
		switch s.IntN(40) {
		case 0:
			return ModelFailed{At: s.at, Err: errors.New("odd\x00")}
		case 1:
			return ModelFailed{At: s.at, Err: fault.New(fault.ModelUnavailable, "down")}
		case 2:
			return TimeUp{At: s.at}
		case 3, 4, 5:
			return ModelFailed{At: s.at, Err: fault.New(fault.ModelOverflow, "too long")}
		}
		return Replied{At: s.at, Reply: s.reply()}
	case Run:
		switch s.IntN(60) {
		case 0:
			return ToolBroke{At: s.at, Err: fault.New(fault.LimitExceeded, "too deep")}
		case 1:
			return TimeUp{At: s.at}
		}
		if s.IntN(3) == 0 {
			return ToolDone{At: s.at, Result: Result{Error: pick(s, "no", "Tool error: no", "x\x00y")}}
		}
		return ToolDone{At: s.at, Result: Result{Contents: pick(s, "", "[]", `[{"a": 1}]`, "N\x00L", "\xc3\x28")}}
	}
	return nil
}

func TestProperty_LogIsTheState(t *testing.T) {
	t.Parallel()
	output, err := structured.Compile([]byte(`{"properties":{"a":{"type":"integer"}},"required":["a"]}`))
	require.NoError(t, err)
	statuses, compactions := map[string]int{}, map[string]int{}
	for seed := range uint64(800) {
		s := &script{Rand: rand.New(rand.NewPCG(seed, 7)), at: time.Unix(0, 0)}
		var log []conversation.Record
		// Several calls on one conversation: the history of each is the log of those before.
		for call := range 4 {
			state := NewState(Config{
				Agent: "a", Instructions: pick(s, "", "You help."), User: "ann", Prompt: fmt.Sprintf("prompt %d", call),
				History: conversation.Rebuild(log), Tools: []ToolSpec{{Name: "t1"}, {Name: "t2"}},
				Limits: s.limits(), Deadline: s.at.Add(60 * time.Second), Bound: pick(s, time.Time{}, time.Time{}, s.at.Add(20*time.Second)),
				Output: pick(s, nil, output), Debug: seed%2 == 0, Redact: censor,
				Compaction: Compaction{Context: pick[int64](s, 0, 0, 20, 60, 200, 1000), CompactionSettings: CompactionSettings{
					Threshold: pick(s, 0, 0.3, 1), KeepTurns: s.IntN(4), Pin: pick(s, nil, []string{"t1"}, []string{"missing", "t2"})}},
			})
			end := play(t, s, state, &log)
			statuses[end.Status]++
			for _, r := range log {
				if r.Type == conversation.Compaction {
					var p struct{ Reason string }
					require.NoError(t, json.Unmarshal(r.Request, &p))
					compactions[p.Reason]++
				}
			}
			held := slices.Clone(state.Messages())
			for i, m := range held {
				held[i].Content, held[i].ToolCalls = censor(m.Content), state.redactCalls(m.ToolCalls)
			}
			require.Equal(t, held, conversation.Rebuild(log), "seed %d", seed)
		}
	}
	for _, reason := range []string{conversation.CompactedForSize, conversation.CompactedForOverflow} {
		require.NotZero(t, compactions[reason], "no conversation was compacted for %s", reason)
	}
	for _, status := range []string{conversation.StatusSuccess, conversation.StatusError, conversation.StatusTimeout} {
		require.NotZero(t, statuses[status], "the scripts are too tame: no run ended with %s", status)
	}
}

// play drives a run to its end, and checks what holds at every step.
func play(t *testing.T, s *script, state *State, log *[]conversation.Record) Finish {
	t.Helper()
	asked, answered, overflows := 0, 0, 0
	var event Event = Started{At: s.at}
	for range 10_000 {
		var next Effect
		for _, effect := range state.Step(event) {
			require.Nil(t, next, "Ask, Run and Finish come last")
			switch e := effect.(type) {
			case Log:
				if e.Type == conversation.Answer || e.Type == conversation.Failure {
					answered++
				}
				id := uuid.UUID{15: byte(len(*log)), 14: byte(len(*log) >> 8), 0: 1}
				state.Logged(e, id)
				*log = append(*log, conversation.Record{ID: id, Type: e.Type, Request: e.Request, Response: e.Response, Status: e.Status, Error: e.Error})
				if s.IntN(20) == 0 {
					rebuilt := conversation.Rebuild(*log)
					require.Equal(t, rebuilt, conversation.Repair(rebuilt), "a log cut anywhere gives a history in order")
				}
			case Warn, Extend:
			default:
				next = effect
			}
		}
		switch e := next.(type) {
		case Ask:
			checkRequest(t, e.Request)
			if e.Summary {
				require.Less(t, len(e.Request.Messages[1].Content), maxSummarized+minSummarized)
				break
			}
			asked++
			require.True(t, slices.ContainsFunc(e.Request.Messages, func(m conversation.Message) bool { return m.Content == state.cfg.Prompt }),
				"the prompt in hand stays")
			require.True(t, state.cfg.Instructions == "" || strings.HasPrefix(e.Request.Messages[0].Content, state.cfg.Instructions))
			require.LessOrEqual(t, asked, maxRounds+maxClosing+maxUnclassified-1+overflows)
		case Finish:
			require.Equal(t, 1, answered, "the last record is the answer or the error, and the only one")
			last := (*log)[len(*log)-1]
			if e.Err == nil {
				require.Equal(t, conversation.Answer, last.Type)
				require.NotEmpty(t, e.Answer)
				if state.cfg.Output != nil {
					_, err := state.cfg.Output.Read(e.Answer)
					require.NoError(t, err, "an answer that is passed on is of the output type")
				}
			} else {
				require.Equal(t, conversation.Failure, last.Type)
				require.NotEmpty(t, e.Err.Message)
			}
			require.Empty(t, state.Step(Started{At: s.at}), "nothing happens after the end")
			return e
		}
		event = s.answer(next)
		require.NotNil(t, event)
		if f, ok := event.(ModelFailed); ok && fault.Is(f.Err, fault.ModelOverflow) {
			overflows++
		}
	}
	require.Fail(t, "the run does not end")
	return Finish{}
}

func checkRequest(t *testing.T, r Request) {
	t.Helper()
	messages := r.Messages
	if messages[0].Role == conversation.System {
		require.NotEmpty(t, messages[0].Content)
		messages = messages[1:]
	}
	repaired := conversation.Repair(messages)
	require.Len(t, repaired, len(messages))
	require.Same(t, &messages[0], &repaired[0], "a history in order is not copied")
	require.NotEqual(t, conversation.Assistant, messages[len(messages)-1].Role, "the model is not asked to follow itself")
	for _, m := range messages {
		require.Equal(t, conversation.Clean(m.Content), m.Content)
	}
}
