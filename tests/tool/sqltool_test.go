package tool

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
	"aidb/tests/servertest"
)

// Every argument is a value of its declared type, whatever is in it.
func TestSQLTool_BindsEachTypeByItsOwnRules(t *testing.T) {
	require.NoError(t, fixture())
	ann := server.Conn(t, "ann", "timezone=UTC")
	cases := []struct{ kind, argument, expression, want string }{
		{"integer", `41`, `${x} + 1`, `42`},
		{"integer", `"41"`, `${x} + 1`, `42`},
		{"int", `12.0`, `${x}`, `12`},
		{"bigint", `9007199254740993`, `${x}::text`, `"9007199254740993"`},
		{"NUMERIC", `1.50`, `${x}::text`, `"1.50"`},
		{"numeric(6,1)", `3.14159`, `${x}::text`, `"3.1"`},
		{"double precision", `0.1`, `${x}`, `0.1`},
		{"text", `"O'Brien \"x\" \\ $1 ${y} %s"`, `${x}`, `"O'Brien \"x\" \\ $1 ${y} %s"`},
		{"text", `"'); DROP TABLE w.t; --"`, `${x}`, `"'); DROP TABLE w.t; --"`},
		{"text", `""`, `${x} IS NULL`, `false`},
		{"text", `null`, `${x} IS NULL`, `true`},
		{"varchar(3)", `"abc"`, `${x}`, `"abc"`},
		{"boolean", `true`, `NOT ${x}`, `false`},
		{"boolean", `"false"`, `${x}`, `false`},
		{"date", `"2024-02-29"`, `${x} + 1`, `"2024-03-01"`},
		{"timestamptz", `"2024-02-29T12:00:00+02:00"`, `${x}`, `"2024-02-29T10:00:00+00:00"`},
		{"interval", `"1 day 2 hours"`, `extract(epoch FROM ${x})::integer`, `93600`},
		{"uuid", `"A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"`, `${x}`, `"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"`},
		{"bytea", `"aGVsbG8="`, `convert_from(${x}, 'UTF8')`, `"hello"`},
		{"bytea", `"aGVsbG8"`, `length(${x})`, `5`},
		{"json", `{"b": 1, "a": [null]}`, `${x} -> 'a'`, `[null]`},
		{"jsonb", `"a string"`, `jsonb_typeof(${x})`, `"string"`},
		{"jsonb", `null`, `${x} IS NULL`, `true`},
		{"jsonb", `[1, {"a": "\u00e9"}]`, `${x} #>> '{1,a}'`, `"é"`},
		{"integer[]", `[1, null, 3]`, `array_to_string(${x}, ',', '-')`, `"1,-,3"`},
		{"integer[]", `[[1, 2], [3, 4]]`, `${x}[2][1]`, `3`},
		{"integer[]", `[]`, `cardinality(${x})`, `0`},
		{"text[]", `["a,b", "c\"d", "{e}", "NULL", "", null, "f\\g"]`, `to_json(${x})`, `["a,b","c\"d","{e}","NULL","",null,"f\\g"]`},
		{"jsonb[]", `[{"a": 1}, [2], null]`, `${x}[1] ->> 'a'`, `"1"`},
		{"bytea[]", `["aGk=", "aG8="]`, `convert_from(${x}[2], 'UTF8')`, `"ho"`},
		{"w.mood", `"ok"`, `${x}`, `"ok"`},
		{"w.mood[]", `["sad", "happy"]`, `${x}[2]`, `"happy"`},
		{"w.positive", `3`, `${x}`, `3`},
		{"w.positive[]", `[3, 4]`, `${x}[2]`, `4`},
		{"int4range", `"[1,5)"`, `upper(${x})`, `5`},
		{"inet", `"10.0.0.1"`, `${x} << '10.0.0.0/8'`, `true`},
	}
	for i, c := range cases {
		t.Run(c.kind+" "+c.argument, func(t *testing.T) {
			name := fmt.Sprintf("typed_%d", i)
			create(t, ann, name, "SELECT "+c.expression+" AS a", fmt.Sprintf("aidb.tool_param('x', '%s', 'x')", c.kind))
			var rows []map[string]json.RawMessage
			require.NoError(t, json.Unmarshal([]byte(run(t, ann, name, `{"x": `+c.argument+`}`)), &rows))
			require.Len(t, rows, 1)
			require.JSONEq(t, c.want, string(rows[0]["a"]))
		})
	}
}

// What is wrong with arguments is said before anything runs, all of it at once.
func TestSQLTool_RefusesWrongArguments(t *testing.T) {
	require.NoError(t, fixture())
	ann := server.Conn(t, "ann")
	create(t, ann, "choosy", "SELECT w.pl(${n}) AS a, ${w}::text AS b, ${tags} AS c, ${on} AS d, ${mood} AS e",
		`aidb.tool_param('n', 'integer', 'x'), aidb.tool_param('w', 'date', 'x'), aidb.tool_param('tags', 'integer[]', 'x'),
		aidb.tool_param('on', 'boolean', 'x'), aidb.param('mood', 'text', 'x', ARRAY['sad', 'ok'])`)
	cases := []struct{ arguments, state, want string }{
		{`{}`, "22023", "missing argument 'n'; missing argument 'w'; missing argument 'tags'; missing argument 'on'; missing argument 'mood' (arguments: n, w, tags, on, mood)"},
		{`{"n": 1, "w": "2024-01-01", "tags": [], "on": true, "mood": "ok", "xx": 1, "yyy": 2}`, "22023", "unknown argument 'xx'; unknown argument 'yyy' (arguments: n, w, tags, on, mood)"},
		{`{"n": "x", "w": 3, "tags": [1, "y"], "on": "yes", "mood": "angry"}`, "22023", `argument 'n' must be an integer, got the string "x"; argument 'w' must be a string, got number; argument 'on' must be true or false, got string; argument 'mood' must be one of 'sad', 'ok'; argument 'tags' at position 2 must be an integer, got the string "y" (`},
		{`{"n": 1.5, "w": "2024-01-01", "tags": 1, "on": true, "mood": "ok"}`, "22023", "argument 'n' must be an integer, got 1.5; argument 'tags' must be an array, got number"},
		{`{"n": 1, "w": "yesterday, I think", "tags": [], "on": true, "mood": "ok"}`, "22007", "invalid input syntax for type date"},
		{`{"n": 3000000000, "w": "2024-01-01", "tags": [], "on": true, "mood": "ok"}`, "22003", `value "3000000000" is out of range for type integer`},
		{`{"n": 1, "w": "2024-01-01", "tags": [[[[[[[1]]]]]]], "on": true, "mood": "ok"}`, "22023", "has more than 6 dimensions"},
		{`[1]`, "22P02", "arguments must be a JSON object"},
		{`"x"`, "22P02", "arguments must be a JSON object"},
	}
	for _, c := range cases {
		require.Contains(t, refused(t, ann, c.state, "SELECT aidb.run_tool('choosy', $1::jsonb)", c.arguments), c.want, c.arguments)
	}
	require.Equal(t, `[{"a": 2, "b": null, "c": null, "d": null, "e": null}]`, run(t, ann, "choosy", `{"n": 1, "w": null, "tags": null, "on": null, "mood": null}`))
}

// A length or precision is part of the type.
// What only PostgreSQL can say of a value stands in the same message as what the declaration says, for every argument.
func TestSQLTool_SaysAllThatIsWrongAtOnce(t *testing.T) {
	require.NoError(t, fixture())
	ann := server.Conn(t, "ann")
	var params, columns []string
	for _, p := range [][2]string{{"day", "date"}, {"who", "uuid"}, {"mood", "w.mood"}, {"n", "smallint"}, {"p", "w.positive"}, {"b", "bytea"}, {"o", "regclass"}} {
		params = append(params, fmt.Sprintf("aidb.tool_param('%s', '%s', 'x')", p[0], p[1]))
		columns = append(columns, fmt.Sprintf("${%s} AS %s", p[0], p[0]))
	}
	create(t, ann, "picky", "SELECT "+strings.Join(columns, ", "), strings.Join(params, ", "))
	const (
		day  = `argument 'day': date/time field value out of range: "2026-13-01"`
		who  = `argument 'who': invalid input syntax for type uuid: "x"`
		n    = `argument 'n': value "70000" is out of range for type smallint`
		p    = `argument 'p': value for domain w.positive violates check constraint "positive_check"`
		o    = `argument 'o': relation "w.nowhere" does not exist`
		all  = day + "; " + who + "; " + n + "; " + p + "; " + o
		list = " (arguments: day, who, mood, n, p, b, o)"
	)
	for arguments, want := range map[string]string{
		`{"day": "2026-13-01", "who": "x", "mood": "ok", "n": 70000, "p": -1, "b": "aGk=", "o": "w.nowhere"}`: all,
		`{"day": "2026-13-01", "who": "x", "mood": 3, "n": 70000, "p": -1, "b": "!", "o": "w.nowhere"}`:       "argument 'mood' must be a string, got number; argument 'b' must be base64; " + all + list,
		`{"day": "2026-13-01", "who": "x", "n": 70000, "p": -1, "b": "!", "z": 1, "o": "w.nowhere"}`:          "unknown argument 'z'; missing argument 'mood'; argument 'b' must be base64; " + all + list,
		`{"day": "2026-13-01", "who": null, "mood": "ok", "n": 7, "p": 1, "b": "aGk=", "o": "w.t"}`:           day,
		`{"day": "2026-12-01", "who": null, "mood": "ok", "n": 7, "p": 1, "b": "aGk=", "o": "w.nowhere"}`:     o,
	} {
		_, err := ann.Exec(t.Context(), "SELECT aidb.run_tool('picky', $1::jsonb)", arguments)
		var pgErr *pgconn.PgError
		require.ErrorAs(t, err, &pgErr, arguments)
		require.Equal(t, want, pgErr.Message, arguments)
		require.Equal(t, "22", pgErr.Code[:2], arguments)
	}
	// Above what a message holds the rest is not listed, and said not to be.
	params, columns = nil, nil
	arguments := map[string]string{}
	for i := range 22 {
		params = append(params, fmt.Sprintf("aidb.tool_param('d%d', 'date', 'x')", i))
		columns = append(columns, fmt.Sprintf("${d%d} AS d%d", i, i))
		arguments[fmt.Sprintf("d%d", i)] = strings.Repeat("x", 700)
	}
	create(t, ann, "many_days", "SELECT "+strings.Join(columns, ", "), strings.Join(params, ", "))
	text, err := json.Marshal(arguments)
	require.NoError(t, err)
	_, err = ann.Exec(t.Context(), "SELECT aidb.run_tool('many_days', $1::jsonb)", string(text))
	require.ErrorContains(t, err, "…; and more")
	require.Equal(t, 20, strings.Count(err.Error(), "invalid input syntax"))
}

func TestSQLTool_KeepsToTheDeclaredLength(t *testing.T) {
	ann := server.Conn(t, "ann")
	create(t, ann, "short", "SELECT ${x} AS a", `aidb.tool_param('x', 'varchar(3)', 'x')`)
	require.Contains(t, refused(t, ann, "22001", `SELECT aidb.run_tool('short', '{"x": "abcd"}')`), "value too long for type character varying(3)")
	create(t, ann, "short_list", "SELECT ${x} AS a", `aidb.tool_param('x', 'numeric(3,1)[]', 'x')`)
	require.Equal(t, `[{"a": [1.3, 20.0]}]`, run(t, ann, "short_list", `{"x": [1.25, 20]}`))
}

// A parameter that is not required takes its default; one that is null stays null.
func TestSQLTool_DefaultsStandForWhatIsNotGiven(t *testing.T) {
	ann := server.Conn(t, "ann")
	create(t, ann, "defaulted", "SELECT ${a} AS a, ${b} AS b, ${c} AS c",
		`aidb.tool_param('a', 'integer', 'x') || '{"default": 7}', aidb.tool_param('b', 'text[]', 'x') || '{"default": ["p", "q"]}',
		aidb.tool_param('c', 'text', 'x') || '{"required": false}'`)
	require.Equal(t, `[{"a": 7, "b": ["p", "q"], "c": null}]`, run(t, ann, "defaulted", `{}`))
	require.Equal(t, `[{"a": 1, "b": null, "c": "z"}]`, run(t, ann, "defaulted", `{"a": 1, "b": null, "c": "z"}`))
}

// The scanner of PostgreSQL tells what is a placeholder and what only looks like one.
func TestPlaceholders_AreFoundByTheScanner(t *testing.T) {
	ann, notices := server.ConnNoting(t, "ann")
	cases := []struct{ statement, want, warned string }{
		{`SELECT ${x} AS a`, `[{"a": 1}]`, ""},
		{`SELECT ${x}+${x} AS a`, `[{"a": 2}]`, ""},
		{`SELECT -${x} AS a`, `[{"a": -1}]`, ""},
		{`SELECT ${x}::text AS a`, `[{"a": "1"}]`, ""},
		{`SELECT 2*${x}AS a`, `[{"a": 2}]`, ""},
		{`SELECT ${x} AS "${y}"`, `[{"${y}": 1}]`, "y"},
		{`SELECT ${x} AS a, '${y}' AS b`, `[{"a": 1, "b": "${y}"}]`, "y"},
		{`SELECT ${x} AS a, E'\'${y}' AS b`, `[{"a": 1, "b": "'${y}"}]`, "y"},
		{`SELECT ${x} AS a, 'it''s ${y}' AS b`, `[{"a": 1, "b": "it's ${y}"}]`, "y"},
		{`SELECT ${x} AS a, $$${y}$$ AS b`, `[{"a": 1, "b": "${y}"}]`, "y"},
		{`SELECT ${x} AS a, $q$ ${y} $$ ${z} $q$ AS b`, `[{"a": 1, "b": " ${y} $$ ${z} "}]`, "y, z"},
		{`SELECT ${x} AS a, U&'\0061${y}' AS b`, `[{"a": 1, "b": "a${y}"}]`, "y"},
		{`SELECT ${x} AS a -- ${y}`, `[{"a": 1}]`, "y"},
		{`SELECT /* ${y} /* ${z} */ ${q} */ ${x} AS a`, `[{"a": 1}]`, "y, z, q"},
		{"SELECT ${x} AS a -- '\n, 'b' AS b", `[{"a": 1, "b": "b"}]`, ""},
		{`SELECT ${x} AS a;`, `[{"a": 1}]`, ""},
		{"  \n\tSELECT ${x} AS a  ; \n", `[{"a": 1}]`, ""},
		{`SELECT ARRAY[${x}, 2] AS a, (ARRAY[5, 6])[${x}] AS b`, `[{"a": [1, 2], "b": 5}]`, ""},
		{`SELECT b FROM (VALUES (1, 'one')) v (a, b) WHERE a = ${x}`, `[{"b": "one"}]`, ""},
		{`SELECT i FROM generate_series(1, 3) i LIMIT ${x}`, `[{"i": 1}]`, ""},
	}
	for i, c := range cases {
		notices.Reset()
		name := fmt.Sprintf("placed_%d", i)
		create(t, ann, name, c.statement, `aidb.tool_param('x', 'integer', 'x')`)
		require.JSONEq(t, c.want, run(t, ann, name, `{"x": 1}`), c.statement)
		if c.warned == "" {
			require.Empty(t, notices.Lines("WARNING"), c.statement)
		} else {
			require.Equal(t, []string{"placeholders inside a literal or a comment are not replaced: " + c.warned}, notices.Lines("WARNING"), c.statement)
		}
	}
}

func TestCreateSQLTool_RefusesWhatCannotBeOne(t *testing.T) {
	require.NoError(t, fixture())
	ann := server.Conn(t, "ann")
	create(t, ann, "taken", "SELECT 1 AS a", "")
	x := `aidb.tool_param('x', 'integer', 'x')`
	cases := []struct{ name, statement, params, state, want string }{
		{"taken", "SELECT 1 AS a", "", "42710", "tool 'taken' already exists"},
		{"run_sql_query", "SELECT 1 AS a", "", "42710", "tool 'run_sql_query' already exists"},
		{"", "SELECT 1 AS a", "", "22023", "tool name"},
		{"has space", "SELECT 1 AS a", "", "22023", "must be letters, digits, underscores, hyphens and dots"},
		{strings.Repeat("x", 65), "SELECT 1 AS a", "", "22023", "must not be longer than"},
		{"t1", "", "", "42601", "the statement is empty"},
		{"t1", "-- nothing", "", "42601", "the statement is empty"},
		{"t1", "SELECT 1; SELECT 2", "", "42601", "a SQL tool has exactly one statement, not 2"},
		{"t1", "SELECT FROM WHERE", "", "42601", "syntax error"},
		{"t1", "SELECT ${x} AS a", "", "22023", "parameter 'x' is used but not declared"},
		{"t1", "SELECT '${x}' AS a", x, "22023", "parameter 'x' is declared but not used in the statement"},
		{"t1", "SELECT 1 AS a", x, "22023", "parameter 'x' is declared but not used in the statement"},
		{"t1", "SELECT ${x} AS a", x + ", " + x, "22023", "parameter 'x' is declared twice"},
		{"t1", "SELECT $1 AS a", "", "42601", "a SQL tool has no numbered parameters"},
		{"t1", "SELECT ${x} AS a", `aidb.tool_param('x', 'nonsense', 'x')`, "42704", `type "nonsense" does not exist`},
		{"t1", "SELECT ${x} AS a", `aidb.tool_param('x', 'anyelement', 'x')`, "42809", "a parameter cannot have the pseudo-type anyelement"},
		{"t1", "SELECT ${x} AS a", `aidb.tool_param('x', 'int; DROP TABLE w.t', 'x')`, "42601", "syntax error"},
		{"t1", "SELECT 1 AS a, 2 AS a", "", "42701", `column name "a" appears more than once in the result`},
		{"t1", "SELECT ${x} AS a", `aidb.tool_param('x', 'int', 'x', default_value => '"abc"')`, "22023", `value "abc" of parameter 'x' is not one of type int`},
		{"t1", "SELECT ${x} AS a", `aidb.tool_param('x', 'int', 'x', default_value => '[1]')`, "22023", `value [1] of parameter 'x' is not one of type int`},
		{"t1", "SELECT ${x} AS a", `aidb.tool_param('x', 'date', 'x', default_value => '"2026-02-30"')`, "22023", `value "2026-02-30" of parameter 'x' is not one of type date`},
		{"t1", "SELECT ${x} AS a", `aidb.tool_param('x', 'text[]', 'x', default_value => '"x"')`, "22023", `value "x" of parameter 'x' is not one of type text[]`},
		{"t1", "SELECT ${x} AS a", `aidb.tool_param('x', 'text', 'x', default_value => '"z"', enum_values => '{x,y}')`, "22023", `default "z" of parameter 'x' is not one of its values`},
		{"t1", "SELECT ${x} AS a", `aidb.tool_param('x', 'text[]', 'x', default_value => '["x","z"]', enum_values => '{x,y}')`, "22023", `default "z" of parameter 'x' is not one of its values`},
		{"t1", "SELECT ${x} AS a", `aidb.tool_param('x', 'int', 'x', enum_values => '{1,two}')`, "22023", `value "two" of parameter 'x' is not one of type int`},
		{"t1", "SELECT 1 AS a, 2 AS b, 3 AS a, 4 AS b, 5 AS a, 6 AS c", "", "42701", `column names "a", "b" appear more than once in the result`},
		{"t1", "EXPLAIN (ANALYZE off, ANALYZE) SELECT 1", "", "0A000", "EXPLAIN ANALYZE cannot be a SQL tool"},
		{"t1", "SELECT nothing FROM w.t", "", "42703", `column "nothing" does not exist`},
		{"t1", "SELECT 1 FROM w.nowhere", "", "42P01", `relation "w.nowhere" does not exist`},
		{"t1", "EXPLAIN ANALYZE SELECT 1", "", "0A000", "EXPLAIN ANALYZE cannot be a SQL tool"},
		{"t1", "INSERT INTO w.log (s) VALUES ('x')", "", "25006", "the statement is not read-only: it contains INSERT"},
	}
	for _, c := range cases {
		err := tryCreate(t, ann, c.name, c.statement, c.params)
		require.Error(t, err, c.statement)
		require.Equal(t, c.state, servertest.State(err), "%s: %v", c.statement, err)
		require.Contains(t, err.Error(), c.want, c.statement)
	}
	for statement, place := range map[string]string{"SELECT form x wher": "wher", "SELECT nothing FROM w.t": "nothing FROM w.t", "SELECT 'open": "'open", "SELECT w.t.nothing FROM w.t": "w.t.nothing FROM w.t"} {
		var e *pgconn.PgError
		require.ErrorAs(t, tryCreate(t, ann, "t1", statement, ""), &e)
		require.Equal(t, statement, e.InternalQuery, "an error shows the statement, not the one that brought it")
		require.Equal(t, place, statement[e.InternalPosition-1:])
	}
	require.Equal(t, "0", servertest.Value(t, ann, "SELECT count(*) FROM aidb.sql_tool_registry WHERE name = 't1'"))
	var many []string
	for i := range 101 {
		many = append(many, fmt.Sprintf("${p%d}", i))
	}
	require.Contains(t, tryCreate(t, ann, "t1", "SELECT ARRAY["+strings.Join(many, ", ")+"] AS a", "").Error(), "a SQL tool takes at most 100 parameters")
}

// A tool that writes, with RETURNING and without.
func TestSQLTool_ReportsWhatItChanged(t *testing.T) {
	ann := server.Conn(t, "ann")
	admin := server.Admin(t)
	servertest.Exec(t, admin, "CREATE TABLE public.notes (id serial PRIMARY KEY, note text); GRANT ALL ON public.notes TO ann; GRANT USAGE ON SEQUENCE public.notes_id_seq TO ann")
	x := `aidb.tool_param('x', 'text', 'x')`
	create(t, ann, "note_add", "INSERT INTO public.notes (note) VALUES (${x}), (${x})", x, "false")
	create(t, ann, "note_set", "UPDATE public.notes SET note = ${x} RETURNING id, note", x, "false")
	create(t, ann, "note_drop", "DELETE FROM public.notes WHERE note = ${x}", x, "false")
	create(t, ann, "note_cte", "WITH d AS (DELETE FROM public.notes RETURNING id) SELECT count(*) AS gone FROM d", "", "false")
	require.Equal(t, `{"rows_affected": 2}`, run(t, ann, "note_add", `{"x": "'); DROP TABLE notes; --"}`))
	require.Equal(t, `[{"id": 1, "note": "new"}, {"id": 2, "note": "new"}]`, run(t, ann, "note_set", `{"x": "new"}`))
	require.Equal(t, `{"rows_affected": 0}`, run(t, ann, "note_drop", `{"x": "old"}`))
	require.Equal(t, `[{"gone": 2}]`, run(t, ann, "note_cte", `{}`))
	require.Contains(t, tryCreate(t, ann, "note_twice", "INSERT INTO public.notes (note) VALUES ('x') RETURNING id, id", "", "true").Error(), "it contains INSERT")
	create(t, ann, "note_twice", "INSERT INTO public.notes (note) VALUES ('x') RETURNING id, id", "", "false")
	require.Contains(t, refused(t, ann, "42701", "SELECT aidb.run_tool('note_twice')"), `column name "id" appears more than once in the result`)
	require.Equal(t, "0", servertest.Value(t, admin, "SELECT count(*) FROM public.notes"), "what failed left nothing")
}

// Rights are looked at when the tool runs, and are those of who runs it.
func TestSQLTool_RunsWithTheRightsOfItsCaller(t *testing.T) {
	require.NoError(t, fixture())
	ann, bob, admin := server.Conn(t, "ann"), server.Conn(t, "bob"), server.Admin(t)
	servertest.Exec(t, admin, "CREATE TABLE public.bobs (a integer); INSERT INTO public.bobs VALUES (5); GRANT SELECT ON public.bobs TO bob")
	create(t, ann, "bobs_table", "SELECT a FROM public.bobs", "")
	require.Contains(t, refused(t, ann, "42501", "SELECT aidb.run_tool('bobs_table')"), "permission denied for table bobs")
	require.Equal(t, `[{"a": 5}]`, run(t, bob, "bobs_table", "{}"))
}

func TestSQLTool_HasAnOwnerWhoAloneChangesIt(t *testing.T) {
	require.NoError(t, fixture())
	ann, bob := server.Conn(t, "ann"), server.Conn(t, "bob")
	create(t, ann, "anns", "SELECT ${x} AS a", `aidb.tool_param('x', 'integer', 'x')`)
	for _, sql := range []string{"SELECT aidb.update_sql_tool('anns', description => 'bob''s')", "SELECT aidb.delete_tool('anns')"} {
		require.Contains(t, refused(t, bob, "42501", sql), "tool 'anns' is owned by role 'ann'; only its owner may")
	}
	require.Equal(t, "anns", servertest.Value(t, ann, "SELECT aidb.update_sql_tool('anns', sql_statement => 'SELECT ${x} * 2 AS a', description => 'doubles')"))
	require.Equal(t, `[{"a": 4}]`, run(t, bob, "anns", `{"x": 2}`))
	rows := servertest.Rows(t, bob, "SELECT description, query_text, owner FROM aidb.sql_tool_registry WHERE name = 'anns'")
	require.Equal(t, []map[string]any{{"description": "doubles", "query_text": "SELECT ${x} * 2 AS a", "owner": "ann"}}, rows)
	require.Contains(t, refused(t, ann, "25006", "SELECT aidb.update_sql_tool('anns', sql_statement => 'DELETE FROM w.log WHERE id = ${x}', read_only => true)"), "it contains DELETE")
	require.Equal(t, `[{"a": 4}]`, run(t, ann, "anns", `{"x": 2}`), "an update that fails changes nothing")
	require.Equal(t, "anns", servertest.Value(t, ann, "SELECT aidb.delete_tool('anns')"))
	require.Contains(t, refused(t, ann, "42704", "SELECT aidb.run_tool('anns', '{\"x\": 2}')"), "tool 'anns' not found in aidb.tools")
	require.Contains(t, refused(t, ann, "42704", "SELECT aidb.delete_tool('anns')"), "tool 'anns' not found")
	refused(t, ann, "55000", "SELECT aidb.delete_tool('run_sql_query')")
}

func TestSQLTool_HasLimitsOfItsOwn(t *testing.T) {
	ann := server.Conn(t, "ann")
	create(t, ann, "slow", "SELECT pg_sleep(60)", "", "timeout_ms => 50")
	require.Contains(t, refused(t, ann, "57014", "SELECT aidb.run_tool('slow')"), "50 ms")
	create(t, ann, "long", "SELECT generate_series(1, ${n}) AS i", `aidb.tool_param('n', 'integer', 'x')`, "max_rows => 3")
	require.Contains(t, run(t, ann, "long", `{"n": 4}`), `"truncated": true`)
	require.NotContains(t, run(t, ann, "long", `{"n": 3}`), "truncated")
	refused(t, ann, "22023", "SELECT aidb.create_sql_tool('bad_limit', '', 'SELECT 1 AS a', '[]', timeout_ms => 0)")
	refused(t, ann, "22023", "SELECT aidb.create_sql_tool('bad_limit', '', 'SELECT 1 AS a', '[]', max_rows => -1)")

	servertest.Exec(t, ann, "SELECT aidb.update_sql_tool('long', description => 'without a limit', reset => '{max_rows}')")
	require.NotContains(t, run(t, ann, "long", `{"n": 4}`), "truncated")
	require.Contains(t, refused(t, ann, "22023", "SELECT aidb.update_sql_tool('long', reset => '{description}')"), "Invalid parameters: 'description' cannot be reset")
	require.Contains(t, refused(t, ann, "22023", "SELECT aidb.update_sql_tool('long', max_rows => 5, reset => '{risk,max_rows}')"),
		"Invalid parameters: 'max_rows' is both set and reset")
}

// What the model is told of a tool's parameters and of its result.
func TestSQLTool_IsShownToTheModelWithItsTypes(t *testing.T) {
	require.NoError(t, fixture())
	ann := server.Conn(t, "ann")
	create(t, ann, "shown", "SELECT ${a} AS a, ${b} AS b, ${c} AS c, ${d} AS d, ${e} AS e, ${f} AS f",
		`aidb.tool_param('a', 'integer', 'how many'), aidb.tool_param('b', 'w.mood', 'how it is'), aidb.tool_param('c', 'w.positive', 'more'),
		aidb.param('d', 'text', NULL, ARRAY['x', 'y']), aidb.tool_param('e', 'numeric[]', 'list') || '{"required": false}', aidb.tool_param('f', 'jsonb', 'any')`,
		"return_type_hint => aidb.tool_params(aidb.tool_param('a', 'integer', 'as given'))")
	server.Agent(t, ann, "shower", []string{"shown"}, fakemodel.Say("ok"))
	servertest.MustAsk(t, ann, "shower", "hi")
	for _, tool := range server.Model.Requests("shower")[0].Tools {
		if tool.Function.Name != "shown" {
			continue
		}
		require.Contains(t, tool.Function.Description, "Returns an array of rows with a (integer: as given)")
		require.JSONEq(t, `{"type": "object", "additionalProperties": false, "required": ["a", "b", "c", "d", "f"], "properties": {
			"a": {"type": "integer", "description": "how many"},
			"b": {"type": "string", "enum": ["sad", "ok", "happy"], "description": "how it is"},
			"c": {"type": "integer", "description": "more"},
			"d": {"type": "string", "enum": ["x", "y"]},
			"e": {"type": "array", "items": {"type": "number"}, "description": "list"},
			"f": {"description": "any"}}}`, string(tool.Function.Parameters))
		require.JSONEq(t, `{"type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer", "description": "as given"}}}}`,
			servertest.Value(t, ann, "SELECT output_schema FROM aidb.get_mcp_tools() WHERE name = 'shown'"))
		require.Equal(t, "0", servertest.Value(t, ann, "SELECT count(output_schema) FROM aidb.get_mcp_tools() WHERE name <> 'shown'"))
		return
	}
	t.Fatal("the model was not offered the tool")
}
