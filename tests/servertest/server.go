// Package servertest is what the tests against a real server share: a scratch server with the extension, two ordinary
// roles (ann and bob, both in aidb_users), a fake model, and short words for what every test does. A test package starts
// one server for all its tests in TestMain; a test that stops or kills its server starts one of its own.
package servertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"aidb/tests/cluster"
	"aidb/tests/fakemodel"
)

// Database is the one that has the extension.
const Database = "aidb"

// Server is a scratch server together with the fake model that its agents talk to.
type Server struct {
	*cluster.Cluster
	Model *fakemodel.Server
}

// New starts both. The caller removes the server with Close.
func New(opts cluster.Options) (*Server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	c, err := cluster.New(ctx, opts)
	if err != nil {
		return nil, err
	}
	s := &Server{Cluster: c}
	if s.Model, err = fakemodel.Start(fakemodel.Options{}); err != nil {
		c.Remove()
		return nil, err
	}
	err = errors.Join(
		c.Exec(ctx, "postgres", "CREATE DATABASE "+Database),
		c.Exec(ctx, Database, "CREATE EXTENSION aidb", "CREATE ROLE ann LOGIN IN ROLE aidb_users", "CREATE ROLE bob LOGIN IN ROLE aidb_users",
			// as it ships it waits for a person, which tests/actions is about
			"SELECT aidb.classify_tool('execute_sql', 'safe')"))
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("preparing the server (is the extension installed? make install): %w", err)
	}
	return s, nil
}

// Close stops the server and the model.
func (s *Server) Close() {
	s.Model.Close()
	s.Remove()
}

// Main is the TestMain of a package whose tests share one server. It fails the package when, at the end, the server's log
// tells of a crash or a process of the server is left.
func Main(m *testing.M, opts cluster.Options, into **Server) {
	s, err := New(opts)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	*into = s
	code := m.Run()
	crashes := s.Crashes()
	s.Close()
	if len(crashes) > 0 {
		fmt.Fprintf(os.Stderr, "the server's log tells of a crash:\n%s\n", strings.Join(crashes, "\n"))
		code = 1
	}
	if err := s.WaitGone(10 * time.Second); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// Start gives one test a server of its own.
func Start(t testing.TB, opts cluster.Options) *Server {
	t.Helper()
	s, err := New(opts)
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("end of the server's log:\n%s", tail(s.Log(), 4000))
		}
		s.Close()
		require.NoError(t, s.WaitGone(10*time.Second))
	})
	return s
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

// Conn opens a connection as a role, closed when the test ends. Settings are given as "name=value".
func (s *Server) Conn(t testing.TB, role string, settings ...string) *pgx.Conn {
	t.Helper()
	conn, _ := s.ConnNoting(t, role, settings...)
	return conn
}

// Notices collects what the server said beside the results.
type Notices struct{ list []*pgconn.Notice }

// Lines are the texts of one severity (NOTICE, WARNING), in order.
func (n *Notices) Lines(severity string) []string {
	var lines []string
	for _, notice := range n.list {
		if notice.Severity == severity {
			lines = append(lines, notice.Message)
		}
	}
	return lines
}

// Details are those of the lines of one severity, in order.
func (n *Notices) Details(severity string) []string {
	var details []string
	for _, notice := range n.list {
		if notice.Severity == severity {
			details = append(details, notice.Detail)
		}
	}
	return details
}

// Reset forgets what was said so far.
func (n *Notices) Reset() { n.list = nil }

// ConnNoting is Conn together with what the server will say on it.
func (s *Server) ConnNoting(t testing.TB, role string, settings ...string) (*pgx.Conn, *Notices) {
	t.Helper()
	notices := &Notices{}
	config := s.Config(role, Database)
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { notices.list = append(notices.list, n) }
	for _, setting := range settings {
		name, value, _ := strings.Cut(setting, "=")
		config.RuntimeParams[name] = value
	}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	})
	return conn, notices
}

// Admin is a superuser's connection.
func (s *Server) Admin(t testing.TB) *pgx.Conn { t.Helper(); return s.Conn(t, "postgres") }
