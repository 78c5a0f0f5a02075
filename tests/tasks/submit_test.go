package tasks

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

func TestTask_AnswersInTheBackground(t *testing.T) {
	ann := server.Conn(t, "ann")
	server.Agent(t, ann, "six", []string{"run_sql_query"},
		fakemodel.Call("run_sql_query", json.RawMessage(`{"query": "SELECT 6 AS n, current_user AS u, session_user AS s"}`)), fakemodel.Say("six"))
	k := submit(t, ann, "six", "how many?")
	r := wait(t, ann, k)
	require.Equal(t, result{Status: "SUCCESS", Message: "six", Rounds: 2}, r)
	require.Equal(t, []string{"user_prompt", "model_request", "model_response", "tool_call", "tool_response", "model_request",
		"model_response", "answer"}, servertest.Types(servertest.Log(t, ann, k.Conversation)))
	require.Contains(t, servertest.Log(t, ann, k.Conversation)[4].Response, `{\"n\": 6, \"u\": \"ann\", \"s\": \"ann\"}`)
	require.Equal(t, "8", servertest.Value(t, ann, "SELECT count(*) FROM aidb.task_events($1::uuid)", k.ID))
	require.Equal(t, "3", servertest.Value(t, ann, "SELECT count(*) FROM aidb.task_events($1::uuid, 5)", k.ID))
	require.Equal(t, "false", servertest.Value(t, ann, "SELECT blocking FROM aidb.agent_tasks WHERE task_id = $1::uuid", k.ID))

	// the conversation goes on, here and there
	server.Model.Script("six", fakemodel.Say("seven"))
	require.Equal(t, "seven", servertest.MustAsk(t, ann, "six", "and now?", "conversation_id => '"+k.Conversation+"'").Message)
	again := submit(t, ann, "six", "and then?", "conversation_id => '"+k.Conversation+"'")
	require.Equal(t, "SUCCESS", wait(t, ann, again).Status)
	require.Equal(t, "6", servertest.Value(t, ann, "SELECT count(*) FROM aidb.get_conversation($1)", k.Conversation))
	require.Empty(t, servertest.Rows(t, server.Admin(t), "SELECT * FROM aidb.verify_decisions()"))
}

func TestTask_IsGoneWithItsTransaction(t *testing.T) {
	ann := server.Conn(t, "ann")
	server.Agent(t, ann, "undone", nil, fakemodel.Say("never"))
	servertest.Exec(t, ann, "BEGIN")
	k := submit(t, ann, "undone", "go")
	_, err := ann.Exec(t.Context(), "SELECT aidb.wait_task($1::uuid)", k.ID)
	require.Equal(t, "55000", servertest.State(err), "%v", err)
	servertest.Exec(t, ann, "ROLLBACK")
	require.Empty(t, servertest.Rows(t, ann, "SELECT * FROM aidb.agent_task($1::uuid)", k.ID))
	require.Empty(t, server.Model.Requests("undone"))
}

// A tool sees the submitter, whoever that was in the session: SET ROLE, principal and search_path included.
func TestTask_RunsAsItsSubmitter(t *testing.T) {
	admin := server.Admin(t)
	servertest.Exec(t, admin, `CREATE ROLE crew IN ROLE aidb_users; GRANT crew TO ann; CREATE SCHEMA hold; GRANT USAGE ON SCHEMA hold TO crew;
		CREATE TABLE hold.cargo AS SELECT 'tea'::text AS what; GRANT SELECT ON hold.cargo TO crew;
		CREATE TABLE public.private_to_admin (n int)`)
	ann := server.Conn(t, "ann")
	servertest.Exec(t, ann, "SET ROLE crew; SET aidb.principal = 'mia'; SET search_path = hold")
	server.Agent(t, ann, "sailor", []string{"run_sql_query"},
		fakemodel.Call("run_sql_query", json.RawMessage(`{"query": "SELECT what, current_user AS u, session_user AS s, aidb.principal() AS p, current_setting('is_superuser') AS super FROM cargo"}`)),
		fakemodel.Call("run_sql_query", json.RawMessage(`{"query": "SELECT * FROM public.private_to_admin"}`)),
		fakemodel.Call("run_sql_query", json.RawMessage(`{"query": "SET SESSION AUTHORIZATION DEFAULT"}`)),
		fakemodel.Say("done"))
	k := submit(t, ann, "sailor", "look")
	require.Equal(t, "SUCCESS", wait(t, ann, k).Status)
	log := servertest.Log(t, ann, k.Conversation)
	require.Contains(t, log[4].Response, `{\"what\": \"tea\", \"u\": \"crew\", \"s\": \"ann\", \"p\": \"mia\", \"super\": \"off\"}`)
	require.Contains(t, log[8].Response, "permission denied for table private_to_admin")
	require.Contains(t, log[12].Response, "Tool error")
	// nobody else sees it: not the same role without the principal, not another user
	servertest.Exec(t, ann, "RESET aidb.principal")
	require.Empty(t, servertest.Rows(t, ann, "SELECT * FROM aidb.agent_task($1::uuid)", k.ID))
	bob := server.Conn(t, "bob")
	require.Empty(t, servertest.Rows(t, bob, "SELECT * FROM aidb.wait_task($1::uuid)", k.ID))
	require.Empty(t, servertest.Rows(t, bob, "SELECT * FROM aidb.running_tasks"))
	_, err := bob.Exec(t.Context(), "SELECT aidb.cancel_task($1::uuid)", k.ID)
	require.Equal(t, "42704", servertest.State(err), "%v", err)
}

// Deferred constraints run at the end of the tool call, as the role: their failure is the tool's.
func TestTask_DeferredConstraintsAreTheTools(t *testing.T) {
	admin := server.Admin(t)
	servertest.Exec(t, admin, `CREATE ROLE clerk; GRANT clerk TO ann; CREATE TABLE orders (id int PRIMARY KEY);
		CREATE TABLE lines (order_id int REFERENCES orders DEFERRABLE INITIALLY DEFERRED);
		CREATE TABLE seen (who text, session text); GRANT ALL ON orders, lines, seen TO clerk;
		CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO seen VALUES (current_user, session_user); RETURN NULL; END';
		CREATE CONSTRAINT TRIGGER noting AFTER INSERT ON orders DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note();
		GRANT EXECUTE ON FUNCTION aidb.execute_sql(text) TO clerk; SELECT aidb.create_purpose('clerking', 'clerk')`)
	ann := server.Conn(t, "ann")
	server.Model.Script("clerk",
		fakemodel.Call("execute_sql", json.RawMessage(`{"statement": "INSERT INTO lines VALUES (1)"}`)),
		fakemodel.Call("execute_sql", json.RawMessage(`{"statement": "WITH l AS (INSERT INTO lines VALUES (2)) INSERT INTO orders VALUES (2)"}`)),
		fakemodel.Say("done"))
	server.RegisterModel(t, ann, "clerk", server.Model.URL())
	servertest.Exec(t, ann, `SELECT * FROM aidb.create_agent('clerk', 'x', 'clerk', tools => '{execute_sql}', purpose => 'clerking')`)
	k := submit(t, ann, "clerk", "book it")
	require.Equal(t, "SUCCESS", wait(t, ann, k).Status)
	log := servertest.Log(t, ann, k.Conversation)
	require.Contains(t, log[4].Response, "violates foreign key constraint")
	require.NotContains(t, log[8].Response, "error")
	require.Equal(t, "2", servertest.Value(t, admin, "SELECT string_agg(order_id::text, ',') FROM lines"))
	require.Equal(t, "(clerk,ann)", servertest.Value(t, admin, "SELECT string_agg(seen::text, ',') FROM seen"))
}

func TestTask_IsRefusedWithAReason(t *testing.T) {
	ann := server.Conn(t, "ann")
	server.Agent(t, ann, "refusing", nil, fakemodel.Say("x"))
	for _, c := range []struct{ args, want string }{
		{`'nobody', 'hi'`, `agent 'nobody' not found`},
		{`'refusing', '  '`, `prompt must not be empty`},
		{`'refusing', 'x', output_type => '5'`, `output_type must be a JSON object`},
		{`'refusing', 'hi', 'nonsense'`, `invalid conversation id 'nonsense': not a uuid`},
	} {
		require.Equal(t, c.want, servertest.Value(t, ann, "SELECT error FROM aidb.agent_submit("+c.args+")"))
	}
	k := submit(t, ann, "refusing", "hi")
	wait(t, ann, k)
	require.Equal(t, "conversation '"+k.Conversation+"' belongs to another caller",
		servertest.Value(t, server.Conn(t, "bob"), "SELECT error FROM aidb.agent_submit('refusing', 'hi', '"+k.Conversation+"')"))
}
