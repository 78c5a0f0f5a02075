// Command demo is `make demo`: a scratch server, a shop, an ordinary login role and an agent that is asked about a database
// nobody has told it about. Everything on the way is real: the agent runs inside the server, talks HTTP to a model and
// queries through the sandbox. Which model it is depends on the environment, and the demo says which:
//
//	OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL   an OpenAI-compatible server (Ollama and llama.cpp included)
//	none of them                                    the repository's own scripted server, on loopback
//	QUESTION                                        another question (for a real model)
//	KEEP=1                                          leave the server running, for your own psql; make cluster-stop ends it
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"aidb/tests/cluster"
	"aidb/tests/shop"
)

const (
	database = "aidb"
	role     = "ann"
	agent    = "analyst"
	guidance = "You answer questions about this database. You do not know it yet: look at its schemas and tables first, " +
		"then run SQL. Give the numbers that the queries returned."
	logQuery = `SELECT action_type, completed_at - created_at AS took,
       left(coalesce(request_payload ->> 'contents', request_payload ->> 'arguments',
                     response_payload ->> 'contents', response_payload ->> 'error'), 80) AS what
FROM aidb_internal.action_log
WHERE conversation_id = '%s' ORDER BY created_at, id;`
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		stop()
		os.Exit(1) //nolint:gocritic // both deferred calls only release what the exit releases
	}
}

func run(ctx context.Context) error {
	model, err := chooseModel(ctx)
	if err != nil {
		return err
	}
	defer model.stop()

	keep := os.Getenv("KEEP") != ""
	c, err := cluster.New(ctx, cluster.Options{Keep: keep})
	if err != nil {
		return err
	}
	if !keep {
		defer c.Remove()
	}
	if err := c.Exec(ctx, "postgres", "CREATE DATABASE "+database); err != nil {
		return err
	}
	if err := prepare(ctx, c); err != nil {
		return err
	}
	if err := converse(ctx, c, model); err != nil {
		return err
	}
	if keep {
		return remember(c)
	}
	fmt.Println("\nThe scratch server is gone again. For one of your own: eval \"$(make cluster)\", then psql.")
	return nil
}

// prepare makes what an administrator makes: the extension, the shop, the role.
func prepare(ctx context.Context, c *cluster.Cluster) error {
	if err := c.Exec(ctx, database, "CREATE EXTENSION aidb", "CREATE ROLE "+role+" LOGIN IN ROLE aidb_users"); err != nil {
		return err
	}
	admin, err := c.Connect(ctx, "postgres", database)
	if err != nil {
		return err
	}
	defer func() { _ = admin.Close(context.WithoutCancel(ctx)) }()
	return shop.Load(ctx, admin, role)
}

// converse is what ann does: register the model, create the agent, ask, look at the log.
func converse(ctx context.Context, c *cluster.Cluster, model *chosen) error {
	config := c.Config(role, database)
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { show("  ", n.Message) }
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()

	if _, err := conn.Exec(ctx, `SELECT aidb.create_model('demo', 'openai_completions', $1::jsonb, credentials => $2::jsonb, validate => false)`,
		map[string]any{"model": model.name, "url": model.url}, model.credentials()); err != nil {
		return err
	}
	if problem, err := one(ctx, conn, `SELECT error FROM aidb.create_agent($1, $2, 'demo', tools => ARRAY['catalog_list_schemas',
		'catalog_list_objects', 'catalog_get_object_details', 'catalog_list_relations', 'run_sql_query'])`, agent, guidance); err != nil || problem != "" {
		return fmt.Errorf("creating the agent: %s %w", problem, err)
	}

	question := os.Getenv("QUESTION")
	if question == "" {
		question = shop.Question
	}
	fmt.Printf("Server    PostgreSQL on a scratch data directory, %s\n", c.Dir)
	fmt.Printf("Model     %s\n", model.description)
	fmt.Printf("Role      %s, an ordinary login role that may read schema shop\n\n", role)
	fmt.Printf("Question  %s\n\n", question)

	start := time.Now()
	var answer, conversation, problem *string
	err = conn.QueryRow(ctx, `SELECT message, conversation_id, error FROM aidb.agent_converse($1, $2, debug => true)`, agent, question).
		Scan(&answer, &conversation, &problem)
	if err != nil {
		return err
	}
	if problem != nil {
		return fmt.Errorf("the agent ended with: %s", *problem)
	}
	fmt.Printf("\nAnswer    %s\n          (%d ms)\n", *answer, time.Since(start).Milliseconds())
	return showLog(ctx, conn, *conversation)
}

// showLog prints the query that shows the log, and what it shows.
func showLog(ctx context.Context, conn *pgx.Conn, conversation string) error {
	query := fmt.Sprintf(logQuery, conversation)
	fmt.Printf("\nEvery step is in the log:\n\n%s\n\n", query)
	rows, err := conn.Query(ctx, query)
	if err != nil {
		return err
	}
	var kind string
	var took *time.Duration
	var what *string
	_, err = pgx.ForEachRow(rows, []any{&kind, &took, &what}, func() error {
		line := fmt.Sprintf("%-15s", kind)
		if took != nil {
			line += fmt.Sprintf(" %7.1f ms", float64(took.Microseconds())/1000)
		}
		if what != nil {
			line += "  " + strings.Join(strings.Fields(*what), " ")
		}
		fmt.Println("  " + line)
		return nil
	})
	return err
}

// remember writes the state file that make cluster-stop reads.
func remember(c *cluster.Cluster) error {
	fmt.Printf("\nThe server still runs (KEEP): psql -h 127.0.0.1 -p %d -U %s %s; make cluster-stop ends it.\n", c.Port, role, database)
	return c.Remember("build/cluster.env")
}

func one(ctx context.Context, conn *pgx.Conn, sql string, args ...any) (string, error) {
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		return "", err
	}
	values, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return strings.Join(values, "; "), err
}

// show prints a step on one line, shortened to what a terminal can take.
func show(indent, text string) {
	const width = 160
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > width {
		runes = append(runes[:width], []rune(" …")...)
	}
	fmt.Println(indent + string(runes))
}
