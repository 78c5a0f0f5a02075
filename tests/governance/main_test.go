// Package governance asks, as users see it, whether what aidb promises about purposes, decisions, telemetry, history and
// read-only runs holds. Nothing here knows how it works inside; what it takes to look behind the views is done as a
// superuser. docs/reference/security.md is the text that these tests stand behind.
package governance

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/cluster"
	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

var server *servertest.Server

func TestMain(m *testing.M) { servertest.Main(m, cluster.Options{}, &server) }

var (
	query = []string{"run_sql_query"}
	both  = []string{"run_sql_query", "execute_sql"}
)

// execute is a reply that asks for one execute_sql.
func execute(sql string) fakemodel.Reply {
	return fakemodel.Call("execute_sql", map[string]any{"statement": sql})
}

// purposeRole makes a role with the two SQL tools and nothing else, a purpose of the same name for it, and makes ann a
// member.
func purposeRole(t *testing.T, name string) {
	t.Helper()
	admin := server.Admin(t)
	servertest.Exec(t, admin, "CREATE ROLE "+name+"; GRANT "+name+" TO ann; "+
		"GRANT EXECUTE ON FUNCTION aidb.run_sql_query(text), aidb.execute_sql(text) TO "+name)
	servertest.Exec(t, admin, "SELECT aidb.create_purpose($1, $1)", name)
}

// agent registers an agent that carries a purpose ("" for none), on a model of its own name.
func agent(t *testing.T, conn *pgx.Conn, name, purpose string, tools []string, replies ...fakemodel.Reply) {
	t.Helper()
	server.Agent(t, conn, name, tools, replies...)
	if purpose != "" {
		servertest.Exec(t, conn, "SELECT * FROM aidb.update_agent($1, purpose => $2)", name, purpose)
	}
}

// results has the agent make these calls, one a round, and returns what each came back with. The call as a whole must end
// with an answer: a refused tool does not end a conversation.
func results(t *testing.T, conn *pgx.Conn, agent string, calls ...fakemodel.Reply) ([]string, servertest.Outcome) {
	t.Helper()
	server.Model.Script(agent, append(calls[:len(calls):len(calls)], fakemodel.Say("done"))...)
	o := servertest.MustAsk(t, conn, agent, "go")
	require.Equal(t, "done", o.Message)
	return seen(agent), o
}

// result is results for one call.
func result(t *testing.T, conn *pgx.Conn, agent string, call fakemodel.Reply) string {
	t.Helper()
	all, _ := results(t, conn, agent, call)
	require.Len(t, all, 1)
	return all[0]
}

// seen is what the calls of an agent's newest turn came back with, as its model saw it.
func seen(agent string) []string {
	requests := server.Model.Requests(agent)
	var list []string
	for _, e := range requests[len(requests)-1].Turn() {
		list = append(list, e.Result)
	}
	return list
}

// decisionID is the end of the text of each refusal.
var decisionID = regexp.MustCompile(` \[decision_id=([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\]$`)

// refusal takes a denied call's text apart: what it says, and the record that it names.
func refusal(t *testing.T, conn *pgx.Conn, text string) (said string, record map[string]any) {
	t.Helper()
	m := decisionID.FindStringSubmatch(text)
	require.NotNil(t, m, "a refusal ends in its decision's id: %s", text)
	rows := servertest.Rows(t, conn, "SELECT * FROM aidb.decisions WHERE decision_id = $1", m[1])
	require.Len(t, rows, 1, "the decision %s is found", m[1])
	require.Equal(t, "denied", rows[0]["status"])
	return strings.TrimSuffix(text, m[0]), rows[0]
}

// requireRefused is refusal for a text and a reason that are known.
func requireRefused(t *testing.T, conn *pgx.Conn, text, want, reason string) map[string]any {
	t.Helper()
	said, d := refusal(t, conn, text)
	said, _, _ = strings.Cut(said, "\n") // details and hints follow on lines of their own
	require.Equal(t, "Tool error: "+want, said)
	require.Equal(t, reason, d["denial_reason"], text)
	return d
}

// decisions are the records of a conversation, oldest first.
func decisions(t *testing.T, conn *pgx.Conn, conversation string) []map[string]any {
	t.Helper()
	return servertest.Rows(t, conn, "SELECT * FROM aidb.decisions WHERE conversation_id = $1::uuid ORDER BY at, decision_id", conversation)
}

// sqlDecisions are those of tool calls.
func sqlDecisions(t *testing.T, conn *pgx.Conn, conversation string) []map[string]any {
	t.Helper()
	var list []map[string]any
	for _, d := range decisions(t, conn, conversation) {
		if d["interaction_point"] == "sql_exec" {
			list = append(list, d)
		}
	}
	return list
}

// requireError runs a statement that must fail with this SQLSTATE and this message.
func requireError(t *testing.T, conn *pgx.Conn, state, message, sql string, args ...any) {
	t.Helper()
	_, err := conn.Exec(t.Context(), sql, args...)
	require.Error(t, err, sql)
	require.Equal(t, state, servertest.State(err), "%s: %v", sql, err)
	require.Contains(t, err.Error(), "ERROR: "+message+" (SQLSTATE", sql)
}

// held is a call that stands still in its second model request, after its first tool call.
type held struct {
	gate chan struct{}
	done chan held2
}

type held2 struct {
	servertest.Outcome
	err error
}

// hold has the agent make the first call, waits until the model has its result, and leaves the run there.
func hold(t *testing.T, conn *pgx.Conn, agent string, first, second fakemodel.Reply) held {
	t.Helper()
	h := held{gate: make(chan struct{}), done: make(chan held2, 1)}
	second.Gate = h.gate
	server.Model.Script(agent, first, second, fakemodel.Say("done"))
	before := len(server.Model.Requests(agent))
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	t.Cleanup(cancel)
	go func() {
		o, err := servertest.Ask(ctx, conn, agent, "go")
		h.done <- held2{o, err}
	}()
	require.NoError(t, server.Model.WaitFor(ctx, "the second request", func() bool {
		return len(server.Model.Requests(agent)) == before+2 && server.Model.InFlight(agent) == 1
	}))
	return h
}

// release lets the call go on and returns what both tool calls came back with.
func (h held) release(t *testing.T, agent string) []string {
	t.Helper()
	close(h.gate)
	end := <-h.done
	require.NoError(t, end.err)
	require.Empty(t, end.Error)
	require.Equal(t, "done", end.Message)
	return seen(agent)
}
