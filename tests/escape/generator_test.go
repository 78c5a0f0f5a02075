package escape

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// Twenty thousand statements that nobody thought of, as tool calls, in one session for each kind of caller. What a single
// statement does is not known; what none of them may do is. The statements are the same every time; AIDB_ESCAPE_SEED=n
// makes others.
const (
	generated = 20_000
	stretch   = 200 // calls of one mode in a row; between stretches the database is compared
	usualSeed = 20240611
)

// wanted is how many statements each of the three sessions makes: together all of them, or what GENERATOR_PERCENT of it
// says (for a quick look).
func wanted(t *testing.T) int {
	percent, err := strconv.Atoi(os.Getenv("GENERATOR_PERCENT"))
	if err != nil {
		return generated/3 + 1
	}
	t.Logf("GENERATOR_PERCENT: %d percent of %d", percent, generated)
	return generated*percent/100/3 + 1
}

func seed(t *testing.T) uint64 {
	text := os.Getenv("AIDB_ESCAPE_SEED")
	if text == "" {
		return usualSeed
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err)
	return n
}

// What is true of the caller's session after every call, within its transaction still.
const standing = `SELECT concat_ws('|', session_user, current_user, current_setting('role'), current_setting('search_path'), current_setting('transaction_read_only'),
	current_setting('work_mem'), current_setting('app.token'), current_setting('app.marker', true) IS NULL,
	(SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory' AND objsubid < 3),
	(SELECT string_agg(name, ',' ORDER BY name) FROM pg_cursors WHERE name <> ''), (SELECT string_agg(name, ',') FROM pg_prepared_statements),
	(SELECT string_agg(c, ',') FROM pg_listening_channels() c), pg_my_temp_schema() = 0, current_setting('client_min_messages'))`

type generation struct {
	role   string
	seed   uint64
	made   *atomic.Int64 // of all sessions
	seeds  []string
	honest []string

	conn, admin *pgx.Conn
	last        []string       // the statements of the stretch in hand
	ended       map[string]int // how often a run ended with which error
}

func TestGenerated_StatementsChangeNothingTheyMayNot(t *testing.T) {
	var more string
	// Sleeping, looping and growing are for the cases that are about them.
	slow := regexp.MustCompile(`pg_sleep|100000|LOOP BEGIN|repeat\(`)
	var seeds []string
	for _, c := range allCases(t) {
		for _, a := range c.attacks() {
			if c.header["class"] != "resource" && !slow.MatchString(a) {
				seeds = append(seeds, a)
			}
		}
	}
	honest := []string{}
	for _, name := range slices.Sorted(maps.Keys(reading)) {
		honest = append(honest, reading[name].sql)
	}
	for _, h := range writing {
		honest = append(honest, h.sql)
	}
	for _, file := range []string{"legit.sql", "generator.sql"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		more += string(text)
	}
	var made atomic.Int64
	started := time.Now()
	t.Run("sessions", func(t *testing.T) {
		// All databases before the first statement: the cluster's own catalogs are compared too.
		all := map[string]*generation{}
		for i, role := range []string{"postgres", "keeper", "clerk"} {
			db := database(t, role)
			require.NoError(t, script(t.Context(), db, more))
			require.NoError(t, server.Exec(t.Context(), db, "ALTER DATABASE "+db+" SET aidb.tool_timeout = '150ms'"))
			all[role] = &generation{role: role, seed: seed(t) + uint64(i), made: &made, seeds: seeds, honest: honest, ended: map[string]int{}, conn: connect(t, role, db), admin: connect(t, "postgres", db)}
		}
		for role, g := range all {
			t.Run(role, func(t *testing.T) {
				t.Parallel()
				g.run(t)
			})
		}
	})
	t.Logf("%d statements in %.0f s", made.Load(), time.Since(started).Seconds())
	require.Equal(t, int64(3*wanted(t)), made.Load())
}

func (g *generation) run(t *testing.T) {
	do(t, g.conn, "SET work_mem = '5MB'", "SET app.token = 'secret'", "PREPARE mine AS SELECT 1", "LISTEN news", "SELECT pg_advisory_lock(77)")
	words := &grammar{Rand: rand.New(rand.NewPCG(g.seed, 1)), seeds: g.seeds, honest: g.honest} //nolint:gosec // the same statements every time
	want, memory := g.standing(t), g.memory(t)
	left := wanted(t)
	for writes := false; left > 0; writes = !writes {
		before := digest(t, g.admin)
		g.last = g.last[:0]
		for ; len(g.last) < stretch && left > 0; left-- {
			g.call(t, words.text(3), writes, want)
			g.made.Add(1)
		}
		g.compare(t, before, digest(t, g.admin), writes)
	}
	require.Equal(t, want, g.standing(t))
	require.Equal(t, "0", value(t, g.admin, "SELECT count(*) FROM safe.breach"))
	require.Equal(t, "0", value(t, g.admin, "SELECT count(*) FROM aidb.verify_decisions(since => clock_timestamp() - interval '2 s')"))
	grown := g.memory(t) - memory
	t.Logf("%s: %s; the session grew by %d MB", g.role, value(t, g.admin, `SELECT format('%s ran, %s failed, %s refused',
		count(*) FILTER (WHERE status = 'allowed' AND sqlstate IS NULL), count(*) FILTER (WHERE status = 'allowed' AND sqlstate IS NOT NULL),
		count(*) FILTER (WHERE status = 'denied')) FROM aidb_internal.decision_log WHERE interaction_point = 'sql_exec'`), grown>>20)
	for told, n := range g.ended {
		t.Logf("%s: %d runs ended with %q", g.role, n, told)
	}
	require.Less(t, grown, int64(256<<20))
}

func (g *generation) standing(t *testing.T) string {
	t.Helper()
	do(t, g.conn, "BEGIN", "DECLARE mine CURSOR FOR SELECT line FROM store.ledger")
	s := value(t, g.conn, standing)
	do(t, g.conn, "COMMIT")
	return s
}

// memory is what the session's process has for itself.
func (g *generation) memory(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.conn.PgConn().PID()))
	require.NoError(t, err)
	m := regexp.MustCompile(`RssAnon:\s+(\d+) kB`).FindSubmatch(text)
	require.NotNil(t, m)
	kb, err := strconv.ParseInt(string(m[1]), 10, 64)
	require.NoError(t, err)
	return kb << 10
}

// call makes one tool call in a transaction of its own, in which the caller has a cursor open, and looks at the session
// before and after its end.
func (g *generation) call(t *testing.T, statement string, writes bool, want string) {
	t.Helper()
	statement = strings.ReplaceAll(statement, "\x00", "")
	g.last = append(g.last, statement)
	agent, mode := "guest_reads", ", read_only => true"
	if writes {
		agent, mode = "guest_writes", ""
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	s := execute(ctx, g.conn, "BEGIN; DECLARE mine CURSOR FOR SELECT line FROM store.ledger; SELECT coalesce(error, 'done') FROM aidb.agent_converse('"+agent+"', "+quoted(statement)+mode+"); "+standing+"; COMMIT")
	require.Empty(t, s.state, "%s\nseed %d, statement %d of the stretch, writes %t:\n%s", s, g.seed, len(g.last), writes, statement)
	told, is, _ := strings.Cut(s.output, "\n")
	if told != "done" {
		g.ended[told[:min(len(told), 100)]]++
	}
	require.Equal(t, want, is, "seed %d, writes %t:\n%s", g.seed, writes, statement)
}

// quoted is a literal whatever is in it.
func quoted(s string) string {
	tag := "$q$"
	for strings.Contains(s, tag) || strings.HasSuffix(s, "$q") || strings.HasSuffix(s, "$") {
		if tag = "$q" + strings.Repeat("x", len(tag)) + "$"; !strings.Contains(s, tag) {
			break
		}
	}
	return tag + s + tag
}

// compare looks at what a stretch has left. Reading leaves nothing; writing leaves rows where guest may put them, and
// in the catalog nothing.
func (g *generation) compare(t *testing.T, before, after map[string]any, writes bool) {
	t.Helper()
	changed := written(before, after)
	if writes {
		allowed := regexp.MustCompile(`^(guest\.|store\.|pg_class$)`) // TRUNCATE gives a table a new file
		kept := changed[:0]
		for _, name := range changed {
			if !allowed.MatchString(name) {
				kept = append(kept, name)
			}
		}
		changed = kept
	}
	require.Empty(t, changed, "seed %d, writes %t; one of:\n%s", g.seed, writes, strings.Join(g.last, "\n"))
}
