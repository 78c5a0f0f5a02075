package pgtool

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/extension/internal/tool"
)

func TestBind(t *testing.T) {
	t.Parallel()
	text := func(s string) *string { return &s }
	for _, c := range []struct {
		name, sqlType, json string
		want                *string
	}{
		{"null is NULL", "integer", `null`, nil},
		{"nothing is NULL", "integer", ``, nil},
		{"a number", "numeric", `12.50`, text("12.50")},
		{"a big number keeps its digits", "bigint", `9007199254740993`, text("9007199254740993")},
		{"a text", "text", `"it's \"x\" ${t} $1"`, text(`it's "x" ${t} $1`)},
		{"a text without its NUL", "text", `"a\u0000b"`, text("ab")},
		{"a boolean", "boolean", `true`, text("true")},
		{"an object for jsonb", "jsonb", `{"a": [1, null]}`, text(`{"a": [1, null]}`)},
		{"a text for jsonb stays a JSON text", "jsonb", `"x"`, text(`"x"`)},
		{"bytes", "bytea", `"AAH/"`, text(`\x0001ff`)},
		{"bytes without padding", "bytea", `"AAH/AA"`, text(`\x0001ff00`)},
		{"an array", "integer[]", `[1, null, 3]`, text(`{"1",NULL,"3"}`)},
		{"an empty array", "text[]", `[]`, text(`{}`)},
		{"texts that need quoting", "text[]", `["a,b", "c\"d", "e\\f", "NULL", ""]`, text(`{"a,b","c\"d","e\\f","NULL",""}`)},
		{"an array of arrays", "integer[]", `[[1,2],[3,4]]`, text(`{{"1","2"},{"3","4"}}`)},
		{"an array of jsonb", "jsonb[]", `[{"a": 1}, [1, 2]]`, text(`{"{\"a\": 1}","[1, 2]"}`)},
		{"an array literal as a text", "integer[]", `"{1,2}"`, text("{1,2}")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := bind(tool.Parameter{Name: "p"}, c.sqlType, json.RawMessage(c.json))
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
	for _, c := range []struct{ sqlType, json string }{{"bytea", `"not base64!"`}, {"jsonb[]", `{"a": 1}`}} {
		_, err := bind(tool.Parameter{Name: "p"}, c.sqlType, json.RawMessage(c.json))
		require.ErrorContains(t, err, "'p'")
	}
}

func FuzzBind(f *testing.F) {
	for _, s := range []string{`[1]`, `"x"`, `{"a":1}`, `[["a"],["b"]]`, `null`, `1e400`} {
		f.Add("text[]", s)
		f.Add("jsonb", s)
		f.Add("bytea", s)
	}
	f.Fuzz(func(t *testing.T, sqlType, value string) {
		if !json.Valid([]byte(value)) {
			return
		}
		v, err := bind(tool.Parameter{Name: "p"}, sqlType, json.RawMessage(value))
		if err == nil && v != nil {
			require.NotContains(t, *v, "\x00")
		}
	})
}
