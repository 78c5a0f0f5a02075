package integration

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

const orderType = `aidb.output_type(aidb.output_field('total', 'numeric', 'in euros'), aidb.output_field('count', 'INTEGER'), aidb.output_field('paid', 'BOOLEAN'))`

func TestStructured_MessageIsJSON(t *testing.T) {
	ann := server.Conn(t, "ann")
	server.Agent(t, ann, "st_order", sql, fakemodel.Query("SELECT 41.5 AS total"), fakemodel.Say("<think>{}</think>\n```json\n{\"total\": 41.5, \"count\": 2, \"paid\": true}\n```"))
	servertest.Exec(t, ann, "SELECT * FROM aidb.update_agent('st_order', output_type => "+orderType+")")
	o := servertest.MustAsk(t, ann, "st_order", "order 7?")
	require.Equal(t, "41.5 2 true", servertest.Value(t, ann, "SELECT concat_ws(' ', r.total, r.count, r.paid::text) FROM jsonb_to_record($1::jsonb) r (total numeric, count int, paid bool)", o.Message))
	steps := servertest.Log(t, ann, o.Conversation)
	require.JSONEq(t, `"{\"total\": 41.5, \"count\": 2, \"paid\": true}"`, key(t, steps[len(steps)-1].Response, "contents"))

	// What the model was told, in words only.
	requests := server.Model.Requests("st_order")
	require.Len(t, requests, 2)
	require.Contains(t, requests[0].Messages[0].Content, "You are a test.\n\n")
	require.Contains(t, requests[0].Messages[0].Content, `"total":{"description":"in euros","type":"number"}`)
	require.NotContains(t, string(requests[0].Body), "response_format")
}

// A server that is known to take the schema gets it; one that then refuses it is asked without, and not again.
func TestStructured_SchemaIsHandedOnWhereItIsTaken(t *testing.T) {
	ann := server.Conn(t, "ann")
	servertest.Exec(t, ann, `SELECT aidb.create_model('st_native', 'openai_completions', $1::jsonb, credentials => $2::jsonb, validate => false)`,
		map[string]any{"model": "st_native", "url": server.Model.URL(), "structured_output": true}, map[string]any{"api_key": servertest.Secret})
	servertest.Exec(t, ann, "SELECT * FROM aidb.create_agent('st_native', 'You are a test.', 'st_native', output_type => "+orderType+")")
	answer := `{"total": 1, "count": 2, "paid": false}`
	server.Model.Script("st_native", fakemodel.Say(answer), fakemodel.Fail(400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."), fakemodel.Say(answer), fakemodel.Say(answer), fakemodel.Say("free text"))
	require.JSONEq(t, answer, servertest.MustAsk(t, ann, "st_native", "go").Message)
	require.JSONEq(t, answer, servertest.MustAsk(t, ann, "st_native", "go").Message)
	require.JSONEq(t, answer, servertest.MustAsk(t, ann, "st_native", "go").Message)
	require.Equal(t, "free", servertest.MustAsk(t, ann, "st_native", "go", "output_type => 'null'").Message[:4])
	var given []string
	for _, r := range server.Model.Requests("st_native") {
		var body struct {
			Format struct {
				Type   string `json:"type"`
				Schema struct {
					Schema struct {
						Required []string `json:"required"`
					} `json:"schema"`
				} `json:"json_schema"`
			} `json:"response_format"`
		}
		require.NoError(t, json.Unmarshal(r.Body, &body))
		given = append(given, strings.TrimSpace(body.Format.Type+" "+strings.Join(body.Format.Schema.Schema.Required, ",")))
	}
	require.Equal(t, []string{"json_schema total,count,paid", "json_schema total,count,paid", "", "", ""}, given)
}

func TestStructured_RepairsAndGivesUp(t *testing.T) {
	ann := server.Conn(t, "ann")
	server.Agent(t, ann, "st_repair", nil, fakemodel.Say(`{"total": "many", "extra": 1}`), fakemodel.Say(`{"total": 1, "count": 2, "paid": false}`))
	o := servertest.MustAsk(t, ann, "st_repair", "go", "output_type => "+orderType)
	require.JSONEq(t, `{"total": 1, "count": 2, "paid": false}`, o.Message)
	told := server.Model.Requests("st_repair")[1].Messages[0].Content
	for _, problem := range []string{"/: 'count' is missing", "/: 'paid' is missing", "/total: must be a number, not a string", "/: 'extra' is not a member of it", `{"total": "many", "extra": 1}`} {
		require.Contains(t, told, problem)
	}
	require.Equal(t, "1", servertest.Value(t, ann, `SELECT count(*) FROM aidb_internal.action_log
		WHERE conversation_id = $1::uuid AND action_type = 'model_response' AND status = 'ERROR' AND response_payload ? 'rejected' AND error LIKE '%missing%'`, o.Conversation))

	// What was rejected is no history.
	server.Model.Script("st_repair", fakemodel.Say("free text again"))
	servertest.MustAsk(t, ann, "st_repair", "and now?", "conversation_id => '"+o.Conversation+"'")
	requests := server.Model.Requests("st_repair")
	var said []string
	for _, m := range requests[len(requests)-1].Messages[1:] {
		said = append(said, m.Content)
	}
	require.Equal(t, []string{"go", `{"total": 1, "count": 2, "paid": false}`, "and now?"}, said)

	server.Agent(t, ann, "st_never", nil, fakemodel.Say(`{"total": true}`))
	o, err := servertest.Ask(t.Context(), ann, "st_never", "go", "output_type => aidb.output_type(aidb.output_field('total', 'FLOAT'))")
	require.NoError(t, err)
	require.Equal(t, "answer does not match the output type: /total: must be a number, not a boolean", o.Error)
	require.Len(t, server.Model.Requests("st_never"), 3)
	require.Equal(t, "ERROR", servertest.Value(t, ann, "SELECT status FROM aidb.agent_tasks WHERE error = $1", o.Error))
}

func TestStructured_Types(t *testing.T) {
	ann := server.Conn(t, "ann")
	server.Agent(t, ann, "st_types", nil)
	const nested = `'{"type":"object","properties":{"size":{"type":"object","properties":{"w":{"type":"integer"}},"required":["w"]},"note":{"type":"string"},
		"tags":{"type":"array","items":{"$ref":"#/$defs/tag"}}},"required":["size"],"$defs":{"tag":{"enum":["a","b"]}}}'::jsonb`
	field := func(name, kind string) string {
		return "aidb.output_type(aidb.output_field('" + name + "', '" + kind + "'))"
	}
	for _, c := range []struct{ typ, answer, problem string }{
		{field("x", "TEXT"), `{"x": "y"}`, ""},
		{field("x", "TEXT"), `{"x": 1}`, "/x: must be a string, not a number"},
		{field("x", "integer"), `{"x": 1.5}`, "/x: must be an integer, not a number"},
		{field("x", "array"), `{"x": [1, "a"]}`, ""},
		{field("x", "array"), `{"x": "a"}`, "/x: must be an array, not a string"},
		{field("x", "int[]"), `{"x": [1, "a"]}`, "/x/1: must be an integer, not a string"},
		{field("x", "object"), `{"x": {"y": 1}}`, ""},
		{field("x", "date"), `{"x": "2026-01-31"}`, ""},
		{field("x", "date"), `{"x": "tomorrow"}`, "/x: must match the pattern"},
		{field("x", "timestamptz"), `{"x": "2026-01-31T10:00:00Z"}`, ""},
		{field("x", "jsonb"), `{"x": null}`, ""},
		{field("x", "some words of a person"), `{"x": [true]}`, ""},
		{"aidb.output_type(aidb.output_field('x', 'int') || '{\"required\": false}')", `{}`, ""},
		{"aidb.output_type(aidb.output_field('x', 'int') || '{\"required\": false}')", `{"x": "a"}`, "/x: must be an integer or null, not a string"},
		{"aidb.output_type(aidb.output_field('x', 'text') || '{\"enum\": [\"a\", \"b\"]}')", `{"x": "c"}`, `/x: must be one of ["a","b"]`},
		{nested, `{"size": {"w": 1}, "tags": ["a", "b"]}`, ""},
		{nested, `{"size": {}, "note": 1, "tags": ["c"]}`, `/note: must be a string, not a number; /size: 'w' is missing; /tags/0: must be one of ["a","b"]`},
	} {
		server.Model.Script("st_types", fakemodel.Say(c.answer))
		o, err := servertest.Ask(t.Context(), ann, "st_types", "go", "output_type => "+c.typ)
		require.NoError(t, err)
		if c.problem == "" {
			require.Empty(t, o.Error, c.typ)
			require.Equal(t, c.answer, o.Message)
			continue
		}
		require.True(t, strings.HasPrefix(o.Error, "answer does not match the output type: "+c.problem), "%s: %s", c.typ, o.Error)
	}
}

func TestStructured_ATypeThatCannotBeUsed(t *testing.T) {
	ann := server.Conn(t, "ann")
	server.Agent(t, ann, "st_unusable", nil, fakemodel.Say("never asked"))
	for typ, want := range map[string]string{
		`'[]'`:                    "output_type must be a JSON object",
		`'{"fields": []}'`:        "output_type cannot be used: ",
		`'{"type": "objekt"}'`:    "output_type cannot be used: JSON Schema is not valid: 'objekt' at / is not a type of JSON",
		`'{"$ref": "#"}'`:         "output_type cannot be used: JSON Schema is not valid: it refers to itself without end at /",
		`'{"pattern": "(?=a)"}'`:  "output_type cannot be used: JSON Schema is not valid: ",
		`'{"$ref": "file:///x"}'`: "leads to no schema inside it",
	} {
		o, err := servertest.Ask(t.Context(), ann, "st_unusable", "go", "output_type => "+typ)
		require.NoError(t, err)
		require.Contains(t, o.Error, want)
	}
	require.Empty(t, server.Model.Requests("st_unusable"))
	// The session lives.
	servertest.Exec(t, ann, "SELECT 1")
}

// The dummy model is held to the type as well, and a delegate has its own.
func TestStructured_Delegate(t *testing.T) {
	ann := server.Conn(t, "ann")
	servertest.Exec(t, ann, `SELECT aidb.create_model('st_dummy', 'dummy', '{"scope": "call", "responses": [{"response": "one"}, {"response": "{\"n\": 1}"}]}', validate => false)`)
	servertest.Exec(t, ann, `SELECT * FROM aidb.create_agent('st_inner', 'x', 'st_dummy', output_type => aidb.output_type(aidb.output_field('n', 'int')))`)
	delegates(t, ann, "st_outer", "st_inner", `{"prompt": "x"}`)
	servertest.MustAsk(t, ann, "st_outer", "go")
	require.Equal(t, `{"n": 1}`, handoffOf(t, results(t, "st_outer")[0]).Answer)
}
