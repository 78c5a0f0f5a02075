package agent_test

// Transcripts: whole runs as text. A file in testdata begins with prose, which says what it pins; then come, each under
// a line "-- name --",
//
//	agent   settings, one "key: value" a line: tools, delegates, instructions, rounds, input, output, timeout, strategy,
//	        output_type, read_only
//	tools   what the tools do: "name = contents", "name ! error text", "name @seconds contents" (takes that long)
//	model   its turns, one a line: "say text", "use name {arguments} | name {arguments}", "fail text", each with
//	        "#in,out" for the tokens or "#length" for a finish reason at the end
//	agent NAME, model NAME
//	        another agent, for one to delegate to
//	told    "notes" shows what the system messages after the first one say beyond it
//	want    the debug lines, the warnings, the tools that ran, the status and what the caller gets
//
// go test -run Transcript -update rewrites the want parts; read the difference before you keep it.

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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

var update = flag.Bool("update", false, "rewrite the transcripts")

func TestTranscripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(file)
			require.NoError(t, err)
			prose, parts := sections(string(raw))
			require.NotEmpty(t, strings.TrimSpace(prose), "say what the transcript pins")
			got := perform(t, parts)
			if *update {
				head, _, _ := strings.Cut(string(raw), "-- want --\n")
				require.NoError(t, os.WriteFile(file, []byte(head+"-- want --\n"+got), 0o644))
				return
			}
			require.Equal(t, parts["want"], got)
		})
	}
}

func sections(raw string) (prose string, parts map[string]string) {
	parts = map[string]string{}
	name := ""
	for _, line := range strings.SplitAfter(raw, "\n") {
		if strings.HasPrefix(line, "-- ") && strings.HasSuffix(line, " --\n") {
			name = strings.TrimSuffix(strings.TrimPrefix(line, "-- "), " --\n")
			parts[name] += ""
			continue
		}
		if name == "" {
			prose += line
		} else {
			parts[name] += line
		}
	}
	return prose, parts
}

func lines(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == '\n' })
}

func perform(t *testing.T, parts map[string]string) string {
	t.Helper()
	var w *testkit.World
	clock := func() *testkit.Clock { return w.Clock }
	tools := map[string]testkit.ToolFunc{}
	for _, line := range lines(parts["tools"]) {
		name, does, _ := strings.Cut(line, " ")
		tools[name] = toolOf(t, clock, does)
	}
	var turns []testkit.Turn
	for _, line := range lines(parts["model"]) {
		turns = append(turns, turnOf(t, line))
	}
	call := agent.Call{Agent: "helper", Prompt: "go", Debug: true, Caller: testkit.Ann}
	w = testkit.NewWorld(tools, func(d *agent.Definition) { define(t, d, &call, parts["agent"]) }, turns...)
	for _, part := range slices.Sorted(maps.Keys(parts)) {
		if name, ok := strings.CutPrefix(part, "agent "); ok {
			var script []testkit.Turn
			for _, line := range lines(parts["model "+name]) {
				script = append(script, turnOf(t, line))
			}
			w.AddAgent(name, func(d *agent.Definition) { define(t, d, &call, parts[part]) }, script...)
		}
	}

	out, err := w.Service.Converse(context.Background(), call)
	require.NoError(t, err)
	var b strings.Builder
	for _, line := range w.Tracer.Notices() {
		fmt.Fprintln(&b, line)
	}
	for _, line := range w.Tracer.Warnings() {
		fmt.Fprintln(&b, "WARNING:", line)
	}
	for _, c := range w.Toolboxes.Calls() {
		fmt.Fprintln(&b, "ran:", c)
	}
	if requests := w.Model.Requests(); parts["told"] != "" {
		for _, r := range requests[1:] {
			note := strings.TrimPrefix(r.Messages[0].Content, requests[0].Messages[0].Content)
			fmt.Fprintln(&b, "told:", strings.Join(strings.Fields(note), " "))
		}
	}
	agents := map[uuid.UUID]string{}
	for _, task := range w.Store.Tasks() {
		require.NotNil(t, task.End)
		agents[task.ID] = task.Agent
		whose := ""
		if task.Parent != nil {
			whose = " of " + task.Agent + " for " + agents[*task.Parent]
		}
		fmt.Fprintf(&b, "task%s: %s rounds %d tokens %d\n", whose, task.End.Status, task.End.Rounds, task.End.BudgetConsumed)
	}
	for _, d := range w.Trail.Records() {
		fmt.Fprintln(&b, "decision:", strings.TrimSpace(strings.Join([]string{d.Agent, d.Point, d.Status, d.Object, d.Reason}, " ")))
	}
	if out.Error != nil {
		require.Nil(t, out.Message)
		fmt.Fprintln(&b, "error:", *out.Error)
	} else {
		fmt.Fprintln(&b, "message:", *out.Message)
	}
	return b.String()
}

func define(t *testing.T, d *agent.Definition, call *agent.Call, settings string) {
	t.Helper()
	for _, line := range lines(settings) {
		key, value, _ := strings.Cut(line, ": ")
		n, _ := strconv.Atoi(value)
		switch key {
		case "tools":
			d.Tools = strings.Fields(value)
		case "delegates":
			d.Delegates = strings.Fields(value)
		case "instructions":
			d.Instructions = value
		case "rounds":
			d.MaxIterations = &n
		case "input":
			d.InputTokenBudget = &n
		case "output":
			d.OutputTokenBudget = &n
		case "timeout":
			d.TimeoutSeconds = &n
		case "strategy":
			d.Strategy = value
		case "output_type":
			d.OutputType = json.RawMessage(value)
		case "read_only":
			yes := value == "true"
			call.ReadOnly = &yes
		default:
			require.Fail(t, "no such setting", key)
		}
	}
}

func toolOf(t *testing.T, clock func() *testkit.Clock, does string) testkit.ToolFunc {
	t.Helper()
	switch {
	case strings.HasPrefix(does, "= "):
		return testkit.Returns(does[2:])
	case strings.HasPrefix(does, "! "):
		return testkit.Raises(does[2:])
	case strings.HasPrefix(does, "@"):
		seconds, contents, _ := strings.Cut(does[1:], " ")
		n, err := strconv.Atoi(seconds)
		require.NoError(t, err)
		return func(context.Context, string) (agent.Result, error) {
			clock().Advance(time.Duration(n) * time.Second)
			return agent.Result{Contents: contents}, nil
		}
	}
	require.Fail(t, "no such tool", does)
	return nil
}

func turnOf(t *testing.T, line string) testkit.Turn {
	t.Helper()
	line, tag, _ := strings.Cut(line, " #")
	verb, rest, _ := strings.Cut(line, " ")
	var turn testkit.Turn
	switch verb {
	case "say":
		turn = testkit.Say(rest)
	case "use":
		var calls []conversation.ToolCall
		for _, c := range strings.Split(rest, " | ") {
			name, arguments, _ := strings.Cut(c, " ")
			calls = append(calls, testkit.Call(name, arguments))
		}
		turn = testkit.Use(calls...)
	case "fail":
		turn = testkit.Fail(fault.New(fault.ModelUnavailable, "%s", rest))
	default:
		require.Fail(t, "no such turn", line)
	}
	if in, out, ok := strings.Cut(tag, ","); ok {
		i, err := strconv.ParseInt(in, 10, 64)
		require.NoError(t, err)
		o, err := strconv.ParseInt(out, 10, 64)
		require.NoError(t, err)
		return turn.Tokens(i, o)
	}
	if tag != "" {
		return turn.Finish(tag)
	}
	return turn
}
