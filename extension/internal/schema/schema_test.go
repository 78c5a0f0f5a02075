package schema

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/extension/internal/fault"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	s, err := Compile(json.RawMessage(`{"type":"object","properties":{
		"colour":{"type":"string","enum":["red","green"]},
		"size":{"type":"object","properties":{"w":{"type":"integer"}},"required":["w"]},
		"note":{"type":"string"}},"required":["colour","size"],"additionalProperties":false}`))
	require.NoError(t, err)

	cases := []struct {
		name, doc string
		problems  []string
	}{
		{"fits", `{"colour":"red","size":{"w":1}}`, nil},
		{"optional member may be there", `{"colour":"red","size":{"w":1},"note":"x"}`, nil},
		{"outside the enum", `{"colour":"blue","size":{"w":1}}`, []string{"/colour", "red"}},
		{"nested type", `{"colour":"red","size":{"w":"1"}}`, []string{"/size/w", "integer"}},
		{"missing member", `{"colour":"red"}`, []string{"size"}},
		{"every problem is named", `{"colour":"blue","size":{"w":"1"}}`, []string{"/colour", "/size/w"}},
		{"member that is not in the schema", `{"colour":"red","size":{"w":1},"x":1}`, []string{"x"}},
		{"not an object", `[]`, []string{"object"}},
		{"not JSON", `{"colour`, []string{"not valid JSON"}},
		{"something after the value", `{"colour":"red","size":{"w":1}} x`, []string{"not valid JSON"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := s.Validate([]byte(c.doc))
			if c.problems == nil {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			require.Equal(t, fault.ModelOutput, fault.KindOf(err))
			require.NotContains(t, err.Error(), "\n")
			for _, p := range c.problems {
				require.ErrorContains(t, err, p)
			}
		})
	}
}

func TestCompile_RefusesWhatIsNoSchema(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, raw string
		kind      fault.Kind
	}{
		{"not JSON", `{`, fault.InvalidText},
		{"keyword of the wrong type", `{"type":7}`, fault.InvalidArgument},
		{"number", `7`, fault.InvalidArgument},
		{"file", `{"$ref":"file:///etc/passwd"}`, fault.InvalidArgument},
		{"network", `{"$ref":"http://127.0.0.1:9/x.json"}`, fault.InvalidArgument},
		{"missing definition", `{"$ref":"#/$defs/x"}`, fault.InvalidArgument},
		{"expression that no engine takes", `{"pattern":"("}`, fault.InvalidArgument},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := Compile(json.RawMessage(c.raw))
			require.Error(t, err)
			require.Equal(t, c.kind, fault.KindOf(err), err.Error())
		})
	}
}
