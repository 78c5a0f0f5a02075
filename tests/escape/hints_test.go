package escape

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What is refused although it is honest says what to write instead.
func TestRefusals_SayWhatToWriteInstead(t *testing.T) {
	conn := connect(t, "clerk", database(t))
	for _, c := range []struct{ agent, statement, says string }{
		{"guest_writes", "CREATE TEMP TABLE t (a integer)", "Use a common table expression"},
		{"guest_writes", "CREATE TEMP TABLE t AS SELECT 1 AS a", "Use a common table expression"},
		{"guest_writes", "PREPARE q AS SELECT 1", "Send the statement itself."},
		{"guest_writes", "EXECUTE q", "Send the statement itself."},
		{"guest_writes", "DECLARE c CURSOR FOR SELECT 1", "Page through the rows"},
		{"guest_writes", "FETCH c", "Page through the rows"},
		{"guest_writes", "SET TimeZone = 'UTC'", "with the settings of its caller"},
		{"guest_writes", "SELECT set_config('app.x', '1', true)", "with the settings of its caller"},
		{"guest_writes", "SELECT 1; SELECT 2", "Send the statements one by one."},
		{"guest_writes", "COPY store.goods TO STDOUT", "Use SELECT to read"},
		{"guest_writes", "DO $$ BEGIN COPY store.goods TO STDOUT; END $$", "COPY"},
		{"guest_reads", "COPY store.goods FROM STDIN", "Use SELECT to read"},
		{"guest_writes", "BEGIN", "one step of the caller's transaction"},
		{"guest_reads", "COMMIT", "one step of the caller's transaction"},
		{"guest_writes", "NOTIFY news", "Let the application send"},
		{"guest_reads", "DO $$ BEGIN END $$", "a DO block is for tools that write"},
		{"guest_reads", "SELECT * FROM store.goods FOR UPDATE", "Leave out FOR UPDATE"},
		{"guest_writes", "INSERT INTO store.lines VALUES (900, 1)", "An administrator can make it immediate."},
	} {
		require.Contains(t, tell(t.Context(), conn, c.agent, c.statement).message, c.says, c.statement)
	}
}
