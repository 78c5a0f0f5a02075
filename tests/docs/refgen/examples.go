package refgen

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"aidb/tests/cluster"
)

//go:embed examples.sql
var examplesText string

// example is what examples.sql has for one heading: the statements that are shown, and what psql printed.
type example struct {
	Name, SQL, Output string
}

var headline = regexp.MustCompile(`(?m)^-- example: (\S+)\n`)

// parseExamples cuts examples.sql at its headlines. The part called "-" is run first and not shown.
func parseExamples(text string) []example {
	marks := headline.FindAllStringSubmatchIndex(text, -1)
	list := make([]example, len(marks))
	for i, m := range marks {
		end := len(text)
		if i+1 < len(marks) {
			end = marks[i+1][0]
		}
		list[i] = example{Name: text[m[2]:m[3]], SQL: strings.TrimSpace(text[m[1]:end])}
	}
	return list
}

// runExamples runs every example in order, in one session of a superuser, in a database of its own.
func runExamples(ctx context.Context, c *cluster.Cluster) (map[string]example, error) {
	const database = "examples"
	if err := errors.Join(
		c.Exec(ctx, "postgres", "DROP DATABASE IF EXISTS "+database),
		c.Exec(ctx, "postgres", "CREATE DATABASE "+database),
		c.Exec(ctx, database, "CREATE EXTENSION aidb")); err != nil {
		return nil, err
	}
	list := parseExamples(examplesText)
	blocks := make([]string, len(list))
	for i := range list {
		blocks[i] = list[i].SQL
	}
	outputs, err := Psql(ctx, c, "postgres", database, blocks)
	if err != nil {
		return nil, err
	}
	all := make(map[string]example, len(list))
	for i, e := range list {
		e.Output = outputs[i]
		if e.Name != "-" {
			if _, twice := all[e.Name]; twice {
				return nil, fmt.Errorf("examples.sql has %s twice", e.Name)
			}
			all[e.Name] = e
		}
	}
	return all, nil
}

const boundary = "----8<---- end of block ----8<----"

// Psql runs blocks of SQL in one session of psql, as if they were pasted one after the other, and returns what it printed
// for each, notices and errors in their place, with ids and times made alike.
func Psql(ctx context.Context, c *cluster.Cluster, role, database string, blocks []string) ([]string, error) {
	program, err := psqlPath(ctx)
	if err != nil {
		return nil, err
	}
	var script bytes.Buffer
	for _, b := range blocks {
		// \warn goes to the standard error, which is not buffered: it stays in order with notices.
		fmt.Fprintf(&script, "%s\n\\warn '%s'\n", b, boundary)
	}
	out, err := os.CreateTemp("", "aidb-psql")
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close(); _ = os.Remove(out.Name()) }()
	cmd := exec.CommandContext(ctx, program, "-X", "-P", "pager=off", "-h", "127.0.0.1", "-p", fmt.Sprint(c.Port), "-U", role, "-d", database)
	cmd.Env = append(os.Environ(), "PGTZ=UTC", "LC_ALL=C.UTF-8", "PGCLIENTENCODING=UTF8")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &script, out, out // one file for both, so that their order is kept
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("psql: %w", err)
	}
	text, err := os.ReadFile(out.Name())
	if err != nil {
		return nil, err
	}
	parts := strings.Split(string(text), boundary+"\n")
	if len(parts) != len(blocks)+1 {
		return nil, fmt.Errorf("psql printed %d parts for %d blocks:\n%s", len(parts)-1, len(blocks), text)
	}
	for i := range parts {
		parts[i] = Alike(parts[i])
	}
	return parts[:len(blocks)], nil
}

var (
	uuids     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	durations = regexp.MustCompile(`\b00:00:0\d\.\d+`)
	trailing  = regexp.MustCompile(`(?m)[ \t]+$`)
)

// Alike replaces what differs from one run to the next.
func Alike(s string) string {
	s = uuids.ReplaceAllString(s, "01985c6e-0000-7000-8000-000000000000")
	s = durations.ReplaceAllString(s, "00:00:00.001")
	return strings.TrimRight(trailing.ReplaceAllString(s, ""), "\n")
}

// psqlPath finds the psql of the server that the Makefile builds for.
func psqlPath(ctx context.Context) (string, error) {
	pgConfig := os.Getenv("PG_CONFIG")
	if pgConfig == "" {
		major := os.Getenv("PG_MAJOR")
		if major == "" {
			major = "15"
		}
		pgConfig = "/usr/lib/postgresql/" + major + "/bin/pg_config"
	}
	if out, err := exec.CommandContext(ctx, pgConfig, "--bindir").Output(); err == nil {
		path := filepath.Join(strings.TrimSpace(string(out)), "psql")
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return exec.LookPath("psql")
}
