package escape

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// The words that all tests of this package share: a fresh database, a caller's session in it, tool calls, and what may
// not have changed afterwards.

var callers = map[string]string{"superuser": "postgres", "owner": "keeper", "member": "clerk"}

// database makes a copy of the template, dropped when the test ends. Roles belong to the cluster: whatever a case
// granted to them is taken away again.
func database(t *testing.T, more ...string) string {
	t.Helper()
	name := strings.ToLower(strings.Join(append([]string{t.Name()}, more...), "_"))
	name = "escape_" + strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(name, "_"), "_")
	name = name[max(0, len(name)-60):]
	require.NoError(t, server.Exec(t.Context(), "postgres", fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s", name, template)))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, script(ctx, "postgres", restoreRoles))
		require.NoError(t, server.Exec(ctx, "postgres", fmt.Sprintf("DROP DATABASE %s WITH (FORCE)", name)))
	})
	return name
}

const restoreRoles = `
DO $$
DECLARE m record;
BEGIN
    FOR m IN SELECT r.rolname AS role, u.rolname AS member FROM pg_auth_members a
             JOIN pg_roles r ON r.oid = a.roleid JOIN pg_roles u ON u.oid = a.member
             WHERE u.rolname IN ('guest', 'keeper', 'clerk') LOOP
        EXECUTE format('REVOKE %I FROM %I', m.role, m.member);
    END LOOP;
    FOR m IN SELECT rolname AS role FROM pg_roles WHERE rolname IN ('guest', 'keeper', 'clerk') LOOP
        EXECUTE format('ALTER ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS NOREPLICATION INHERIT', m.role);
        EXECUTE format('ALTER ROLE %I RESET ALL', m.role);
    END LOOP;
END
$$;
GRANT guest, aidb_users TO keeper, clerk;`

// connect opens a session of a role in a database.
func connect(t *testing.T, role, db string) *pgx.Conn {
	t.Helper()
	conn, err := server.Connect(t.Context(), role, db)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	})
	return conn
}

// seen is what came of one statement.
type seen struct {
	phase          string
	n              int
	output         string
	state, message string // of the error; state is empty when there was none
	took           time.Duration
}

func (s seen) String() string {
	text := s.output
	if s.state != "" {
		text = "ERROR " + s.state + ": " + s.message
	}
	if len(text) > 600 {
		text = text[:600] + "…"
	}
	return fmt.Sprintf("%s %d (%d ms): %s", s.phase, s.n, s.took.Milliseconds(), text)
}

// execute runs a text of one or more statements as a client would that knows nothing of parameters. Values are separated
// by |, rows by line breaks.
func execute(ctx context.Context, conn *pgx.Conn, sql string) seen {
	started := time.Now()
	results, err := conn.PgConn().Exec(ctx, sql).ReadAll()
	return outcome(started, results, err)
}

// tell has the agent run a statement as a tool call.
func tell(ctx context.Context, conn *pgx.Conn, agent, statement string) seen {
	started := time.Now()
	r := conn.PgConn().ExecParams(ctx, "SELECT harness.tell($1, $2)", [][]byte{[]byte(agent), []byte(statement)}, nil, nil, nil).Read()
	return outcome(started, []*pgconn.Result{r}, r.Err)
}

func outcome(started time.Time, results []*pgconn.Result, err error) seen {
	s := seen{took: time.Since(started)}
	var lines []string
	for _, r := range results {
		for _, row := range r.Rows {
			values := make([]string, len(row))
			for i, v := range row {
				values[i] = string(v)
			}
			lines = append(lines, strings.Join(values, "|"))
		}
	}
	s.output = strings.Join(lines, "\n")
	var e *pgconn.PgError
	switch {
	case errors.As(err, &e):
		s.state, s.message = e.Code, e.Message
	case err != nil:
		s.state, s.message = "no answer", err.Error()
	}
	return s
}

// value runs a query of one value that must succeed.
func value(t *testing.T, conn *pgx.Conn, sql string) string {
	t.Helper()
	s := execute(t.Context(), conn, sql)
	require.Empty(t, s.state, "%s: %s", sql, s.message)
	return s.output
}

// do runs statements that must succeed.
func do(t *testing.T, conn *pgx.Conn, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		_ = value(t, conn, sql)
	}
}

// version is the server's, as a number like 150020.
func version(t *testing.T, conn *pgx.Conn) int {
	t.Helper()
	n, err := strconv.Atoi(value(t, conn, "SHOW server_version_num"))
	require.NoError(t, err)
	return n
}

// fingerprint is what a caller can notice of its own session, by name.
type fingerprint map[string]any

func takeFingerprint(t *testing.T, conn *pgx.Conn) fingerprint {
	t.Helper()
	f := fingerprint{}
	require.NoError(t, json.Unmarshal([]byte(value(t, conn, "SELECT harness.fingerprint()")), &f))
	f["search_path"] = value(t, conn, "SHOW search_path")
	f["locks"] = value(t, conn, "SELECT harness.locks()")
	f["status"] = string(conn.PgConn().TxStatus())
	return f
}

// changes lists what is different. A setting that was not there before came with a library and counts only when it is
// not at its default, which fresh libraries' settings are; the locks of a writing call last until the end of the caller's
// transaction, as those of any statement do.
func (f fingerprint) changes(after fingerprint, readOnly bool) []string {
	var list []string
	before, _ := f["settings"].(map[string]any)
	now, _ := after["settings"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if now[name] != before[name] {
			list = append(list, fmt.Sprintf("setting %s: %v, now %v", name, before[name], now[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		was, is := fmt.Sprint(f[name]), fmt.Sprint(after[name])
		if name != "settings" && was != is && (readOnly || name != "locks") {
			list = append(list, fmt.Sprintf("%s: %s, now %s", name, was, is))
		}
	}
	return list
}

// digest is what is stored in the database, by relation.
func digest(t *testing.T, admin *pgx.Conn) map[string]any {
	t.Helper()
	d := map[string]any{}
	require.NoError(t, json.Unmarshal([]byte(value(t, admin, "SELECT harness.digest()")), &d))
	return d
}

func written(before, after map[string]any) []string {
	var names []string
	for name, was := range before {
		if after[name] != was {
			names = append(names, name)
		}
	}
	for name := range after {
		if _, there := before[name]; !there {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
