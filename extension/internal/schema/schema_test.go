package schema

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/extension/internal/fault"
)

const order = `{"type":"object","properties":{
	"colour":{"type":"string","enum":["red","green"]},
	"size":{"type":"object","properties":{"w":{"type":"integer"}},"required":["w"]},
	"note":{"type":["string","null"],"maxLength":3},
	"tags":{"type":"array","items":{"$ref":"#/$defs/tag"},"minItems":1},
	"by":{"anyOf":[{"type":"string"},{"type":"integer"}]}
	},"required":["colour","size"],"additionalProperties":false,"$defs":{"tag":{"type":"string","pattern":"^[a-z]+$"}}}`

func TestValidate(t *testing.T) {
	t.Parallel()
	s, err := Compile(json.RawMessage(order))
	require.NoError(t, err)

	cases := []struct {
		name, doc, want string
	}{
		{"fits", `{"colour":"red","size":{"w":1}}`, ""},
		{"optional members may be there", `{"colour":"red","size":{"w":1.0},"note":null,"tags":["a"],"by":7}`, ""},
		{"outside the enum", `{"colour":"blue","size":{"w":1}}`, `/colour: must be one of ["red","green"]`},
		{"nested type", `{"colour":"red","size":{"w":"1"}}`, "/size/w: must be an integer, not a string"},
		{"a fraction is no integer", `{"colour":"red","size":{"w":1.5}}`, "/size/w: must be an integer, not a number"},
		{"null is no integer", `{"colour":"red","size":{"w":null}}`, "/size/w: must be an integer, not null"},
		{"missing member", `{"colour":"red"}`, "/: 'size' is missing"},
		{"missing below", `{"colour":"red","size":{}}`, "/size: 'w' is missing"},
		{"every problem is named", `{"colour":"blue","size":{"w":"1"},"tags":["A",3],"note":true,"x":0,"by":[]}`,
			`/by: fits none of the alternatives (anyOf); /colour: must be one of ["red","green"]; /note: must be a string or null, not a boolean; ` +
				"/size/w: must be an integer, not a string; /tags/0: must match the pattern ^[a-z]+$; /tags/1: must be a string, not a number; /: 'x' is not a member of it"},
		{"a limit", `{"colour":"red","size":{"w":1},"note":"long"}`, `/note: maxLength: "long" contains 4 Unicode code points, more than 3`},
		{"too few", `{"colour":"red","size":{"w":1},"tags":[]}`, "/tags: minItems: array length 0 is less than 1"},
		{"not an object", `[]`, "/: must be an object, not an array"},
		{"not JSON", `{"colour`, "not valid JSON: unexpected end of JSON input"},
		{"something after the value", `{"colour":"red","size":{"w":1}} x`, "not valid JSON: invalid character 'x' after top-level value"},
		{"a number that nothing holds", `{"colour":"red","size":{"w":1e400}}`, "/: a number in it is out of range: number 1e400"},
		{"very deep", strings.Repeat("[", 201) + strings.Repeat("]", 201), "/: is nested too deeply"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := s.Validate([]byte(c.doc))
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, c.want)
			require.Equal(t, fault.ModelOutput, fault.KindOf(err))
		})
	}
}

func TestValidate_SaysWhereWhateverTheSchema(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, schema, doc, want string
	}{
		{"recursive", `{"properties":{"left":{"$ref":"#"},"n":{"type":"integer"}}}`, `{"left":{"left":{"n":"x"}}}`,
			"/left/left/n: must be an integer, not a string"},
		{"two levels of references", `{"$ref":"#/$defs/a","$defs":{"a":{"properties":{"x":{"$ref":"#/$defs/b"}}},"b":{"const":1}}}`, `{"x":2}`, "/x: must be 1"},
		{"draft 7: a reference stands alone", `{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/a","required":["y"],
			"definitions":{"a":{"type":"object","properties":{"x":{"type":"boolean"}}}}}`, `{"x":2}`, "/x: must be a boolean, not a number"},
		{"draft 7 without the last character", `{"$schema":"http://json-schema.org/draft-07/schema","type":"object"}`, `1`, "/: must be an object, not a number"},
		{"all of", `{"allOf":[{"required":["a"]},{"properties":{"b":{"type":"string"}}}]}`, `{"b":1}`, "/: 'a' is missing; /b: must be a string, not a number"},
		{"one of", `{"oneOf":[{"type":"string"},{"type":"string"}]}`, `"x"`, "/: must fit exactly one of the alternatives (oneOf)"},
		{"not", `{"not":{"type":"string"}}`, `"x"`, "/: fits what it must not (not)"},
		{"maps", `{"additionalProperties":{"type":"integer"}}`, `{"a":1,"b~/":"x"}`, "/b~0~1: must be an integer, not a string"},
		{"its own name does not matter", `{"$id":"https://example.com/x.json","type":"object","properties":{"a":{"$ref":"#/properties/b"},"b":{"type":"null"}}}`,
			`{"a":1}`, "/a: must be null, not a number"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, err := Compile(json.RawMessage(c.schema))
			require.NoError(t, err)
			require.EqualError(t, s.Validate([]byte(c.doc)), c.want)
		})
	}
}

func TestValidate_ListsNoMoreThanCanBeRead(t *testing.T) {
	t.Parallel()
	s, err := Compile(json.RawMessage(`{"items":{"type":"string"}}`))
	require.NoError(t, err)
	err = s.Validate([]byte("[" + strings.Repeat("1,", 30) + "1]"))
	require.Equal(t, 20, strings.Count(err.Error(), "must be a string"))
	require.True(t, strings.HasSuffix(err.Error(), "; and more"))
}

func TestCompile_RefusesWhatIsNoSchema(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, raw string
		kind      fault.Kind
		want      string
	}{
		{"not JSON", `{`, fault.InvalidText, "is not valid JSON"},
		{"keyword of the wrong type", `{"type":7}`, fault.InvalidArgument, "7"},
		{"a list that is none", `{"required":"a"}`, fault.InvalidArgument, "its 'required' must not be a JSON string"},
		{"a member that is no schema", `{"properties":{"a":7}}`, fault.InvalidArgument, "'properties' must not be a JSON number"},
		{"number", `7`, fault.InvalidArgument, "must not be a JSON number"},
		{"no such type", `{"properties":{"a":{"type":"int"}}}`, fault.InvalidArgument, "'int' at /properties/a is not a type of JSON"},
		{"no such type among several", `{"type":["object","text"]}`, fault.InvalidArgument, "'text' at / is not"},
		{"file", `{"$ref":"file:///etc/passwd"}`, fault.InvalidArgument, "'file:///etc/passwd' at / leads to no schema inside it"},
		{"network", `{"properties":{"a":{"$ref":"http://127.0.0.1:9/x.json"}}}`, fault.InvalidArgument, "leads to no schema inside it"},
		{"missing definition", `{"$ref":"#/$defs/x"}`, fault.InvalidArgument, "leads to no schema inside it"},
		{"expression that no engine takes", `{"pattern":"("}`, fault.InvalidArgument, "missing closing )"},
		{"unknown draft", `{"$schema":"http://json-schema.org/draft-04/schema#"}`, fault.InvalidArgument, "its draft 'http://json-schema.org/draft-04/schema#' is not supported"},
		{"its own self", `{"$ref":"#"}`, fault.InvalidArgument, "refers to itself without end"},
		{"a circle", `{"properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"anyOf":[{"$ref":"#/$defs/c"}]},"c":{"not":{"$ref":"#/$defs/b"}}}}`,
			fault.InvalidArgument, "refers to itself without end"},
		{"anchors", `{"$defs":{"a":{"$anchor":"x"}},"$ref":"#x"}`, fault.InvalidArgument, "not supported"},
		{"very deep", strings.Repeat(`{"not":`, 300) + "{}" + strings.Repeat("}", 300), fault.InvalidArgument, "nested too deeply"},
		{"very long", `{"description":"` + strings.Repeat("x", 1<<20) + `"}`, fault.InvalidArgument, "too long"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := Compile(json.RawMessage(c.raw))
			require.Error(t, err)
			require.Equal(t, c.kind, fault.KindOf(err), err.Error())
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
			require.NotContains(t, err.Error(), "Go ")
		})
	}
}
