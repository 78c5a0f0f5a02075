package pgstore

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/approval"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/spi"
	"aidb/extension/internal/tool"
)

// The statements against real tables. AIDB_TEST_DATABASE names a database with the extension, as a connection string
// of a superuser; everything is rolled back. Without it the test is skipped: the contract cases and the integration
// tests run the same statements through the server's own interface.

// connection is a host over a client connection. As in the main thread every parameter is text.
type connection struct {
	t    *testing.T
	conn *pgconn.PgConn
}

func connect(t *testing.T) *connection {
	dsn := os.Getenv("AIDB_TEST_DATABASE")
	if dsn == "" {
		t.Skip("AIDB_TEST_DATABASE is not set")
	}
	conn, err := pgconn.Connect(context.Background(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	c := &connection{t, conn}
	c.do("LOAD 'aidb'") // for its settings
	c.do("BEGIN")
	c.do("SET LOCAL search_path = pg_catalog, pg_temp")
	return c
}

func (c *connection) do(sql string) {
	_, err := c.conn.Exec(context.Background(), sql).ReadAll()
	require.NoError(c.t, err, sql)
}

func (c *connection) LockConversation(context.Context, string) error { return nil }

func (c *connection) Write(ctx context.Context, statements ...spi.Statement) error {
	_, err := c.Batch(ctx, statements...)
	return err
}

func (c *connection) Batch(ctx context.Context, statements ...spi.Statement) ([]spi.Rows, error) {
	results := make([]spi.Rows, len(statements))
	for i, s := range statements {
		if strings.HasPrefix(s.SQL, "COPY ") {
			if _, err := c.conn.CopyFrom(ctx, bytes.NewReader(s.Args[0].([]byte)), s.SQL); err != nil {
				return nil, err
			}
			continue
		}
		if strings.HasPrefix(s.SQL, "LOOKUP\n") {
			results[i] = c.lookup(ctx, s)
			continue
		}
		params, types := make([][]byte, len(s.Args)), make([]uint32, len(s.Args))
		for k, a := range s.Args {
			types[k] = 25
			switch v := a.(type) {
			case nil:
			case []byte:
				params[k] = v
			default:
				params[k] = fmt.Append(nil, v)
			}
		}
		r := c.conn.ExecParams(ctx, s.SQL, params, types, nil, nil).Read()
		if r.Err != nil {
			return nil, r.Err
		}
		for _, row := range r.Rows {
			out := make([]*string, len(row))
			for k, v := range row {
				if v != nil {
					text := string(v)
					out[k] = &text
				}
			}
			results[i].Values = append(results[i].Values, out)
		}
	}
	return results, nil
}

func TestServer_AgentWithAllThatBelongsToIt(t *testing.T) {
	c := connect(t)
	c.do(`INSERT INTO aidb_internal.models (name, provider, config, credential_source, owner)
		VALUES ('t_model', 'completions', '{"model": "x"}', 'stored', pg_catalog.quote_ident(CURRENT_USER)::regrole)`)
	c.do(`INSERT INTO aidb_internal.model_credentials VALUES ('t_model', '{"api_key": "k"}')`)
	c.do(`INSERT INTO aidb_internal.purpose_registry (name, role, deleted_at) VALUES ('t_purpose', 'r', now())`)
	c.do(`INSERT INTO aidb_internal.agents (name, instructions, model, purpose, tools, delegates, output_type, timeout_seconds, owner)
		VALUES ('t_agent', 'Do.', 't_model', 't_purpose', '{run_sql_query,catalog_list_objects}', '{other}', '{"fields": []}', 17,
		        pg_catalog.quote_ident(CURRENT_USER)::regrole)`)

	ctx, s := context.Background(), New(c, new(Natives))
	d, err := s.Agent(ctx, "t_agent")
	require.NoError(t, err)
	require.Equal(t, "completions", d.Model.Provider)
	require.JSONEq(t, `{"api_key": "k"}`, string(d.Model.Credentials))
	require.Equal(t, &agent.PurposeState{Name: "t_purpose", Registered: true, Retired: true, Role: "r"}, d.Purpose)
	require.Equal(t, 17, *d.TimeoutSeconds)
	require.Nil(t, d.MaxIterations)
	require.Equal(t, "attempt_complete", d.Strategy)
	require.True(t, d.Enabled)
	require.JSONEq(t, `{"fields": []}`, string(d.OutputType))

	tools, err := s.Tools(ctx, []string{"run_sql_query", "catalog_list_objects", "sleep", "nothing"})
	require.NoError(t, err)
	require.Len(t, tools, 3)
	require.Equal(t, "aidb.catalog_list_objects(text, text, text)", tools[1].Function)
	require.False(t, tools[1].Params[0].Required)

	ref, err := s.Model(ctx, "t_model")
	require.NoError(t, err)
	require.Equal(t, *d.Model, ref)
}

// What a call expects to find from what came with its agent is what is there.
func TestServer_StandingIsForeseen(t *testing.T) {
	c := connect(t)
	c.do(`INSERT INTO aidb_internal.sql_tools (name, description, query_text, statement, types, params, read_only, risk, owner) VALUES
		('t_plain', 'x', 'SELECT 1', 'SELECT 1', '{}', '[]', true, NULL, pg_catalog.quote_ident(CURRENT_USER)::regrole),
		('t_risky', 'x', 'DELETE FROM t', 'DELETE FROM t', '{}', '[]', false, 'confirm', pg_catalog.quote_ident(CURRENT_USER)::regrole)`)
	c.do(`INSERT INTO aidb_internal.agents (name, instructions, model, tools, owner)
		VALUES ('t_agent', 'Do.', 'm', '{run_sql_query,t_plain,t_risky}', pg_catalog.quote_ident(CURRENT_USER)::regrole)`)
	ctx := context.Background()
	known := func(s *Store) (string, []tool.Tool) {
		d, err := s.Agent(ctx, "t_agent")
		require.NoError(t, err)
		tools, err := s.Tools(ctx, d.Tools)
		require.NoError(t, err)
		require.Len(t, tools, 3)
		return d.ID.String(), tools
	}

	s := New(c, new(Natives))
	id, tools := known(s)
	for _, one := range tools {
		foreseen, expected, err := s.Foresee(id, one)
		require.NoError(t, err)
		require.NotNil(t, expected, one.Name)
		standing, err := s.Standing(ctx, id, one)
		require.NoError(t, err)
		require.Equal(t, standing, foreseen, one.Name)
		_, seen, err := s.Foresee(id, one)
		require.NoError(t, err)
		require.Equal(t, seen, expected, one.Name)
	}
	_, expected, err := s.Foresee(uuid.NewString(), tools[0])
	require.NoError(t, err)
	require.Nil(t, expected, "of an agent that was not read nothing is known")

	// which tool has a class is not known before it is looked up
	c.do(`INSERT INTO aidb_internal.tool_classes (tool, risk, classified_by) VALUES ('t_plain', 'forbidden', 'ann')`)
	s = New(c, new(Natives))
	id, tools = known(s)
	_, expected, err = s.Foresee(id, tools[1])
	require.NoError(t, err)
	require.Nil(t, expected)
	_, err = s.Standing(ctx, id, tools[1])
	require.NoError(t, err)
	foreseen, expected, err := s.Foresee(id, tools[1])
	require.NoError(t, err)
	require.NotNil(t, expected)
	require.Equal(t, approval.Forbidden, foreseen.Class)
}

// What a run wrote is what the next call of its conversation reads.
func TestServer_JournalAndHistory(t *testing.T) {
	c := connect(t)
	c.do(`INSERT INTO aidb_internal.agents (id, name, instructions, model, owner)
		VALUES ('018f0000-0000-7000-8000-0000000000aa', 't_agent', 'Do.', 'm', pg_catalog.quote_ident(CURRENT_USER)::regrole)`)
	ctx, s := context.Background(), New(c, new(Natives))
	task := someTask()
	task.AgentID = uuid.MustParse("018f0000-0000-7000-8000-0000000000aa")
	records := []conversation.Record{
		{Type: conversation.UserPrompt, Request: conversation.UserPromptPayload("how many? ü \U0001F600 \\u0000", "ann")},
		{Type: conversation.ModelRequest, Request: conversation.ModelRequestPayload("x", 1, 2, []string{"sleep"})},
		{Type: conversation.ModelResponse, Response: conversation.ModelResponsePayload("",
			[]conversation.ToolCall{{ID: "c1", Name: "sleep", Arguments: `{"seconds": 1e400}`}}, "tool_calls", "x", conversation.Usage{})},
		{Type: conversation.ToolCalled, Request: conversation.ToolCallPayload(conversation.ToolCall{ID: "c1", Name: "sleep", Arguments: `{"seconds": 1e400}`})},
		{Type: conversation.ToolResponse, Request: conversation.ToolResponsePayload(conversation.ToolCall{ID: "c1", Name: "sleep"}),
			Response: conversation.ErrorPayload("Tool error: too long"), Error: "Tool error: too long", Status: conversation.StatusError},
		{Type: conversation.Answer, Response: conversation.ContentsPayload("many")},
	}
	j := s.Journal(nil)
	require.NoError(t, j.Begin(ctx, task))
	for i := range records {
		r := &records[i]
		r.ID, r.Sequence = uuid.New(), uuid.New()
		if r.Status == "" {
			r.Status = conversation.StatusSuccess
		}
		r.CreatedAt = task.CreatedAt.Add(time.Duration(i) * time.Microsecond)
		r.CompletedAt = r.CreatedAt
		require.NoError(t, j.Append(ctx, *r))
	}
	answer := records[5].ID
	require.NoError(t, j.Finish(ctx, agent.TaskEnd{ID: task.ID, Status: conversation.StatusSuccess, PromptID: task.PromptID,
		AnswerID: &answer, BudgetConsumed: 424, Rounds: 1, CompletedAt: task.CreatedAt, TimeoutAt: task.TimeoutAt}))

	got, err := s.Conversation(ctx, task.ConversationID)
	require.NoError(t, err)
	require.True(t, got.Exists)
	require.Equal(t, []string{"ann", "login", "user:1", "t_agent"}, []string{got.Role, got.SessionUser, got.Principal, got.Agent})
	require.Equal(t, conversation.Rebuild(records), conversation.Rebuild(got.Records))

	rows, err := c.Batch(ctx, spi.Statement{SQL: `SELECT role, budget_consumed, extract(epoch FROM timeout_at - created_at)::int, blocking
		FROM aidb_internal.agent_task_queue WHERE id = $1::uuid`, Args: []any{task.ID.String()}})
	require.NoError(t, err)
	require.Equal(t, values("ann", "424", "60", "t"), rows[0].Values[0])
}
