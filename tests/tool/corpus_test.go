package tool

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/servertest"
)

// statement is a line of the corpus.
type statement struct {
	line      int
	sql       string
	params    [][2]string // name, type
	arguments string      // JSON object
	reason    string      // what the refusal must say
}

func corpus(t *testing.T, file string) []statement {
	t.Helper()
	f, err := os.Open("corpus/" + file)
	require.NoError(t, err)
	defer f.Close()
	var list []statement
	reason := ""
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if why, is := strings.CutPrefix(line, "-- reason: "); is {
			reason = why
			continue
		}
		if line == "" || strings.HasPrefix(line, "--") {
			continue
		}
		s := statement{line: n, sql: line, reason: reason, arguments: "{}"}
		if strings.HasPrefix(line, "[") {
			head, sql, found := strings.Cut(line[1:], "] SELECT ")
			if !found {
				head, sql, found = strings.Cut(line[1:], "] ")
			} else {
				sql = "SELECT " + sql
			}
			require.True(t, found, line)
			s.sql = sql
			var given []string
			for _, p := range strings.Split(head, ", ") {
				declared, value, has := strings.Cut(p, " = ")
				if !has && len(s.params) > 0 && !strings.Contains(p, " ") || strings.HasPrefix(p, `"`) {
					given[len(given)-1] += ", " + p // a comma within a value
					continue
				}
				name, kind, _ := strings.Cut(declared, " ")
				s.params = append(s.params, [2]string{name, kind})
				if has {
					given = append(given, fmt.Sprintf("%q: %s", name, value))
				}
			}
			s.arguments = "{" + strings.Join(given, ", ") + "}"
		}
		list = append(list, s)
	}
	require.NoError(t, lines.Err())
	return list
}

func (s statement) create(t *testing.T, conn *pgx.Conn, name string) error {
	var params []string
	for _, p := range s.params {
		params = append(params, fmt.Sprintf("aidb.tool_param('%s', '%s', 'x')", p[0], p[1]))
	}
	return tryCreate(t, conn, name, s.sql, strings.Join(params, ", "))
}

var fixture = sync.OnceValue(func() error {
	sql, err := os.ReadFile("corpus/fixture.sql")
	if err != nil {
		return err
	}
	if err = server.Exec(context.Background(), servertest.Database, string(sql)); err != nil {
		_, what, _ := strings.Cut(err.Error(), ": ERROR: ") // not the whole file again
		return fmt.Errorf("fixture.sql: %s", what)
	}
	return nil
})

// What is registered as read-only is refused where it might write, and the refusal says what in it does.
func TestReadOnlyProof_RefusesWhatWrites(t *testing.T) {
	require.NoError(t, fixture())
	ann := server.Conn(t, "ann")
	list := corpus(t, "writes.sql")
	require.GreaterOrEqual(t, len(list), 150)
	for _, s := range list {
		err := s.create(t, ann, fmt.Sprintf("writes_%d", s.line))
		if err == nil {
			t.Errorf("writes.sql:%d was accepted: %s", s.line, s.sql)
			continue
		}
		if !strings.Contains(err.Error(), s.reason) {
			t.Errorf("writes.sql:%d: %s\n  said: %v\n  not: %s", s.line, s.sql, err, s.reason)
		}
	}
	require.Equal(t, "0", servertest.Value(t, server.Admin(t), "SELECT count(*) FROM w.log"), "looking at a statement runs nothing")
	require.Equal(t, "0", servertest.Value(t, ann, "SELECT count(*) FROM aidb.sql_tool_registry WHERE name LIKE 'writes%'"))
}

// What only reads is accepted, whatever words are in it, and runs.
func TestReadOnlyProof_AcceptsWhatReads(t *testing.T) {
	require.NoError(t, fixture())
	ann := server.Conn(t, "ann")
	list := corpus(t, "reads.sql")
	require.GreaterOrEqual(t, len(list), 150)
	for _, s := range list {
		name := fmt.Sprintf("reads_%d", s.line)
		if err := s.create(t, ann, name); err != nil {
			t.Errorf("reads.sql:%d was refused: %s\n  %v", s.line, s.sql, err)
			continue
		}
		var result string
		if err := ann.QueryRow(t.Context(), "SELECT aidb.run_tool($1, $2::jsonb)::text", name, s.arguments).Scan(&result); err != nil {
			t.Errorf("reads.sql:%d does not run: %s %s\n  %v", s.line, s.sql, s.arguments, err)
		}
	}
}

// The layer underneath: what was read-only when it was registered and is not any more writes nothing.
func TestReadOnlyProof_IsNotTheOnlyLayer(t *testing.T) {
	require.NoError(t, fixture())
	admin, ann := server.Admin(t), server.Conn(t, "ann")
	servertest.Exec(t, admin, `CREATE FUNCTION w.changes() RETURNS integer LANGUAGE sql STABLE AS 'SELECT 1';
		GRANT USAGE ON SEQUENCE w.log_id_seq TO ann`)
	create(t, ann, "changing", "SELECT w.changes() AS a", "")
	require.Equal(t, `[{"a": 1}]`, run(t, ann, "changing", "{}"))
	servertest.Exec(t, admin, `CREATE OR REPLACE FUNCTION w.changes() RETURNS integer LANGUAGE sql STABLE AS 'SELECT w.put(''changed'')'`)
	require.Contains(t, refused(t, ann, "42501", "SELECT aidb.run_tool('changing')"), "function put is not allowed in a read-only tool call")
	require.Equal(t, "0", servertest.Value(t, admin, "SELECT count(*) FROM w.log"))
}
