package integration

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// spoken is what a conversation's prompts and answers say.
func spoken(t *testing.T, conn *pgx.Conn, id string) string {
	return servertest.Value(t, conn, "SELECT string_agg(contents, ' | ') FROM aidb.get_conversation($1)", id)
}

func messageID(t *testing.T, conn *pgx.Conn, conversation, contents string) string {
	return servertest.Value(t, conn, "SELECT message_id FROM aidb.get_conversation($1) WHERE contents = $2", conversation, contents)
}

func TestFork_SharesTheHistoryUpToAMessage(t *testing.T) {
	ann := server.Conn(t, "ann")
	server.Agent(t, ann, "fo", sql, fakemodel.Query("SELECT 1 AS one"), fakemodel.Say("a1"), fakemodel.Say("a2"), fakemodel.Say("b2"), fakemodel.Say("c3"))
	root := servertest.MustAsk(t, ann, "fo", "q1").Conversation
	servertest.MustAsk(t, ann, "fo", "q2", "conversation_id => '"+root+"'")

	a1 := messageID(t, ann, root, "a1")
	fork := servertest.Value(t, ann, "SELECT aidb.fork_conversation($1)", a1)
	require.Equal(t, "q1 | a1", spoken(t, ann, fork))
	require.Equal(t, root+" "+a1+" 2 "+a1+" f f", servertest.Value(t, ann, `SELECT concat_ws(' ', parent_conversation_id, forked_from_message_id,
		message_count, last_message_id, left(imported::text, 1), left((status IS NOT NULL)::text, 1)) FROM aidb.conversations WHERE conversation_id = $1::uuid`, fork))

	servertest.MustAsk(t, ann, "fo", "other q2", "conversation_id => '"+fork+"'")
	require.Equal(t, "q1 | a1 | other q2 | b2", spoken(t, ann, fork))
	require.Equal(t, "q1 | a1 | q2 | a2", spoken(t, ann, root), "the other one does not see it")
	requests := server.Model.Requests("fo")
	require.Equal(t, []string{"You are a test.", "q1", "", `[{"one": 1}]`, "a1", "other q2"}, contents(requests[len(requests)-1]))

	// A fork of a fork, and one at a prompt, whose answer it does not have.
	second := servertest.Value(t, ann, "SELECT aidb.fork_conversation($1)", messageID(t, ann, fork, "b2"))
	servertest.MustAsk(t, ann, "fo", "q3", "conversation_id => '"+second+"'")
	require.Equal(t, "q1 | a1 | other q2 | b2 | q3 | c3", spoken(t, ann, second))
	require.Equal(t, "6 SUCCESS", servertest.Value(t, ann, "SELECT message_count || ' ' || status FROM aidb.conversations WHERE conversation_id = $1::uuid", second))
	prompt := servertest.Value(t, ann, "SELECT aidb.fork_conversation($1)", messageID(t, ann, root, "q2"))
	require.Equal(t, "q1 | a1 | q2", spoken(t, ann, prompt))
}

func TestFork_OnlyOfOnesOwn(t *testing.T) {
	ann, ben := server.Conn(t, "ann"), server.Conn(t, "bob")
	server.Agent(t, ann, "fo_own", nil, fakemodel.Say("mine"))
	root := servertest.MustAsk(t, ann, "fo_own", "q").Conversation
	mine := messageID(t, ann, root, "mine")
	fork := servertest.Value(t, ann, "SELECT aidb.fork_conversation($1)", mine)
	for call, want := range map[string]string{
		"aidb.fork_conversation('" + mine + "')":   "message '" + mine + "' not found",
		"aidb.fork_conversation('')":               "message id must not be empty",
		"aidb.fork_conversation('x')":              "invalid message id 'x': not a uuid",
		"aidb.export_conversation('" + root + "')": "conversation '" + root + "' not found",
		"aidb.export_conversation('" + fork + "')": "conversation '" + fork + "' not found",
		"aidb.export_conversation(NULL)":           "conversation id must not be empty",
	} {
		_, err := ben.Exec(t.Context(), "SELECT "+call)
		require.ErrorContains(t, err, want, call)
	}
	o, err := servertest.Ask(t.Context(), ben, "fo_own", "q", "conversation_id => '"+fork+"'")
	require.NoError(t, err)
	require.Equal(t, "conversation '"+fork+"' belongs to another caller", o.Error)
	require.Equal(t, "", spoken(t, ben, fork))
	require.Equal(t, "0", servertest.Value(t, ben, "SELECT count(*) FROM aidb.conversations WHERE conversation_id IN ($1::uuid, $2::uuid)", root, fork))

	// People behind one role are as strange to each other.
	servertest.Exec(t, ann, "SET aidb.principal = 'mia'")
	_, err = ann.Exec(t.Context(), "SELECT aidb.fork_conversation($1)", mine)
	require.ErrorContains(t, err, "not found")
}

func TestImport_GivesTheConversationAgain(t *testing.T) {
	ann, ben := server.Conn(t, "ann"), server.Conn(t, "bob")
	server.Agent(t, ann, "fo_im", sql, fakemodel.Query("SELECT 7 AS n"), fakemodel.Say("seven"), fakemodel.Say("more"), fakemodel.Say("ben's"))
	root := servertest.MustAsk(t, ann, "fo_im", "how many?").Conversation
	fork := servertest.Value(t, ann, "SELECT aidb.fork_conversation($1)", messageID(t, ann, root, "seven"))
	servertest.MustAsk(t, ann, "fo_im", "go on", "conversation_id => '"+fork+"'")
	document := servertest.Value(t, ann, "SELECT aidb.export_conversation($1)", fork)

	copied := servertest.Value(t, ben, "SELECT aidb.import_conversation($1::jsonb)", document)
	require.Equal(t, "how many? | seven | go on | more", spoken(t, ben, copied))
	require.Equal(t, "true true", servertest.Value(t, ben, "SELECT concat_ws(' ', imported::text, (status IS NULL)::text) FROM aidb.conversations WHERE conversation_id = $1::uuid", copied))
	require.Equal(t, "0", servertest.Value(t, ben, `SELECT count(*) FROM aidb_internal.action_log
		WHERE conversation_id = $1::uuid AND (role IS NOT NULL OR id::text IN (SELECT s ->> 'id' FROM jsonb_array_elements($2::jsonb -> 'steps') s))`, copied, document))
	servertest.MustAsk(t, ben, "fo_im", "thanks", "conversation_id => '"+copied+"'")
	requests := server.Model.Requests("fo_im")
	require.Equal(t, []string{"You are a test.", "how many?", "", `[{"n": 7}]`, "seven", "go on", "more", "thanks"}, contents(requests[len(requests)-1]))
	require.Equal(t, "how many? | seven | go on | more", spoken(t, ann, fork))

	// What was exported again is the same but for its ids.
	strip := `SELECT string_agg(concat_ws(' ', s ->> 'type', s #>> '{request,contents}', s ->> 'response', s ->> 'created_at'), E'\n') FROM jsonb_array_elements($1::jsonb -> 'steps') WITH ORDINALITY e (s, n) WHERE n <= 16`
	again := servertest.Value(t, ben, "SELECT aidb.export_conversation($1)", servertest.Value(t, ben, "SELECT aidb.import_conversation($1::jsonb)", document))
	require.Equal(t, servertest.Value(t, ben, strip, document), servertest.Value(t, ben, strip, again))
}

func TestImport_RefusesWhatIsNoConversation(t *testing.T) {
	ann := server.Conn(t, "ann")
	server.Agent(t, ann, "fo_bad", nil, fakemodel.Say("x"))
	root := servertest.MustAsk(t, ann, "fo_bad", "q").Conversation
	document := servertest.Value(t, ann, "SELECT aidb.export_conversation($1)", root)
	edited := func(edit func(d map[string]any, steps []any)) string {
		var d map[string]any
		require.NoError(t, json.Unmarshal([]byte(document), &d))
		edit(d, d["steps"].([]any))
		text, err := json.Marshal(d)
		require.NoError(t, err)
		return string(text)
	}
	step := func(i int, key string, value any) func(map[string]any, []any) {
		return func(_ map[string]any, steps []any) { steps[i].(map[string]any)[key] = value }
	}
	for name, c := range map[string]struct{ document, want string }{
		"null":       {"null", "the document is not an exported conversation"},
		"array":      {"[]", "the document is not an exported conversation"},
		"another":    {`{"format": "x"}`, "the document is not an exported conversation"},
		"version":    {edited(func(d map[string]any, _ []any) { d["version"] = 2 }), "an exported conversation of version '2' cannot be read"},
		"no steps":   {edited(func(d map[string]any, _ []any) { d["steps"] = []any{} }), "an exported conversation must have 1 to 10000 steps"},
		"many steps": {edited(func(d map[string]any, _ []any) { d["steps"] = make([]int, 10001) }), "an exported conversation must have 1 to 10000 steps"},
		"agent":      {edited(func(d map[string]any, _ []any) { d["agent"] = "nobody" }), "agent 'nobody' not found"},
		"number":     {edited(func(_ map[string]any, s []any) { s[1] = 7 }), "step 2 of the exported conversation is not a JSON object"},
		"type":       {edited(step(1, "type", "drop table")), "step 2 of the exported conversation has no type"},
		"status":     {edited(step(0, "status", "FINE")), "step 1 of the exported conversation has an unknown status"},
		"member":     {edited(step(0, "role", "postgres")), "step 1 of the exported conversation has an unexpected member 'role'"},
		"payload":    {edited(step(0, "request", "text")), "step 1 of the exported conversation has an unexpected member 'request'"},
		"id":         {edited(step(0, "id", "1")), "step 1 of the exported conversation has no id or no task"},
		"time":       {edited(step(0, "created_at", "soon")), "step 1 of the exported conversation has no time, or one to come"},
		"infinity":   {edited(step(0, "created_at", "-infinity")), "step 1 of the exported conversation ends before it begins"},
		"future":     {edited(step(3, "created_at", "2999-01-01")), "step 4 of the exported conversation ends before it begins"},
		"order":      {edited(step(1, "created_at", "1999-01-01")), "step 2 of the exported conversation is not later than the one before"},
		"ids twice":  {edited(func(_ map[string]any, s []any) { s[len(s)-1].(map[string]any)["id"] = s[0].(map[string]any)["id"] }), "the exported conversation has the same id twice"},
	} {
		_, err := ann.Exec(t.Context(), "SELECT aidb.import_conversation($1::jsonb)", c.document)
		require.ErrorContains(t, err, c.want, name)
	}
	// Odd payloads are no harm: what cannot be read is not part of the history.
	odd := edited(func(_ map[string]any, s []any) {
		s[0].(map[string]any)["request"] = map[string]any{"contents": map[string]any{"x": 1}, "user": 5}
		s[2].(map[string]any)["response"] = map[string]any{"contents": []int{1}, "tool_calls": "none"}
	})
	id := servertest.Value(t, ann, "SELECT aidb.import_conversation($1::jsonb, 'fo_bad')", odd)
	servertest.MustAsk(t, ann, "fo_bad", "still there?", "conversation_id => '"+id+"'")
}

func TestReplay_AnswersFromARecording(t *testing.T) {
	ann, ben := server.Conn(t, "ann"), server.Conn(t, "bob")
	servertest.Exec(t, server.Admin(t), "CREATE TABLE fo_stock AS SELECT 7 AS n; GRANT SELECT, UPDATE ON fo_stock TO ann")
	server.Agent(t, ann, "fo_re", sql, fakemodel.Query("SELECT n FROM fo_stock"), fakemodel.Say("seven"), fakemodel.Say("bye"))
	root := servertest.MustAsk(t, ann, "fo_re", "how many?").Conversation
	servertest.MustAsk(t, ann, "fo_re", "thanks", "conversation_id => '"+root+"'")
	servertest.Exec(t, ann, "SELECT aidb.create_model('fo_recorded', 'replay', jsonb_build_object('conversation_id', $1::text))", root)
	servertest.Exec(t, ann, "SELECT * FROM aidb.create_agent('fo_again', 'Other instructions.', 'fo_recorded', tools => '{run_sql_query}')")

	o := servertest.MustAsk(t, ann, "fo_again", "how many?")
	require.Equal(t, "seven", o.Message)
	require.Equal(t, "bye", servertest.MustAsk(t, ann, "fo_again", "thanks", "conversation_id => '"+o.Conversation+"'").Message)
	require.Len(t, server.Model.Requests("fo_re"), 3, "no model was asked")

	servertest.Exec(t, ann, "UPDATE fo_stock SET n = 8")
	o, err := servertest.Ask(t.Context(), ann, "fo_again", "how many?")
	require.NoError(t, err)
	require.Equal(t, `the request differs from the recording of conversation '`+root+`': part 3, a result of 'run_sql_query', was "[{"n": 7}]" and now is "[{"n": 8}]"`, o.Error)

	// A recording is its owner's, whoever uses the model.
	o, err = servertest.Ask(t.Context(), ben, "fo_again", "how many?")
	require.NoError(t, err)
	require.Equal(t, "conversation '"+root+"', which the model replays, belongs to another caller", o.Error)
	for bad, want := range map[string]string{
		`{}`: `config must have a "conversation_id"`, `{"conversation_id": "x"}`: `config must have a "conversation_id"`,
		`{"conversation_id": "018f0000-0000-7000-8000-000000000001"}`: "Failed to create model: conversation '018f0000-0000-7000-8000-000000000001', which the model replays, not found",
	} {
		_, err := ann.Exec(t.Context(), "SELECT aidb.create_model('fo_none', 'replay', $1::jsonb)", bad)
		require.ErrorContains(t, err, want)
	}
	require.False(t, strings.Contains(servertest.Value(t, ben, "SELECT options::text FROM aidb.models WHERE name = 'fo_recorded'"), "seven"))
}
