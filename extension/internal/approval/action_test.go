package approval

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aidb/extension/internal/fault"
)

func TestStanding_Judge(t *testing.T) {
	t.Parallel()
	good := Standing{Known: true, Actions: true, Class: Safe, Fallback: UnclassifiedAllow, Agent: "a", Enabled: true, Assigned: true}
	with := func(change func(*Standing)) Standing {
		s := good
		change(&s)
		return s
	}
	cases := []struct {
		name    string
		s       Standing
		verdict Verdict
		reason  string
	}{
		{"a safe tool runs", good, Run, ""},
		{"confirm asks", with(func(s *Standing) { s.Class = Confirm }), Ask, ""},
		{"forbidden is refused", with(func(s *Standing) { s.Class = Forbidden }), Run, ToolForbidden},
		{"nobody has said: it runs", with(func(s *Standing) { s.Class = "" }), Run, ""},
		{"nobody has said: it asks", with(func(s *Standing) { s.Class, s.Fallback = "", UnclassifiedConfirm }), Ask, ""},
		{"nobody has said: refused", with(func(s *Standing) { s.Class, s.Fallback = "", UnclassifiedDeny }), Run, ToolUnclassified},
		{"switched off", with(func(s *Standing) { s.Actions = false }), Run, ActionsOff},
		{"switched off asks nobody", with(func(s *Standing) { s.Actions, s.Class = false, Confirm }), Run, ActionsOff},
		{"reading goes on", with(func(s *Standing) { s.Actions, s.Class = false, Read }), Run, ""},
		{"the switch comes before the class", with(func(s *Standing) { s.Actions, s.Class = false, Forbidden }), Run, ActionsOff},
		{"the class before the agent", with(func(s *Standing) { s.Class, s.Enabled = Forbidden, false }), Run, ToolForbidden},
		{"a disabled agent", with(func(s *Standing) { s.Enabled, s.Assigned = false, false }), Run, AgentDisabled},
		{"a tool taken away", with(func(s *Standing) { s.Assigned = false }), Run, ToolNotAssigned},
		{"a tool that is gone", with(func(s *Standing) { s.Known = false }), Run, ToolNotAssigned},
		{"taken away before it asks", with(func(s *Standing) { s.Class, s.Assigned = Confirm, false }), Run, ToolNotAssigned},
		{"a person's own call asks nobody", with(func(s *Standing) { s.Class, s.Agent, s.Enabled, s.Assigned = Confirm, "", false, false }), Run, ""},
		{"a person's own call of what is forbidden", with(func(s *Standing) { s.Class, s.Agent = Forbidden, "" }), Run, ToolForbidden},
	}
	for _, c := range cases {
		v, reason, refusal := c.s.Judge("x")
		require.Equal(t, c.reason, reason, c.name)
		require.Equal(t, c.reason != "", refusal != nil, c.name)
		require.Equal(t, c.verdict, v, c.name)
	}
}

var (
	ann  = Person{"ann", "ann", "user:1"}
	noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
)

func waiting() *Action {
	return &Action{Requester: ann, Status: Pending, Token: "t", ExpiresAt: noon.Add(time.Minute), Steps: []Step{{1, "x", nil}, {2, "y", nil}}}
}

func TestMayConfirm(t *testing.T) {
	t.Parallel()
	four := waiting()
	four.Approvers = []string{"boss"}
	decided := waiting()
	decided.Status = Done
	cases := []struct {
		name     string
		a        *Action
		p        Person
		approves bool
		token    string
		at       time.Time
		state    string // "" may
	}{
		{"the person, in time", waiting(), ann, false, "t", noon, ""},
		{"at the last moment", waiting(), ann, false, "t", noon.Add(time.Minute), "55000"},
		{"a wrong token", waiting(), ann, false, "u", noon, "42501"},
		{"no token", waiting(), ann, false, "", noon, "42501"},
		{"a prefix", waiting(), ann, false, "tt", noon, "42501"},
		{"no such action", nil, ann, false, "", noon, "42501"},
		{"another role", waiting(), Person{"bob", "ann", "user:1"}, true, "t", noon, "42501"},
		{"another principal", waiting(), Person{"ann", "ann", "user:2"}, false, "t", noon, "42501"},
		{"used", decided, ann, false, "t", noon, "42501"},
		{"a stranger is not told that it has expired", waiting(), Person{"bob", "bob", "bob"}, false, "t", noon.Add(time.Hour), "42501"},
		{"four eyes: the requester", four, ann, true, "t", noon, "42501"},
		{"four eyes: another login of the role", four, Person{"bob", "bob", "bob"}, true, "t", noon, ""},
		{"four eyes: another login, not of the role", four, Person{"bob", "bob", "bob"}, false, "t", noon, "42501"},
		{"four eyes: the requester after SET ROLE", four, Person{"boss", "ann", "user:1"}, true, "t", noon, "42501"},
		{"four eyes: the requester as another principal", four, Person{"ann", "ann", "user:2"}, true, "t", noon, "42501"},
	}
	for _, c := range cases {
		err := MayConfirm(c.a, c.p, c.approves, c.token, c.at)
		if c.state == "" {
			require.NoError(t, err, c.name)
			continue
		}
		require.Error(t, err, c.name)
		require.Equal(t, c.state, fault.SQLState(err), c.name)
	}
	// an action whose token is gone cannot be confirmed with nothing
	bare := waiting()
	bare.Token = ""
	require.Error(t, MayConfirm(bare, ann, false, "", noon))
}

// What is refused is refused in one text: whoever guesses learns nothing from it.
func TestMayConfirm_SaysOneThing(t *testing.T) {
	t.Parallel()
	used := waiting()
	used.Status = Done
	want := MayConfirm(nil, ann, false, "x", noon).Error()
	for _, err := range []error{
		MayConfirm(waiting(), ann, false, "x", noon), MayConfirm(used, ann, false, "t", noon),
		MayConfirm(waiting(), Person{"bob", "bob", "bob"}, false, "t", noon),
	} {
		require.EqualError(t, err, want)
	}
}

func TestMayRejectAndUndo(t *testing.T) {
	t.Parallel()
	bob := Person{"bob", "bob", "bob"}
	four := waiting()
	four.Approvers = []string{"boss"}
	require.NoError(t, MayReject(waiting(), ann, false, noon))
	require.NoError(t, MayReject(four, ann, false, noon), "the requester takes it back")
	require.NoError(t, MayReject(four, bob, true, noon))
	require.Equal(t, "42501", fault.SQLState(MayReject(waiting(), bob, true, noon)))
	require.Equal(t, "42501", fault.SQLState(MayReject(nil, bob, false, noon)))
	require.Equal(t, "55000", fault.SQLState(MayReject(waiting(), ann, false, noon.Add(time.Hour))))

	ran := waiting()
	ran.Status, ran.DecidedBy, ran.Outcomes = Stopped, "boss", []Outcome{{Step: 1, Status: StepSuccess}, {Step: 2, Status: StepDenied}}
	require.NoError(t, MayUndo(ran, ann))
	require.NoError(t, MayUndo(ran, Person{"boss", "carl", "carl"}))
	require.Equal(t, "42501", fault.SQLState(MayUndo(ran, bob)))
	for _, s := range []Status{Pending, Rejected, Expired, Void, Undone} {
		a := waiting()
		a.Status = s
		require.Equal(t, "55000", fault.SQLState(MayUndo(a, ann)), s)
	}
	ran.Outcomes = ran.Outcomes[1:]
	require.Equal(t, "55000", fault.SQLState(MayUndo(ran, ann)), "nothing of it ran")
}

func TestEnded(t *testing.T) {
	t.Parallel()
	ok, bad := Outcome{Status: StepSuccess}, Outcome{Status: StepError}
	require.Equal(t, Done, Ended(2, []Outcome{ok, ok}, false))
	require.Equal(t, Stopped, Ended(2, []Outcome{ok, bad}, false))
	require.Equal(t, Stopped, Ended(2, []Outcome{bad}, false))
	require.Equal(t, Void, Ended(2, []Outcome{bad}, true))
	rest := Rest(waiting().Steps, []Outcome{bad})
	require.Len(t, rest, 2)
	require.Equal(t, StepCanceled, rest[1].Status)
}

func TestProof_Matches(t *testing.T) {
	t.Parallel()
	p := Proof{Kind: PreviewExecuted, Affected: 3, Print: 7}
	require.True(t, p.Matches(Proof{Affected: 3, Print: 7}))
	require.False(t, p.Matches(Proof{Affected: 2, Print: 7}))
	require.False(t, p.Matches(Proof{Affected: 3, Print: 8}))
	require.True(t, Proof{Kind: PreviewArguments}.Matches(p))
}

func TestParsePlan(t *testing.T) {
	t.Parallel()
	plan := func(n int) string {
		return `{"steps": [` + strings.TrimSuffix(strings.Repeat(`{"tool": "t", "args": {"n": 1}},`, n), ",") + `]}`
	}
	for n, want := range map[int]string{0: "one to 10 steps, not 0", 11: "one to 10 steps, not 11", 1: "", 10: ""} {
		steps, err := ParsePlan(plan(n))
		if want == "" {
			require.NoError(t, err)
			require.Len(t, steps, n)
			require.Equal(t, n, steps[n-1].N)
			continue
		}
		require.ErrorContains(t, err, want)
	}
	for text, want := range map[string]string{
		`x`:                         "not a JSON object",
		`[]`:                        "not a JSON object",
		`{}`:                        "missing argument 'steps'",
		`{"steps": null}`:           "missing argument 'steps'",
		`{"plan": []}`:              "unknown argument 'plan'",
		`{"steps": {}}`:             "must be an array",
		`{"steps": [1]}`:            "step 1 must be",
		`{"steps": [{"args": {}}]}`: "step 1 names no tool",
		`{"steps": [{"tool": "a", "arguments": {}}]}`: "step 1 must be",
	} {
		_, err := ParsePlan(text)
		require.ErrorContains(t, err, want, text)
	}
	steps, err := ParsePlan(`{"steps": "[{\"tool\": \"a\"}]"}`)
	require.NoError(t, err)
	require.Equal(t, []Step{{1, "a", json.RawMessage("{}")}}, steps)
}

func TestNote_IsBounded(t *testing.T) {
	t.Parallel()
	a := waiting()
	a.Status = Done
	for i := range 10 {
		a.Outcomes = append(a.Outcomes, Outcome{Step: i + 1, Tool: "x", Result: json.RawMessage(fmt.Sprintf("%q", strings.Repeat("a", 1<<20)))})
	}
	require.Less(t, len(Note(a)), maxNote+100)
	require.Contains(t, Note(a), "was confirmed and has run")
	for status, want := range map[Status]string{Rejected: "was not confirmed", Expired: "not confirmed in time", Void: "has changed", Stopped: "stopped", Undone: "was undone"} {
		a.Status = status
		require.Contains(t, Note(a), want)
	}
}
