// Command aidb is the conversation of the bench through SELECT aidb.agent_converse, as an ordinary role that is a member of
// aidb_users. Flags and environment are those of the floor program, and so is the line it prints.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aidb/tests/bench/measure"
)

const (
	role   = "aidb_bench"
	system = "You are a data analyst. Use run_sql_query to answer questions about the database."
	prompt = "How many orders are there?"
)

type program struct {
	measure.Flags
	admin *pgx.Conn
	pool  *pgxpool.Pool
	agent string
	once  sync.Mutex // prepare uses one connection
}

func main() {
	if err := run(context.Background(), measure.Parse()); err != nil {
		fmt.Fprintln(os.Stderr, "aidb:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, f measure.Flags) error {
	admin, err := pgx.Connect(ctx, os.Getenv("PEERS_DSN"))
	if err != nil {
		return err
	}
	defer func() { _ = admin.Close(ctx) }()
	if err := setup(ctx, admin); err != nil {
		return err
	}
	settings, err := pgxpool.ParseConfig(os.Getenv("PEERS_DSN"))
	if err != nil {
		return err
	}
	settings.MaxConns = int32(min(64, max(4, f.Conc)))
	settings.ConnConfig.User = role
	pool, err := pgxpool.NewWithConfig(ctx, settings)
	if err != nil {
		return err
	}
	defer pool.Close()
	p := &program{Flags: f, admin: admin, pool: pool, agent: fmt.Sprintf("bench_r%d_l%d", f.Rounds, f.Latency)}
	if err := p.register(ctx); err != nil {
		return err
	}
	result, err := measure.Run(ctx, "aidb", f, pool, p.prepare, p.converse)
	if err != nil {
		return err
	}
	return result.Print(os.Stdout)
}

// setup makes what an administrator makes: the extension and the role.
func setup(ctx context.Context, admin *pgx.Conn) error {
	_, err := admin.Exec(ctx, `SET client_min_messages = warning;
		CREATE EXTENSION IF NOT EXISTS aidb;
		DO $$ BEGIN CREATE ROLE `+role+` LOGIN IN ROLE aidb_users; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
		GRANT SELECT ON public.orders TO `+role)
	return err
}

// register makes the model and the agent anew, because the model's server may be another one than last time.
func (p *program) register(ctx context.Context) error {
	conn, err := p.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, `SELECT aidb.delete_model(name) FROM aidb.models WHERE name = $1`, p.agent); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, `SELECT aidb.create_model($1, 'openai_completions', $2::jsonb, credentials => '{"api_key": "x"}', validate => false)`,
		p.agent, map[string]any{"model": p.Model(), "url": measure.ModelURL()}); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, `SELECT aidb.create_agent($1, $2, $1, tools => '{run_sql_query}') WHERE NOT EXISTS (SELECT FROM aidb.agents WHERE name = $1)`, p.agent, system)
	return err
}

// historySQL writes the turns of a conversation as the agent would have logged them.
const historySQL = `
WITH conversation AS (SELECT gen_random_uuid() AS id, a.id AS agent FROM aidb.agents a WHERE a.name = $1),
logged AS (
    INSERT INTO aidb_internal.logged_steps (conversation_id, agent_id, task_id, created_at, caller, prompt_id, answer_id, steps)
    SELECT c.id, c.agent, gen_random_uuid(), now() + t.i * 3 * interval '1 microsecond', $4, m.prompt, m.answer, jsonb_build_array(
               jsonb_build_object('id', m.prompt, 'type', 'user_prompt', 'at', 0, 'took', 0, 'request', jsonb_build_object('contents', t.q, 'user', $4::text)),
               jsonb_build_object('id', gen_random_uuid(), 'round', m.round, 'type', 'model_response', 'at', 1, 'took', 0, 'response', jsonb_build_object(
                   'contents', t.r, 'tool_calls', '[]'::jsonb, 'finish_reason', 'stop', 'model', 'mock', 'usage', '{}'::jsonb)),
               jsonb_build_object('id', m.answer, 'round', m.round, 'type', 'answer', 'at', 2, 'took', 0, 'response', jsonb_build_object('contents', t.r)))
    FROM conversation c, unnest($2::text[], $3::text[]) WITH ORDINALITY AS t (q, r, i),
         LATERAL (SELECT gen_random_uuid() AS prompt, gen_random_uuid() AS answer, gen_random_uuid() AS round, t.i) m)
SELECT id::text FROM conversation`

// prepare makes a conversation with its history. Without one the first call of it makes the conversation.
func (p *program) prepare(ctx context.Context) (string, error) {
	if p.History == 0 {
		return "", nil
	}
	p.once.Lock()
	defer p.once.Unlock()
	questions, answers := make([]string, p.History), make([]string, p.History)
	for i := range questions {
		questions[i], answers[i] = measure.Turn(i)
	}
	var id string
	err := p.admin.QueryRow(ctx, historySQL, p.agent, questions, answers, role).Scan(&id)
	return id, err
}

func (p *program) converse(ctx context.Context, id string) (string, error) {
	var message, problem *string
	err := p.pool.QueryRow(ctx, `SELECT message, error FROM aidb.agent_converse($1, $2, nullif($3, ''))`, p.agent, prompt, id).Scan(&message, &problem)
	switch {
	case err != nil:
		return "", err
	case problem != nil:
		return "", fmt.Errorf("the agent ended with: %s", strings.TrimSpace(*problem))
	case message == nil:
		return "", fmt.Errorf("neither an answer nor an error")
	}
	return *message, nil
}
