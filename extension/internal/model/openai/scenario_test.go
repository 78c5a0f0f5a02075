package openai

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/schema"
	"aidb/extension/internal/tool"
)

// The scenarios are recordings of what servers send, served by a script of their own. They are optional: where
// ../shared is not there, the tables in this package's other tests cover the same kinds.

// scenario is one file, as far as a client needs it.
type scenario struct {
	Name  string
	Kind  string
	Level string
	Agent struct {
		System, Prompt string
		Tools          []struct {
			Name, Description string
			Parameters        json.RawMessage
			Stub              struct {
				Returns json.RawMessage
				Raises  string
				Echo    bool
				Repeat  []any
			}
		}
		History []struct {
			Role       string
			Content    any
			ToolCallID string `json:"tool_call_id"`
			ToolCalls  []struct {
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		MaxRounds      int   `json:"max_rounds"`
		MaxToolCalls   int   `json:"max_tool_calls"`
		MaxTotalTokens int64 `json:"max_total_tokens"`
		TimeoutMS      int   `json:"timeout_ms"`
		Retry          struct {
			Max    int
			BaseMS int `json:"base_ms"`
			MaxMS  int `json:"max_ms"`
		}
		OutputSchema       json.RawMessage `json:"output_schema"`
		Temperature        json.RawMessage
		MaxOutputTokens    int    `json:"max_output_tokens"`
		APIKey             string `json:"api_key"`
		MaxToolResultBytes int    `json:"max_tool_result_bytes"`
	}
	Steps  []json.RawMessage
	Expect expectation
	Accept []expectation
}

// ran is what happened.
type ran struct {
	answer   string
	err      error
	calls    []map[string]any
	requests int
	retries  int
	elapsed  time.Duration
	usage    map[string]*int64
	all      string // every text that was seen
}

func TestScenarios(t *testing.T) {
	dir := findScenarios(t)
	base := serveScenarios(t, dir)
	files, err := filepath.Glob(filepath.Join(dir, "[0-9]*.json"))
	require.NoError(t, err)
	sort.Strings(files)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		var s scenario
		require.NoError(t, json.Unmarshal(raw, &s))
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			run := s.Name + "@go"
			got := s.run(t, base, run)
			problems := got.against(s.Expect)
			for i := 0; len(problems) > 0 && i < len(s.Accept); i++ {
				if len(got.against(s.Accept[i])) == 0 {
					problems = nil
				}
			}
			problems = append(problems, failures(t, base, run)...)
			if len(problems) > 0 {
				msg := fmt.Sprintf("level %s: %s\nanswer %q error %v calls %v requests %d", s.Level, strings.Join(problems, "; "), got.answer, got.err, got.calls, got.requests)
				if s.Level == "must" || s.Level == "should" {
					t.Error(msg)
				} else {
					t.Log(msg)
				}
			}
		})
	}
}

func findScenarios(t *testing.T) string {
	dir, err := os.Getwd()
	require.NoError(t, err)
	for ; filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		try := filepath.Join(dir, "shared", "cases", "wire")
		if _, err := os.Stat(filepath.Join(try, "serve.py")); err == nil {
			return try
		}
	}
	t.Skip("no shared/cases/wire beside the repository")
	return ""
}

// serveScenarios starts the script on a free port and returns the server's address.
func serveScenarios(t *testing.T, dir string) string {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	cmd := exec.Command(python, filepath.Join(dir, "serve.py"), "--port", "0", "--record", filepath.Join(t.TempDir(), "requests.jsonl"), "--max-seconds", "300")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan(), "the scenario server did not start")
	at := regexp.MustCompile(`http://[0-9.:]+`).FindString(lines.Text())
	require.NotEmpty(t, at, lines.Text())
	return at
}

// failures asks the server what it did not like.
func failures(t *testing.T, base, run string) []string {
	resp, err := http.Get(base + "/__state/" + run)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	var state struct{ Failures []string }
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&state))
	return state.Failures
}

func requests(t *testing.T, base, run string) int {
	resp, err := http.Get(base + "/__state/" + run)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	var state struct{ Requests int }
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&state))
	return state.Requests
}

// run is the smallest loop that does what a scenario needs; the real one is package agent's.
func (s *scenario) run(t *testing.T, base, run string) *ran {
	got := &ran{usage: map[string]*int64{}, calls: []map[string]any{}}
	a := &s.Agent
	cfg := map[string]any{"model": run, "url": base + "/v1"}
	if len(a.Temperature) > 0 {
		cfg["temperature"] = a.Temperature
	}
	if a.MaxOutputTokens > 0 {
		cfg["max_tokens"] = map[string]any{"size": a.MaxOutputTokens}
	}
	raw, err := json.Marshal(cfg)
	require.NoError(t, err)
	timeout := time.Duration(a.TimeoutMS) * time.Millisecond
	if strings.Contains(s.Name, "gzip") {
		timeout *= 10 // the script needs seconds to make the body
	}
	p := NewProvider(Options{
		RequestTimeout: timeout,
		Retry:          Retry{Tries: a.Retry.Max, Base: time.Duration(a.Retry.BaseMS) * time.Millisecond, Max: time.Duration(a.Retry.MaxMS) * time.Millisecond},
		OnRetry:        func(_ context.Context, e RetryEvent) { got.retries++; got.all += e.Err.Error() },
	})
	t.Cleanup(p.Close)
	model, err := p.Open(agent.ModelRef{Name: "m", Config: raw}, Credentials{APIKey: a.APIKey})
	require.NoError(t, err)
	start := time.Now()
	got.answer, got.err = s.loop(t, model, got)
	got.elapsed = time.Since(start)
	got.requests = requests(t, base, run)
	got.all += got.answer
	if got.err != nil {
		var f *fault.Error
		require.True(t, errors.As(got.err, &f), "an error without a kind: %v", got.err)
		got.all += f.Message + f.Detail + f.Hint
	}
	return got
}

func (s *scenario) loop(t *testing.T, model agent.Model, got *ran) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	a := &s.Agent
	messages := []conversation.Message{{Role: conversation.System, Content: a.System}}
	for _, h := range a.History {
		m := conversation.Message{Role: conversation.Role(h.Role), ToolCallID: h.ToolCallID}
		m.Content, _ = h.Content.(string)
		for _, c := range h.ToolCalls {
			m.ToolCalls = append(m.ToolCalls, conversation.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
		}
		messages = append(messages, m)
	}
	messages = append(messages, conversation.Message{Role: conversation.User, Content: a.Prompt})
	var tools []agent.ToolSpec
	for _, x := range a.Tools {
		tools = append(tools, agent.ToolSpec{Name: x.Name, Description: x.Description, Parameters: x.Parameters})
	}
	empties, invalid := 0, 0
	for round := 0; round < a.MaxRounds; round++ {
		reply, err := model.Complete(ctx, agent.Request{Messages: messages, Tools: tools})
		if err != nil {
			return "", err
		}
		add(got.usage, "input_tokens", reply.Usage.Input)
		add(got.usage, "output_tokens", reply.Usage.Output)
		got.all += reply.Content
		if in, out := got.usage["input_tokens"], got.usage["output_tokens"]; a.MaxTotalTokens > 0 && in != nil && out != nil && *in+*out > a.MaxTotalTokens {
			return "", fault.New(fault.BudgetSpent, "token budget spent")
		}
		if reply.Finish == agent.FinishContentFilter {
			return "", fault.New(fault.ModelRefused, "the content filter stopped the answer (content_filter)")
		}
		if conversation.Empty(reply.Content, reply.ToolCalls) {
			if empties++; empties == 3 {
				return "", fault.New(fault.ModelOutput, "the model's reply is empty")
			}
			messages = append(messages, conversation.Message{Role: conversation.User, Content: "Your last reply was empty."})
			continue
		}
		messages = append(messages, conversation.Message{Role: conversation.Assistant, Content: reply.Content, ToolCalls: reply.ToolCalls})
		if len(reply.ToolCalls) == 0 {
			if len(a.OutputSchema) == 0 {
				return reply.Content, nil
			}
			if out, err := typed(a.OutputSchema, reply.Content); err == nil {
				return out, nil
			} else if invalid++; invalid == 3 {
				return "", fault.New(fault.ModelOutput, "the answer does not fit its schema: %s", err)
			}
			messages = append(messages, conversation.Message{Role: conversation.User, Content: "Wrong."})
			continue
		}
		for _, c := range reply.ToolCalls {
			text := s.call(c, reply.Finish, got)
			messages = append(messages, conversation.Message{Role: conversation.Tool, ToolCallID: c.ID, ToolName: c.Name, Content: text})
		}
	}
	return "", fault.New(fault.LimitExceeded, "round limit reached")
}

// typed takes the JSON out of a fence and checks it.
func typed(want json.RawMessage, content string) (string, error) {
	if inner, ok := fenced(strings.TrimSpace(content)); ok {
		content = inner
	}
	s, err := schema.Compile(want)
	if err != nil {
		return "", err
	}
	return content, s.Validate([]byte(content))
}

func (s *scenario) call(c conversation.ToolCall, finish string, got *ran) string {
	for _, x := range s.Agent.Tools {
		if x.Name != c.Name {
			continue
		}
		if finish == agent.FinishLength {
			return "Tool error: the reply was cut"
		}
		if _, err := tool.CheckArguments(tool.Tool{Name: x.Name, Schema: x.Parameters, Type: "mcp_tool"}, c.Arguments); err != nil {
			return "Tool error: " + err.Error()
		}
		args := c.Arguments
		if args == "" {
			args = "{}"
		}
		d := json.NewDecoder(strings.NewReader(args))
		d.UseNumber()
		var value any
		if err := d.Decode(&value); err != nil {
			return "Tool error: invalid JSON arguments"
		}
		got.calls = append(got.calls, map[string]any{"name": c.Name, "arguments": value})
		out := string(x.Stub.Returns)
		switch {
		case x.Stub.Raises != "":
			return "Tool error: " + x.Stub.Raises
		case x.Stub.Echo:
			out = args
		case len(x.Stub.Repeat) == 2:
			out = strings.Repeat(x.Stub.Repeat[0].(string), int(x.Stub.Repeat[1].(float64)))
		}
		if n := s.Agent.MaxToolResultBytes; n > 0 && len(out) > n {
			for !utf8.RuneStart(out[n]) {
				n--
			}
			out = out[:n]
		}
		return out
	}
	return "Tool error: there is no tool " + fault.Name(c.Name)
}

func add(usage map[string]*int64, key string, n *int64) {
	if n == nil {
		return
	}
	sum := *n
	if usage[key] != nil {
		sum += *usage[key]
	}
	usage[key] = &sum
}
