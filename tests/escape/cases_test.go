package escape

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func TestCases(t *testing.T) {
	for _, c := range allCases(t) {
		t.Run(c.name, func(t *testing.T) { c.run(t) })
	}
}

func (c *escapeCase) run(t *testing.T) {
	db := database(t)
	admin := connect(t, "postgres", db)
	for name := range strings.FieldsSeq(c.header["needs"]) {
		if s := execute(t.Context(), admin, "CREATE EXTENSION "+name); s.state != "" {
			t.Skipf("needs extension %s: %s", name, s.message)
		}
	}
	for _, sql := range c.of("setup") {
		s := execute(t.Context(), admin, sql)
		require.Empty(t, s.state, "setup: %s\n%s", s.message, sql)
		do(t, admin, "RESET ROLE")
	}
	if limit := c.header["time"]; limit != "" {
		do(t, admin, fmt.Sprintf("ALTER DATABASE %s SET aidb.tool_timeout = '%s'", db, limit))
	}
	logged := logSize()
	s := &caseSession{t: t, c: c, conn: connect(t, callers[c.header["caller"]], db), admin: admin}
	s.play()
	if testing.Verbose() {
		t.Log(s.transcript())
	}
	if limit := c.header["log"]; limit != "" {
		n, err := strconv.ParseInt(limit, 10, 64)
		require.NoError(t, err)
		require.LessOrEqual(t, logSize()-logged, n, "the server's log grew by more")
	}
	for _, check := range c.of("check") {
		verdict := execute(t.Context(), admin, check)
		require.Empty(t, verdict.state, "check: %s", verdict.message)
		require.Equal(t, "t", verdict.output, "must: %s\nfailed: %s\n%s", c.header["must"], check, s.transcript())
	}
}

// caseSession is the caller's session of one case.
type caseSession struct {
	t     *testing.T
	c     *escapeCase
	conn  *pgx.Conn
	admin *pgx.Conn
	all   []seen
	count map[string]int
}

func (s *caseSession) play() {
	ctx, cancel := context.WithTimeout(s.t.Context(), s.c.seconds(s.t))
	defer cancel()
	s.count = map[string]int{}
	inBlock, readOnly := s.c.header["txn"] == "block", s.c.header["mode"] == "readonly"
	if inBlock {
		do(s.t, s.conn, "BEGIN")
	}
	for _, sql := range s.c.of("before") {
		s.note("before", execute(ctx, s.conn, sql))
	}
	var mark fingerprint
	var stored map[string]any
	if s.c.header["fingerprint"] != "off" {
		mark = takeFingerprint(s.t, s.conn)
	}
	if readOnly && s.c.header["digest"] != "off" {
		stored = digest(s.t, s.admin)
	}
	for _, sql := range s.c.attacks() {
		s.attack(ctx, sql, inBlock && s.c.header["savepoint"] != "off")
	}
	if mark != nil {
		require.Empty(s.t, mark.changes(takeFingerprint(s.t, s.conn), readOnly), "the caller's session changed\n%s", s.transcript())
	}
	nothingWritten := func() {
		if stored != nil {
			require.Empty(s.t, written(stored, digest(s.t, s.admin)), "a read-only call wrote\n%s", s.transcript())
		}
	}
	nothingWritten()
	for _, sql := range s.c.of("after") {
		s.note("after", execute(ctx, s.conn, sql))
	}
	if inBlock {
		s.note("commit", execute(ctx, s.conn, "COMMIT"))
		nothingWritten() // others see it only now
	}
	for _, sql := range s.c.of("next") {
		s.note("next", execute(ctx, s.conn, sql))
	}
	require.False(s.t, s.conn.IsClosed(), "the session was lost\n%s", s.transcript())
	s.tellJudge()
}

// attack is one tool call. In a block the caller goes on after a refusal, as an application that knows savepoints would.
func (s *caseSession) attack(ctx context.Context, sql string, savepoint bool) {
	agent := "guest_writes"
	switch {
	case s.c.header["agent"] == "bare":
		agent = "bare_reads"
	case s.c.header["mode"] == "readonly":
		agent = "guest_reads"
	}
	if savepoint {
		do(s.t, s.conn, "SAVEPOINT harness")
	}
	r := tell(ctx, s.conn, agent, sql)
	s.note("attack", r)
	require.False(s.t, s.conn.IsClosed(), "the session was lost\n%s", s.transcript())
	if savepoint {
		if r.state != "" {
			do(s.t, s.conn, "ROLLBACK TO harness")
		}
		do(s.t, s.conn, "RELEASE harness")
	}
}

func (s *caseSession) note(phase string, r seen) {
	s.count[phase]++
	r.phase, r.n = phase, s.count[phase]
	s.all = append(s.all, r)
}

func (s *caseSession) tellJudge() {
	for _, r := range s.all {
		_, err := s.admin.Exec(s.t.Context(), "INSERT INTO judge.seen VALUES ($1, $2, $3, $4, $5, $6)",
			r.phase, r.n, r.output, r.state, r.message, float64(r.took.Microseconds())/1000)
		require.NoError(s.t, err)
	}
}

func (s *caseSession) transcript() string {
	lines := make([]string, len(s.all))
	for i, r := range s.all {
		lines[i] = r.String()
	}
	return strings.Join(lines, "\n")
}
