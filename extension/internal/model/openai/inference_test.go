package openai

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/extension/internal/fault"
)

func TestWithInference(t *testing.T) {
	t.Parallel()
	config := json.RawMessage(`{"model":"m","temperature":0.1,"seed":7,"extra_args":{"a":1,"b":2}}`)
	for in, want := range map[string]string{
		``:     string(config),
		`null`: string(config),
		`{}`:   string(config),
		`{"temperature":0.9,"seed":null,"max_tokens":5}`:                  `{"model":"m","temperature":0.9,"seed":7,"max_tokens":5,"extra_args":{"a":1,"b":2}}`,
		`{"extra_args":{"b":3},"response_format":{"type":"json_object"}}`: `{"model":"m","temperature":0.1,"seed":7,"extra_args":{"a":1,"b":3,"response_format":{"type":"json_object"}}}`,
	} {
		got, err := WithInference(config, json.RawMessage(in))
		require.NoError(t, err)
		require.JSONEq(t, want, string(got), in)
		_, err = parseConfig(got)
		require.NoError(t, err)
	}
	for in, kind := range map[string]fault.Kind{
		`[]`: fault.InvalidArgument, `{"temprature":1}`: fault.InvalidArgument, `{"tools":[]}`: fault.Unsupported, `{"extra_args":7}`: fault.InvalidArgument,
		`{"url":"http://elsewhere"}`: fault.InvalidArgument, `{"model":"other"}`: fault.InvalidArgument,
	} {
		_, err := WithInference(config, json.RawMessage(in))
		require.Equal(t, kind, fault.KindOf(err), in)
	}
	got, err := WithInference(nil, json.RawMessage(`{"extra_args":{"a":1}}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"extra_args":{"a":1}}`, string(got))
}
