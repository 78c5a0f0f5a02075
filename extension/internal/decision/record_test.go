package decision

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func TestHash_EveryFieldCounts(t *testing.T) {
	t.Parallel()
	n := int64(3)
	base := Record{ID: uuid.New(), At: time.Unix(1700000000, 123456000), Agent: "a", Tool: "t", Point: SQLExec,
		Principal: "p", Caller: "c", SessionUser: "s", Status: Allowed, Query: "SELECT 1"}
	link := Link{Chain: uuid.New(), N: 1, Prev: []byte{1, 2}}
	want := base.Hash(link)
	require.Equal(t, want, base.Hash(link), "the same record has the same hash")
	for name, change := range map[string]func(*Record, *Link){
		"agent":     func(r *Record, _ *Link) { r.Agent = "b" },
		"empty":     func(r *Record, _ *Link) { r.Agent = "" },
		"shift":     func(r *Record, _ *Link) { r.Agent, r.Tool = "at", "" },
		"role":      func(r *Record, _ *Link) { r.Role = "x" },
		"status":    func(r *Record, _ *Link) { r.Status = Denied },
		"rows":      func(r *Record, _ *Link) { r.Rows = &n },
		"attempted": func(r *Record, _ *Link) { r.Attempted = true },
		"time":      func(r *Record, _ *Link) { r.At = r.At.Add(time.Microsecond) },
		"query":     func(r *Record, _ *Link) { r.Query = "SELECT 2" },
		"duration":  func(r *Record, _ *Link) { r.Duration = time.Millisecond },
		"place":     func(_ *Record, l *Link) { l.N = 2 },
		"previous":  func(_ *Record, l *Link) { l.Prev = []byte{1, 3} },
		"chain":     func(_ *Record, l *Link) { l.Chain = uuid.New() },
	} {
		r, l := base, link
		change(&r, &l)
		require.NotEqual(t, want, r.Hash(l), name)
	}
}

func TestText_IsCutAtACharacter(t *testing.T) {
	t.Parallel()
	r := Record{Query: strings.Repeat("x", maxQuery-1) + "ü"}
	require.Equal(t, strings.Repeat("x", maxQuery-1), r.Text())
	r.Query = strings.Repeat("x", maxQuery)
	require.Equal(t, r.Query, r.Text())
	require.Len(t, r.QueryHash(), 64)
	require.Empty(t, Record{}.QueryHash())
}

func TestAttempts(t *testing.T) {
	t.Parallel()
	for _, sql := range []string{
		"SET ROLE postgres", "set local role x", "SET SESSION ROLE x", "reset /* a */ role", "SELECT 1; RESET ROLE",
		"SET SESSION AUTHORIZATION DEFAULT", "SELECT set_config('role', 'x', true)", "SELECT set_config ( 'a', 'b', false)",
		"DO $$ BEGIN EXECUTE 'SET ROLE postgres'; END $$", "DISCARD ALL", "RESET -- now\n ALL", "ALTER ROLE me SUPERUSER",
		"set\n\tsession\n\tauthorization x",
	} {
		require.True(t, Attempts(sql), sql)
	}
	for _, sql := range []string{
		"SELECT role FROM staff", "UPDATE staff SET grade = 2 WHERE role = 'x'", "SELECT current_setting('role')",
		"-- set the table\nSELECT 1", "SELECT 'all discarded'", "SELECT * FROM sessions",
	} {
		require.False(t, Attempts(sql), sql)
	}
}

func TestSwitches(t *testing.T) {
	t.Parallel()
	for _, sql := range []string{
		"SET ROLE x", " set local role x", "/* a */ SET SESSION AUTHORIZATION y", "-- a\nreset role", "RESET ALL;", "discard  all", "set session role none",
		"RESET SESSION AUTHORIZATION", "SET role = 'x'",
	} {
		require.True(t, Switches(sql), sql)
	}
	for _, sql := range []string{
		"SELECT set_config('role', 'x', true)", "DO $$ BEGIN SET ROLE x; END $$", "SET roles = 1", "RESET work_mem", "DISCARD PLANS", "SELECT 'RESET ALL'",
	} {
		require.False(t, Switches(sql), sql)
	}
}
