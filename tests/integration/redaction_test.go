package integration

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// Each is a secret by its structure.
const (
	keyInPrompt  = "sk-prompt-0123456789abcdefghij"
	keyInQuery   = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
	keyInResult  = "hunter2-in-a-result"
	keyInAnswer  = "AKIAIOSFODNN7EXAMPLE"
	ssnInResult  = "078-05-1120"
	caseInAnswer = "CASE-4711"
)

// everywhere lists the relations of aidb that hold the text.
func everywhere(t *testing.T, text string) string {
	t.Helper()
	super := server.Admin(t)
	var found []string
	for _, r := range servertest.Rows(t, super, `SELECT c.oid::regclass::text AS name FROM pg_class c
		WHERE c.relkind = 'r' AND c.relnamespace IN ('aidb_internal'::regnamespace, 'aidb_otel'::regnamespace)
		  AND c.relname <> 'models'`) {
		name := r["name"].(string)
		if servertest.Value(t, super, "SELECT count(*) FROM "+name+" x WHERE x::text LIKE '%' || $1 || '%'", text) != "0" {
			found = append(found, name)
		}
	}
	return strings.Join(found, ", ")
}

func TestRedaction_NothingKeepsASecret(t *testing.T) {
	super := server.Admin(t)
	servertest.Exec(t, super, "SELECT aidb.add_redaction('ssn', column_name => 'ssn')")
	servertest.Exec(t, super, `SELECT aidb.add_redaction('cases', pattern => 'CASE-[0-9]+')`)
	defer servertest.Exec(t, super, "SELECT aidb.remove_redaction('ssn'), aidb.remove_redaction('cases')")
	servertest.Exec(t, super, "ALTER ROLE ann SET aidb.otel_client = 'database'")
	defer servertest.Exec(t, super, "ALTER ROLE ann RESET aidb.otel_client")
	ann, notices := server.ConnNoting(t, "ann")
	servertest.Exec(t, super, "CREATE TABLE re_people AS SELECT '"+ssnInResult+"' AS ssn, '"+keyInResult+"' AS password, 'mia' AS name; GRANT SELECT ON re_people TO ann")
	server.Agent(t, ann, "re", sql,
		fakemodel.Query("SELECT ssn, password, name, '"+keyInQuery+"' AS k FROM re_people"),
		fakemodel.Query("SELECT * FROM re_gone WHERE k = '"+keyInQuery+"'"),
		fakemodel.Say("use "+keyInAnswer+", see "+caseInAnswer))
	o := servertest.MustAsk(t, ann, "re", "my key is "+keyInPrompt, "debug => true")

	said := strings.Join(append(notices.Lines("NOTICE"), notices.Lines("WARNING")...), "\n")

	// The model and the caller get what is theirs.
	require.Equal(t, "use "+keyInAnswer+", see "+caseInAnswer, o.Message)
	requests := server.Model.Requests("re")
	sent := strings.Join(contents(requests[2]), "\n")
	for _, secret := range []string{keyInPrompt, keyInQuery, keyInResult, ssnInResult} {
		require.Contains(t, sent, secret)
	}
	for _, secret := range []string{keyInPrompt, keyInQuery, keyInResult, keyInAnswer, ssnInResult, caseInAnswer} {
		require.NotContains(t, said, secret)
		require.Empty(t, everywhere(t, secret), secret)
	}
	require.Contains(t, said, `[tool_response] run_sql_query -> [{"ssn": "[redacted]", "password": "[redacted]", "name": "mia", "k": "[redacted]"}]`)
	require.Equal(t, "use [redacted], see [redacted]", servertest.Value(t, ann, "SELECT contents FROM aidb.get_conversation($1) WHERE role = 'agent'", o.Conversation))
	require.Equal(t, "2", servertest.Value(t, ann, "SELECT count(*) FROM aidb.decisions WHERE conversation_id = $1::uuid AND query_text LIKE '%[redacted]%'", o.Conversation))
	require.Equal(t, "0", servertest.Value(t, super, "SELECT count(*) FROM aidb.verify_decisions()"))

	// Errors too, also those that are raised.
	_, err := ann.Exec(t.Context(), "SELECT aidb.run_sql_query($1)", "SELECT '"+caseInAnswer+" "+keyInQuery+"'::int")
	require.ErrorContains(t, err, "[redacted]")
	require.NotContains(t, err.Error(), keyInQuery)
	server.Agent(t, ann, "re_error", nil, fakemodel.Fail(400, "bad header "+caseInAnswer))
	o, err = servertest.Ask(t.Context(), ann, "re_error", "go")
	require.NoError(t, err)
	require.Contains(t, o.Error, "bad header [redacted]")
}

func TestRedaction_CanBeTurnedOffByASuperuser(t *testing.T) {
	ann := server.Conn(t, "ann")
	server.Agent(t, ann, "re_off", nil, fakemodel.Say("ok"))
	_, err := ann.Exec(t.Context(), "SET aidb.redaction = off")
	require.Equal(t, "42501", servertest.State(err))
	super := server.Admin(t)
	servertest.Exec(t, super, "ALTER ROLE ann SET aidb.redaction = off")
	defer servertest.Exec(t, super, "ALTER ROLE ann RESET aidb.redaction")
	conn := server.Conn(t, "ann")
	o := servertest.MustAsk(t, conn, "re_off", "key sk-off-0123456789abcdefghijkl")
	require.Contains(t, spoken(t, conn, o.Conversation), "sk-off-0123456789abcdefghijkl")
}

func TestRedaction_Registering(t *testing.T) {
	super, ann := server.Admin(t), server.Conn(t, "ann")
	_, err := ann.Exec(context.Background(), "SELECT aidb.add_redaction('x', column_name => 'y')")
	require.Equal(t, "42501", servertest.State(err))
	_, err = ann.Exec(context.Background(), "SELECT * FROM aidb.redactions")
	require.Equal(t, "42501", servertest.State(err))
	for call, want := range map[string]string{
		"'x'":                               "Invalid parameters: give either column_name or pattern",
		"'x', 'a', 'b'":                     "Invalid parameters: give either column_name or pattern",
		"'', 'a'":                           "Invalid parameters: redaction name must not be empty",
		"'x', ''":                           "Invalid parameters: column_name must not be empty",
		"'x', pattern => '('":               "Invalid parameters: pattern cannot be used: error parsing regexp",
		"'x', pattern => 'a*'":              "Invalid parameters: pattern cannot be used: the pattern matches the empty text",
		"'x', pattern => repeat('a', 1001)": "Invalid parameters: pattern cannot be used: a pattern has 1 to 1000 bytes",
	} {
		_, err := super.Exec(t.Context(), "SELECT aidb.add_redaction("+call+")")
		require.ErrorContains(t, err, want, call)
	}
	_, err = super.Exec(t.Context(), "SELECT aidb.remove_redaction('nothing')")
	require.ErrorContains(t, err, "redaction 'nothing' not found")
	servertest.Exec(t, super, "SELECT aidb.add_redaction('re_twice', 'a_column')")
	defer servertest.Exec(t, super, "SELECT aidb.remove_redaction('re_twice')")
	_, err = super.Exec(t.Context(), "SELECT aidb.add_redaction('re_twice', 'a_column')")
	require.ErrorContains(t, err, "redaction 're_twice' already exists")
}
