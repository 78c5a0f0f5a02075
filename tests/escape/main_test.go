// Package escape attacks the sandbox that tool calls run in. Whatever a model could put into a tool's SQL is tried here
// through an agent, as users call it: cases/*.sql are attacks of one idea each (case_test.go says how they are written),
// legit_test.go is honest SQL that has to keep working, generator_test.go is twenty thousand random statements, and the
// other files hold what does not fit into a file of SQL.
//
// A case that fails is a way out of the sandbox. Nothing here is to be made laxer to pass.
package escape

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"aidb/tests/cluster"
)

var server *cluster.Cluster

const template = "escape_template"

// leaks matches what a server logs when something was not given back. A case's own RAISE may look like it, so texts of
// the cases must not contain these words.
var leaks = regexp.MustCompile(`(?mi)^.*(WARNING|LOG):.*(leak|snapshot|resource|SPI_|SPI stack|refcount|still referenced|portal|pin count).*$`)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	var err error
	// No autovacuum: what a case sees change was changed by the case.
	server, err = cluster.New(ctx, cluster.Options{Conf: []string{
		"autovacuum = off", "max_prepared_transactions = 5", "log_min_messages = warning",
	}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer server.Remove()
	if err := makeTemplate(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "preparing the server (is the extension installed? make install): %v\n", err)
		return 1
	}
	code := m.Run()
	if bad := append(server.Crashes(), leaks.FindAllString(server.Log(), -1)...); len(bad) > 0 {
		fmt.Fprintf(os.Stderr, "the server's log tells of a crash or of a leak:\n%s\n", strings.Join(bad, "\n"))
		code = 1
	}
	return code
}

func makeTemplate(ctx context.Context) error {
	err := server.Exec(ctx, "postgres",
		"CREATE ROLE guest LOGIN", "CREATE ROLE keeper LOGIN IN ROLE guest", "CREATE ROLE clerk LOGIN IN ROLE guest",
		"CREATE DATABASE "+template)
	if err != nil {
		return err
	}
	fixture, err := os.ReadFile("fixture.sql")
	if err != nil {
		return err
	}
	if err := script(ctx, template, string(fixture)); err != nil {
		return err
	}
	return server.Exec(ctx, template, "GRANT aidb_users TO keeper, clerk")
}

// script runs a text of many statements as the superuser.
func script(ctx context.Context, database, text string) error {
	conn, err := server.Connect(ctx, "postgres", database)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = conn.PgConn().Exec(ctx, text).ReadAll()
	return err
}

// logSize is how much the server has logged so far.
func logSize() int64 {
	info, err := os.Stat(filepath.Join(server.Dir, "log"))
	if err != nil {
		return 0
	}
	return info.Size()
}
