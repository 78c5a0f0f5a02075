package wire

import (
	"bufio"
	"encoding/json"
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

	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// recorded is a scenario file, as far as a client needs it. The server script knows the rest.
type recorded struct {
	Name  string
	Level string
	Agent struct {
		System, Prompt string
		Tools          []struct {
			Name, Description string
			Parameters        json.RawMessage
			Does              struct {
				Returns json.RawMessage
				Raises  string
				Echo    bool
				Repeat  []any
			} `json:"stub"`
		}
		History        []turnMessage
		MaxRounds      int   `json:"max_rounds"`
		MaxTotalTokens int64 `json:"max_total_tokens"`
		TimeoutMS      int   `json:"timeout_ms"`
		Retry          struct {
			Max    int
			BaseMS int `json:"base_ms"`
		}
		OutputSchema       json.RawMessage `json:"output_schema"`
		Temperature        json.RawMessage
		MaxOutputTokens    int    `json:"max_output_tokens"`
		APIKey             string `json:"api_key"`
		Stream             *bool
		MaxToolResultBytes int `json:"max_tool_result_bytes"`
	}
	Expect expectation
	Accept []expectation
}

// turnMessage is a message of a history.
type turnMessage struct {
	Role       string
	Content    any
	ToolCallID string `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

func TestRecordedScenarios(t *testing.T) {
	dir := findRecorded(t)
	base := serveRecorded(t, dir)
	files, err := filepath.Glob(filepath.Join(dir, "[0-9]*.json"))
	require.NoError(t, err)
	sort.Strings(files)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		var s recorded
		require.NoError(t, json.Unmarshal(raw, &s))
		t.Run(s.Name, func(t *testing.T) { s.test(t, base) })
	}
}

func (s *recorded) test(t *testing.T, base string) {
	run := s.Name + "@sql"
	user := caller(t, s.settings())
	r := s.run(t, user, base, run)
	requests, failures := state(t, base, run)
	problems := s.Expect.against(r, requests)
	for i := 0; len(problems) > 0 && i < len(s.Accept); i++ {
		if len(s.Accept[i].against(r, requests)) == 0 {
			problems = nil
		}
	}
	problems = append(problems, failures...)
	if len(problems) == 0 {
		return
	}
	t.Errorf("level %s: %s\nanswer %q error %q tools %v requests %d", s.Level, strings.Join(problems, "; "), r.Message, r.Error, r.tools(), requests)
}

func (s *recorded) settings() map[string]string {
	a := &s.Agent
	timeout := a.TimeoutMS
	if strings.Contains(s.Name, "gzip") {
		timeout *= 10 // the script needs seconds to make the body
	}
	settings := map[string]string{
		"aidb.model_retries":     fmt.Sprint(a.Retry.Max),
		"aidb.model_retry_delay": fmt.Sprintf("%dms", a.Retry.BaseMS),
		"aidb.model_timeout":     fmt.Sprintf("%dms", timeout),
	}
	if a.MaxToolResultBytes > 0 {
		settings["aidb.max_tool_bytes"] = fmt.Sprint(a.MaxToolResultBytes)
	}
	return settings
}

// run makes the agent of the scenario, with its history, and calls it.
func (s *recorded) run(t *testing.T, user *session, base, run string) *ran {
	conn := user.Conn
	a := &s.Agent
	config := map[string]any{"model": run, "url": base + "/v1"}
	if len(a.Temperature) > 0 {
		config["temperature"] = a.Temperature
	}
	if a.MaxOutputTokens > 0 {
		config["max_tokens"] = map[string]any{"size": a.MaxOutputTokens}
	}
	credentials := map[string]any{}
	if a.APIKey != "" {
		credentials["api_key"] = a.APIKey
	}
	servertest.Exec(t, conn, `SELECT aidb.create_model($1, 'openai_completions', $2::jsonb, credentials => $3::jsonb, validate => false)`, run, config, credentials)
	tools := []string{}
	for _, x := range a.Tools {
		rows := "SELECT '" + strings.ReplaceAll(string(x.Does.Returns), "'", "''") + "'::jsonb AS result WHERE true<used>"
		switch {
		case x.Does.Echo:
			rows = "SELECT ${account} AS account, ${rate} AS rate"
		case len(x.Does.Repeat) == 2:
			rows = fmt.Sprintf("SELECT repeat('%s', %v) AS result WHERE true<used>", x.Does.Repeat[0], x.Does.Repeat[1])
		case x.Does.Raises != "":
			rows = "SELECT 1 / (random() * 0)::integer AS result WHERE true<used>"
		}
		sqlTool(t, conn, x.Name, x.Description, x.Parameters, rows)
		defer servertest.Exec(t, conn, "SELECT aidb.delete_tool($1)", x.Name)
		tools = append(tools, x.Name)
	}
	var output *string
	if len(a.OutputSchema) > 0 {
		text := string(a.OutputSchema)
		output = &text
	}
	var budget *int64
	if a.MaxTotalTokens > 0 {
		half := a.MaxTotalTokens / 2
		budget = &half
	}
	servertest.Exec(t, conn, `SELECT * FROM aidb.create_agent($1, $2, $1, tools => $3, max_iterations => $4, budget_strategy => 'error',
		output_type => $5::jsonb, input_token_budget => $6, output_token_budget => $6, timeout => 120)`, run, orNone(a.System), tools, a.MaxRounds, output, budget)
	if len(a.History) == 0 {
		return user.ask(t, run, a.Prompt)
	}
	id := s.remember(t, user, run)
	return user.ask(t, run, a.Prompt, "conversation_id => '"+id+"'")
}

func orNone(s string) string {
	if s == "" {
		return "Answer briefly."
	}
	return s
}

// remember makes the history by running it: another model plays the assistant's part. What is beyond the end of the
// history is then taken out of the log, as if the run had been killed there.
func (s *recorded) remember(t *testing.T, user *session, run string) string {
	conn := user.Conn
	var prompts []string
	var replies []fakemodel.Reply
	messages := 0
	answered := false
	for _, m := range s.Agent.History {
		text, _ := m.Content.(string)
		answered = m.Role == "assistant" && len(m.ToolCalls) == 0
		messages++
		switch {
		case m.Role == "user":
			prompts = append(prompts, text)
		case m.Role == "assistant":
			r := fakemodel.Say(text)
			for _, c := range m.ToolCalls {
				r.ToolCalls = append(r.ToolCalls, fakemodel.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
			}
			replies = append(replies, r)
		}
	}
	replies = append(replies, fakemodel.Fail(400, "the history ends here"))
	past := run + "-past"
	server.Model.Script(past, replies...)
	server.RegisterModel(t, conn, past, server.Model.URL())
	servertest.Exec(t, conn, `SELECT * FROM aidb.update_agent($1, model => $2)`, run, past)
	id := servertest.Value(t, conn, `SELECT gen_random_uuid()`)
	for _, p := range prompts {
		_, err := servertest.Ask(t.Context(), conn, run, p, "conversation_id => '"+id+"'")
		require.NoError(t, err)
	}
	if !answered {
		servertest.Exec(t, user.admin, `WITH surplus AS (SELECT id FROM aidb_internal.action_log
			WHERE conversation_id = $1::uuid AND action_type IN ('user_prompt', 'model_response', 'tool_response', 'answer')
			ORDER BY created_at, id OFFSET $2)
			UPDATE aidb_internal.logged_steps SET steps = (SELECT coalesce(jsonb_agg(s.v ORDER BY s.n), '[]')
				FROM jsonb_array_elements(steps) WITH ORDINALITY s (v, n) WHERE (s.v ->> 'id')::uuid NOT IN (SELECT id FROM surplus))
			WHERE conversation_id = $1::uuid`, id, messages)
	}
	servertest.Exec(t, conn, `SELECT * FROM aidb.update_agent($1, model => $1)`, run)
	return id
}

func findRecorded(t *testing.T) string {
	dir, err := os.Getwd()
	require.NoError(t, err)
	for ; filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		try := filepath.Join(dir, "shared", "cases", "wire")
		if _, err := os.Stat(filepath.Join(try, "serve.py")); err == nil {
			return try
		}
	}
	t.Skip("the recorded scenarios are not there")
	return ""
}

// serveRecorded starts the script that plays the server, on a port that it chooses.
func serveRecorded(t *testing.T, dir string) string {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 to serve the recorded scenarios")
	}
	cmd := exec.Command(python, filepath.Join(dir, "serve.py"), "--port", "0", "--max-seconds", "900")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan(), "the script said nothing")
	at := regexp.MustCompile(`http://[0-9.:]+`).FindString(lines.Text())
	require.NotEmpty(t, at, lines.Text())
	return at
}

// state asks the script how many requests it got, and what it did not like in them.
func state(t *testing.T, base, run string) (requests int, failures []string) {
	client := &http.Client{Timeout: 10 * time.Second}
	resp, err := client.Get(base + "/__state/" + run)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	var s struct {
		Requests int
		Failures []string
	}
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&s))
	return s.Requests, s.Failures
}
