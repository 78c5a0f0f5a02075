// Command floor is the ordinary program that aidb is measured against: the loop as one writes it by hand, outside the
// database, with go-openai and pgx. It keeps what aidb keeps: the history is read back at the start, every message and
// every step is stored, each by a statement of its own that is durable before the next thing happens.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5/pgxpool"
	openai "github.com/sashabaranov/go-openai"

	"aidb/tests/bench/measure"
)

const (
	system = "You are a data analyst. Use run_sql_query to answer questions about the database."
	prompt = "How many orders are there?"
)

var tools = []openai.Tool{{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
	Name: "run_sql_query", Description: "Run one read-only SQL query.",
	Parameters: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"}},"required":["query"],"additionalProperties":false}`),
}}}

type program struct {
	measure.Flags
	pool  *pgxpool.Pool
	model *openai.Client
}

func main() {
	if err := run(context.Background(), measure.Parse()); err != nil {
		fmt.Fprintln(os.Stderr, "floor:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, f measure.Flags) error {
	config := openai.DefaultConfig("x")
	config.BaseURL = measure.ModelURL()
	settings, err := pgxpool.ParseConfig(os.Getenv("PEERS_DSN"))
	if err != nil {
		return err
	}
	settings.MaxConns = int32(min(64, max(4, f.Conc)))
	pool, err := pgxpool.NewWithConfig(ctx, settings)
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, schema); err != nil {
		return err
	}
	p := &program{f, pool, openai.NewClientWithConfig(config)}
	result, err := measure.Run(ctx, "go-openai+pgx", f, pool, p.prepare, p.converse)
	if err != nil {
		return err
	}
	return result.Print(os.Stdout)
}

const schema = `
CREATE SCHEMA IF NOT EXISTS floor;
CREATE TABLE IF NOT EXISTS floor.conversation (id uuid PRIMARY KEY, status text NOT NULL DEFAULT 'running', created timestamptz DEFAULT now());
CREATE TABLE IF NOT EXISTS floor.message (conversation uuid NOT NULL REFERENCES floor.conversation, seq int NOT NULL, body jsonb NOT NULL,
    at timestamptz DEFAULT now(), PRIMARY KEY (conversation, seq));
CREATE TABLE IF NOT EXISTS floor.step (conversation uuid NOT NULL, n int NOT NULL, tokens_in int, tokens_out int, finish text,
    at timestamptz DEFAULT now(), PRIMARY KEY (conversation, n));`

// prepare makes a conversation with its history.
func (p *program) prepare(ctx context.Context) (string, error) {
	var id string
	if err := p.pool.QueryRow(ctx, "INSERT INTO floor.conversation (id) VALUES (gen_random_uuid()) RETURNING id::text").Scan(&id); err != nil {
		return "", err
	}
	var old []openai.ChatCompletionMessage
	for i := range p.History {
		question, answer := measure.Turn(i)
		old = append(old, openai.ChatCompletionMessage{Role: "user", Content: question}, openai.ChatCompletionMessage{Role: "assistant", Content: answer})
	}
	if len(old) == 0 {
		return id, nil
	}
	text, err := json.Marshal(old)
	if err != nil {
		return "", err
	}
	_, err = p.pool.Exec(ctx, `INSERT INTO floor.message (conversation, seq, body)
		SELECT $1, o, b FROM jsonb_array_elements($2::jsonb) WITH ORDINALITY t(b, o)`, id, text)
	return id, err
}

func (p *program) converse(ctx context.Context, id string) (string, error) {
	messages, err := p.history(ctx, id)
	if err != nil {
		return "", err
	}
	seq := len(messages)
	add := func(m openai.ChatCompletionMessage) error {
		messages = append(messages, m)
		text, err := json.Marshal(m)
		if err != nil {
			return err
		}
		_, err = p.pool.Exec(ctx, "INSERT INTO floor.message (conversation, seq, body) VALUES ($1, $2, $3)", id, seq, text)
		seq++
		return err
	}
	if err := add(openai.ChatCompletionMessage{Role: "user", Content: prompt}); err != nil {
		return "", err
	}
	for step := 1; step <= p.Rounds+2; step++ {
		reply, err := p.model.CreateChatCompletion(ctx, openai.ChatCompletionRequest{Model: p.Model(), Messages: messages, Tools: tools})
		if err != nil {
			return "", err
		}
		if len(reply.Choices) == 0 {
			return "", fmt.Errorf("no choices")
		}
		choice := reply.Choices[0]
		if err := add(choice.Message); err != nil {
			return "", err
		}
		for _, call := range choice.Message.ToolCalls {
			result, err := p.query(ctx, call.Function.Arguments)
			if err != nil {
				result = "error: " + err.Error()
			}
			if err := add(openai.ChatCompletionMessage{Role: "tool", ToolCallID: call.ID, Content: result}); err != nil {
				return "", err
			}
		}
		if _, err := p.pool.Exec(ctx, "INSERT INTO floor.step VALUES ($1, $2, $3, $4, $5)",
			id, step, reply.Usage.PromptTokens, reply.Usage.CompletionTokens, string(choice.FinishReason)); err != nil {
			return "", err
		}
		if len(choice.Message.ToolCalls) == 0 {
			_, err := p.pool.Exec(ctx, "UPDATE floor.conversation SET status = 'done' WHERE id = $1", id)
			return choice.Message.Content, err
		}
	}
	return "", fmt.Errorf("too many rounds")
}

func (p *program) history(ctx context.Context, id string) ([]openai.ChatCompletionMessage, error) {
	messages := []openai.ChatCompletionMessage{{Role: "system", Content: system}}
	rows, err := p.pool.Query(ctx, "SELECT body FROM floor.message WHERE conversation = $1 ORDER BY seq", id)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text []byte
		var m openai.ChatCompletionMessage
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &m); err != nil {
			return nil, err
		}
		messages = append(messages, m)
	}
	return messages, rows.Err()
}

func (p *program) query(ctx context.Context, arguments string) (string, error) {
	var a struct{ Query string }
	if err := json.Unmarshal([]byte(arguments), &a); err != nil {
		return "", err
	}
	var out []byte
	err := p.pool.QueryRow(ctx, "SELECT coalesce(json_agg(t), '[]') FROM ("+a.Query+") t").Scan(&out)
	return string(out), err
}
