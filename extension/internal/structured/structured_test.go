package structured

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/extension/internal/fault"
)

func compile(t *testing.T, raw string) *Type {
	t.Helper()
	typ, err := Compile(json.RawMessage(raw))
	require.NoError(t, err)
	require.NotNil(t, typ)
	return typ
}

func TestCompile_FieldsAreASchema(t *testing.T) {
	t.Parallel()
	for fields, want := range map[string]string{
		`{"name":"total","type":"integer"}`:                                   `"total":{"type":"integer"}`,
		`{"name":"total","type":"FLOAT","description":"in <euros>"}`:          `"total":{"description":"in <euros>","type":"number"}`,
		`{"name":"b","type":"BOOLEAN"}`:                                       `"b":{"type":"boolean"}`,
		`{"name":"t","type":"TEXT"}`:                                          `"t":{"type":"string"}`,
		`{"name":"n","type":"numeric(10,2)"}`:                                 `"n":{"type":"number"}`,
		`{"name":"a","type":"array"}`:                                         `"a":{"type":"array"}`,
		`{"name":"a","type":"int[]"}`:                                         `"a":{"items":{"type":"integer"},"type":"array"}`,
		`{"name":"a","type":"mood[]"}`:                                        `"a":{"type":"array"}`,
		`{"name":"o","type":"object"}`:                                        `"o":{"type":"object"}`,
		`{"name":"j","type":"jsonb"}`:                                         `"j":{}`,
		`{"name":"d","type":"date","description":"when"}`:                     `"d":{"description":"when (date)","pattern":"^[0-9]{4,}-[0-9]{2}-[0-9]{2}$","type":"string"}`,
		`{"name":"d","type":"timestamptz"}`:                                   `"d":{"description":"(timestamptz)","type":"string"}`,
		`{"name":"m","type":"one of a few words"}`:                            `"m":{"description":"(one of a few words)"}`,
		`{"name":"e","type":"text","enum":["a","b"]}`:                         `"e":{"enum":["a","b"],"type":"string"}`,
		`{"name":"s","type":"object","fields":[{"name":"w","type":"int"}]}`:   `"s":{"type":"object","properties":{"w":{"type":"integer"}},"required":["w"],"additionalProperties":false}`,
		`{"name":"s","type":"object[]","fields":[{"name":"w","type":"int"}]}`: `"s":{"items":{"type":"object","properties":{"w":{"type":"integer"}},"required":["w"],"additionalProperties":false},"type":"array"}`,
	} {
		typ := compile(t, `{"fields":[`+fields+`]}`)
		var f struct{ Name string }
		require.NoError(t, json.Unmarshal([]byte(fields), &f))
		require.Equal(t, `{"type":"object","properties":{`+want+`},"required":["`+f.Name+`"],"additionalProperties":false}`, typ.text)
	}
}

func TestCompile_OptionalFields(t *testing.T) {
	t.Parallel()
	typ := compile(t, `{"fields":[{"name":"a","type":"int","required":false},{"name":"e","type":"text","enum":["x"],"required":false},
		{"name":"s","type":"object","required":false,"fields":[{"name":"w","type":"int"}]},{"name":"b","type":"int","required":true}]}`)
	for _, ok := range []string{`{"b":1}`, `{"b":1,"a":null,"e":null,"s":null}`, `{"b":1,"a":2,"e":"x","s":{"w":3}}`} {
		_, err := typ.Read(ok)
		require.NoError(t, err, ok)
	}
	for _, bad := range []string{`{}`, `{"b":null}`, `{"b":1,"a":"x"}`, `{"b":1,"e":"y"}`, `{"b":1,"s":{}}`} {
		_, err := typ.Read(bad)
		require.Error(t, err, bad)
	}
}

func TestCompile_Nothing(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"", "null", " null "} {
		typ, err := Compile(json.RawMessage(raw))
		require.NoError(t, err)
		require.Nil(t, typ)
	}
}

func TestCompile_Refuses(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`[]`:                         "output_type must be a JSON object",
		`"text"`:                     "output_type must be a JSON object",
		`{"fields":[]}`:              `output_type cannot be used: "fields" must be an array with at least one field {"name", "type"}`,
		`{"fields":{}}`:              `output_type cannot be used: "fields" must be an array with at least one field {"name", "type"}`,
		`{"fields":[{"name":"a"}]}`:  `output_type cannot be used: each field must have a "name" and a "type"`,
		`{"type":"objekt"}`:          "output_type cannot be used: JSON Schema is not valid: 'objekt' at / is not a type of JSON",
		`{"$ref":"https://x.y/z"}`:   "output_type cannot be used: JSON Schema is not valid: its reference 'https://x.y/z' at / leads to no schema inside it",
		`{"properties":{"a":[1,2]}}`: "output_type cannot be used: JSON Schema is not valid: its 'properties' must not be a JSON array",
		`{"fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]}`: "output_type cannot be used: the field 'a' is there twice",
	} {
		_, err := Compile(json.RawMessage(raw))
		require.EqualError(t, err, want)
		require.Equal(t, fault.InvalidArgument, fault.KindOf(err))
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	typ := compile(t, `{"fields":[{"name":"total","type":"integer"},{"name":"note","type":"text","required":false}]}`)
	const want = `{"total": 4}`
	cases := []struct{ name, answer, text, problem string }{
		{"as asked", want, want, ""},
		{"white space around", "\n " + want + " \n", want, ""},
		{"a byte order mark", "\uFEFF" + want, want, ""},
		{"a fence", "```json\n" + want + "\n```", want, ""},
		{"a fence without a language", "```\n" + want + "\n```", want, ""},
		{"a fence in one line", "```json" + want + "```", want, ""},
		{"words around a fence", "Here you are:\n```json\n" + want + "\n```\nAnything else?", want, ""},
		{"a fence that holds marks", "```json\n{\"total\": 4, \"note\": \"```x```\"}\n```", "{\"total\": 4, \"note\": \"```x```\"}", ""},
		{"marks in a text", "{\"total\": 4, \"note\": \"```\"}", "{\"total\": 4, \"note\": \"```\"}", ""},
		{"thinking before", "<think>maybe {\"total\": 0}?</think>\n\n```json\n" + want + "\n```", want, ""},
		{"more thinking", "<thinking>\n</thinking>" + want, want, ""},
		{"what jsonb refuses is cleaned", `{"total": 4, "note": "a\u0000b\ud800"}`, `{"total": 4, "note": "ab\ufffd"}`, ""},
		{"two fences are a choice", "```\n" + want + "\n```\nor\n```\n{\"total\": 5}\n```", "", "not valid JSON: invalid character '`' after top-level value"},
		{"words around bare JSON", "It is " + want + ", of {course}.", want, ""},
		{"one of two fences fits", "```\n{\"sum\": 3}\n```\nor rather\n```\n" + want + "\n```", want, ""},
		{"the same twice", want + "\n\n" + want, want, ""},
		{"as a JSON string", `"{\"total\": 4}"`, want, ""},
		{"words and a choice", "It is " + want + " or {\"total\": 5}.", "", "not valid JSON: invalid character 'I' looking for beginning of value"},
		{"words and the wrong thing", "It is {\"sum\": 4}.", "", "not valid JSON: invalid character 'I' looking for beginning of value"},
		{"a thought without end", "<think>" + want, "", "not valid JSON: invalid character '<' looking for beginning of value"},
		{"a list", "[" + want + "]", "", "not a JSON object"},
		{"cut off", `{"total": `, "", "not valid JSON: unexpected end of JSON input"},
		{"nothing", "", "", "not valid JSON: unexpected end of JSON input"},
		{"a word", "```", "", "not valid JSON: invalid character '`' looking for beginning of value"},
		{"the wrong type", `{"total": "many"}`, "", "/total: must be an integer, not a string"},
		{"everything wrong", `{"note": 7, "x": 1}`, "", "/: 'total' is missing; /note: must be a string or null, not a number; /: 'x' is not a member of it"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text, err := typ.Read(c.answer)
			if c.problem != "" {
				require.EqualError(t, err, c.problem)
				require.Equal(t, fault.ModelOutput, fault.KindOf(err))
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.text, text)
		})
	}
	require.Contains(t, typ.Instruction(), "JSON Schema")
	require.Contains(t, typ.Instruction(), `"total"`)
}
