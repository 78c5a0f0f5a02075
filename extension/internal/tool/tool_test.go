package tool

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/extension/internal/fault"
)

var query = Tool{Name: "run_sql_query", Type: Native, Params: []Parameter{{Name: "query", Type: "text", Description: "one query", Required: true}}}

func TestInputSchema(t *testing.T) {
	t.Parallel()
	require.Equal(t, `{"type":"object","properties":{"query":{"type":"string","description":"one query"}},"required":["query"],"additionalProperties":false}`,
		string(query.InputSchema()))
	require.Equal(t, `{"type":"object","properties":{},"additionalProperties":false}`, string(Tool{}.InputSchema()))
	require.Equal(t, `{"x":1}`, string(Tool{Schema: json.RawMessage(`{"x":1}`)}.InputSchema()))

	types := map[string]string{
		"TEXT": `{"type":"string"}`, "varchar(20)": `{"type":"string"}`, "uuid": `{"type":"string"}`, "timestamptz": `{"type":"string"}`,
		"public.mood": `{"type":"string"}`, "bytea": `{"type":"string","description":"base64"}`,
		"INT": `{"type":"integer"}`, "bigint": `{"type":"integer"}`, " int4 ": `{"type":"integer"}`, "pg_catalog.int8": `{"type":"integer"}`,
		"numeric(10,2)": `{"type":"number"}`, "double precision": `{"type":"number"}`, "float8": `{"type":"number"}`,
		"boolean": `{"type":"boolean"}`, "jsonb": `{}`,
		"text[]": `{"type":"array","items":{"type":"string"}}`, "int[][]": `{"type":"array","items":{}}`,
		"jsonb[]": `{"type":"array","items":{}}`, "numeric(4,1)[3]": `{"type":"array","items":{"type":"number"}}`,
	}
	for sql, want := range types {
		s := Tool{Params: []Parameter{{Name: "p", Type: sql}}}.InputSchema()
		require.True(t, json.Valid(s), string(s))
		var got struct{ Properties map[string]json.RawMessage }
		require.NoError(t, json.Unmarshal(s, &got))
		require.Equal(t, want, string(got.Properties["p"]), sql)
	}
	for _, c := range []struct {
		p    Parameter
		want string
	}{
		{Parameter{Type: "int", Description: "how many", Default: json.RawMessage(`5`)}, "how many (default 5)"},
		{Parameter{Type: "int", Description: "how many; by Default 5", Default: json.RawMessage(`5`)}, "how many; by Default 5"},
		{Parameter{Type: "text", Default: json.RawMessage(`"x"`)}, `default "x"`},
		{Parameter{Type: "text", Description: "d", Default: json.RawMessage(`null`)}, "d"},
		{Parameter{Type: "text", Description: "d", Default: json.RawMessage(`"` + strings.Repeat("x", maxShown) + `"`)}, "d"},
		{Parameter{Type: "BYTEA", Description: "picture", Default: json.RawMessage(`"AA=="`)}, `picture (base64, default "AA==")`},
		{Parameter{Type: "public.image", Base: "bytea", Description: "picture"}, "picture (base64)"},
	} {
		require.Equal(t, c.want, c.p.shown())
	}
	odd := Tool{Params: []Parameter{{Name: `q"<x>`, Type: "text", Description: "a \"b\" \n", Enum: []string{"a", `"`}, Required: true}, {Name: "r", Type: "jsonb"}}}
	require.True(t, json.Valid(odd.InputSchema()), string(odd.InputSchema()))
}

func TestCheckArguments(t *testing.T) {
	t.Parallel()
	all := Tool{Type: SQL, Params: []Parameter{
		{Name: "s", Type: "text"}, {Name: "i", Type: "int"}, {Name: "n", Type: "numeric"}, {Name: "b", Type: "bool"},
		{Name: "j", Type: "jsonb"}, {Name: "a", Type: "text[]"}, {Name: "e", Type: "text", Enum: []string{"x", "y"}}}}
	chosen := Tool{Type: SQL, Params: []Parameter{
		{Name: "i", Type: "int", Enum: []string{"1", "2"}}, {Name: "n", Type: "numeric", Enum: []string{"1", "2.5"}},
		{Name: "b", Type: "bool", Enum: []string{"true"}}, {Name: "a", Type: "text[]", Enum: []string{"x", "y"}}}}
	require.Contains(t, string(chosen.InputSchema()), `"i":{"type":"integer","enum":[1,2]},"n":{"type":"number","enum":[1,2.5]},"b":{"type":"boolean","enum":[true]}`)
	const chooses = " (arguments: i, n, b, a)"
	const accepts = " (arguments: s, i, n, b, j, a, e)"
	cases := []struct {
		name string
		tool Tool
		raw  string
		want string // the arguments as JSON, or the error
	}{
		{"fits", query, `{"query":"SELECT 1"}`, `{"query":"SELECT 1"}`},
		{"missing", query, `{}`, "missing argument 'query' (arguments: query)"},
		{"nothing at all", query, "", "missing argument 'query' (arguments: query)"},
		{"the word null", query, "null", "missing argument 'query' (arguments: query)"},
		{"null is not given", query, `{"query":null}`, "missing argument 'query' (arguments: query)"},
		{"null is a value for a SQL tool", Tool{Type: SQL, Params: query.Params}, `{"query":null}`, `{"query":null}`},
		{"unknown", query, `{"query":"SELECT 1","execute_as_role":"postgres"}`, "unknown argument 'execute_as_role' (arguments: query)"},
		{"unknown and missing", query, `{"sql":"SELECT 1"}`, "unknown argument 'sql'; missing argument 'query' (arguments: query)"},
		{"in the order given", query, `{"z":1,"a":2,"query":3}`,
			"unknown argument 'z'; unknown argument 'a'; argument 'query' must be a string, got number (arguments: query)"},
		{"no arguments taken", Tool{}, `{"x":1}`, "unknown argument 'x' (the tool takes no arguments)"},
		{"no arguments given", Tool{}, ` `, `{}`},
		{"every type", all, `{"s":"","i":-12,"n":1.5e3,"b":false,"j":[{}],"a":["x"],"e":"y"}`, `{"s":"","i":-12,"n":1.5e3,"b":false,"j":[{}],"a":["x"],"e":"y"}`},
		{"repaired where it is certain", all, `{"i":"7","n":"2.5","b":"true"}`, `{"i":7,"n":2.5,"b":true}`},
		{"whole numbers with a fraction", all, `{"i":12.0}`, `{"i":12}`},
		{"whole numbers with an exponent", all, `{"i":1e3}`, `{"i":1000}`},
		{"large whole numbers stay exact", all, `{"i":9007199254740993}`, `{"i":9007199254740993}`},
		{"nulls", all, `{"s":null,"i":null,"a":null}`, `{"s":null,"i":null,"a":null}`},
		{"one to choose of numbers", chosen, `{"i":2,"n":1.0,"b":true,"a":["x",null,["y"]]}`, `{"i":2,"n":1.0,"b":true,"a":["x",null,["y"]]}`},
		{"a number that is none of them", chosen, `{"i":3}`, "argument 'i' must be one of '1', '2'" + chooses},
		{"nor as a text", chosen, `{"i":"3","n":"1.5"}`, "argument 'i' must be one of '1', '2'; argument 'n' must be one of '1', '2.5'" + chooses},
		{"a truth value that is not", chosen, `{"b":false}`, "argument 'b' must be one of 'true'" + chooses},
		{"an element that is not", chosen, `{"a":["x","z"]}`, "argument 'a' at position 2 must be one of 'x', 'y'" + chooses},
		{"text for an integer", all, `{"i":"twelve"}`, "argument 'i' must be an integer, got the string \"twelve\"" + accepts},
		{"fraction for an integer", all, `{"i":1.5}`, "argument 'i' must be an integer, got 1.5" + accepts},
		{"a number of any size", all, `{"i":1e9999}`, "argument 'i' must be an integer, got 1e9999" + accepts},
		{"object for a number", all, `{"n":{}}`, "argument 'n' must be a number, got object" + accepts},
		{"word for a boolean", all, `{"b":"yes"}`, "argument 'b' must be true or false, got string" + accepts},
		{"array for a text", all, `{"s":["x"]}`, "argument 's' must be a string, got array" + accepts},
		{"text for an array", all, `{"a":"x"}`, "argument 'a' must be an array, got string" + accepts},
		{"outside the enum", all, `{"e":"z"}`, "argument 'e' must be one of 'x', 'y'" + accepts},
		{"a name given twice with one value", all, `{"s":"a","s":"a"}`, `{"s":"a"}`},
		{"a name given twice with two values", all, `{"s":"a","s":"b"}`, `argument 's' is given twice, with different values (arguments: s, i, n, b, j, a, e)`},
		{"array", query, `[1]`, "arguments must be a JSON object: [1]"},
		{"text", query, `"x"`, `arguments must be a JSON object: "x"`},
		{"cut off", query, `{"query":"SEL`, `arguments are not valid JSON: {"query":"SEL`},
		{"two objects", query, `{"query":"a"}{"query":"b"}`, `arguments are not valid JSON: {"query":"a"}{"query":"b"}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := CheckArguments(c.tool, c.raw)
			if err != nil {
				require.Equal(t, c.want, err.Error())
				require.True(t, fault.Is(err, fault.InvalidArgument, fault.InvalidText))
				return
			}
			text, err := json.Marshal(got)
			require.NoError(t, err)
			require.JSONEq(t, c.want, string(text))
		})
	}
}

func TestCheckArguments_BoundsWhatItQuotes(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		strings.Repeat("🙂", 1<<18), `{"` + strings.Repeat("n", 1<<19) + `":1}`, `{"query":1e` + strings.Repeat("9", 1<<18) + `}`,
		strings.Repeat("[", 1<<20), strings.Repeat(" ", 1<<21) + "[", "{" + strings.Repeat(`"a":1,`, 1000) + `"b":1}`, strings.Repeat("x", 1<<21),
	} {
		_, err := CheckArguments(query, raw)
		require.Error(t, err)
		require.Less(t, len(err.Error()), 1000)
	}
	var many strings.Builder
	for i := range 500 {
		many.WriteString(`,"a` + strings.Repeat("x", i) + `":1`)
	}
	_, err := CheckArguments(query, "{"+many.String()[1:]+"}")
	require.ErrorContains(t, err, "unknown argument 'a'; unknown argument 'ax'")
	require.ErrorContains(t, err, "and more")
	require.Less(t, len(err.Error()), maxProblems*260)
}

func TestCheckArguments_OfAnMCPTool(t *testing.T) {
	t.Parallel()
	mcp := func(schema string) Tool { return Tool{Type: MCP, Schema: json.RawMessage(schema)} }
	closed := mcp(`{"type":"object","properties":{"city":{"type":"string"},"days":{"type":["integer","null"]},"opt":{"type":"object"}},"required":["city"]}`)
	cases := []struct {
		name string
		tool Tool
		raw  string
		err  string
	}{
		{"fits", closed, `{"city":"Bonn","days":2,"opt":{}}`, ""},
		{"missing", closed, `{}`, "missing argument 'city' (arguments: city, days, opt)"},
		{"wrong type", closed, `{"city":1}`, "argument 'city' must be a string, got number (arguments: city, days, opt)"},
		{"closed unless it says otherwise", closed, `{"city":"x","y":1}`, "unknown argument 'y' (arguments: city, days, opt)"},
		{"open when it says so", mcp(`{"properties":{},"additionalProperties":{"type":"string"}}`), `{"y":1}`, ""},
		{"a schema that cannot be read is the server's business", mcp(`[]`), `{"y":1}`, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := CheckArguments(c.tool, c.raw)
			if c.err == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, c.err)
		})
	}
}
