package agent

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"aidb/extension/internal/conversation"
)

func TestSpaced_WritesAsPostgresWritesJsonb(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"":                              "",
		`{"a":1,"b":[1,2]}`:             `{"a": 1, "b": [1, 2]}`,
		`{"a": 1, "b": [1, 2]}`:         `{"a": 1, "b": [1, 2]}`,
		"[ {\n\t\"a\" : \"x,y:z\" } ]":  `[{"a": "x,y:z"}]`,
		`{"q":"say \"a,b\" \\"}`:        `{"q": "say \"a,b\" \\"}`,
		`{"q":`:                         `{"q":`,
		"plain, text: as it is":         "plain, text: as it is",
		`12,3`:                          `12,3`,
		`[not json, but {looks} so]`:    `[not json, but {looks} so]`,
		`{"n":1.50,"big":1e999,"z":{}}`: `{"n": 1.50, "big": 1e999, "z": {}}`,
	}
	for in, want := range cases {
		require.Equal(t, want, spaced(in))
	}
}

func TestDebugLines(t *testing.T) {
	t.Parallel()
	require.Equal(t, `[tool_call] f({"query": "SELECT 1"})`, toolCallLine(conversation.ToolCall{Name: "f", Arguments: ` {"query":"SELECT 1"} `}))
	require.Equal(t, "[tool_call] f({})", toolCallLine(conversation.ToolCall{Name: "f"}))
	require.Equal(t, "[tool_response] f -> Tool error: no", toolResponseLine("f", "Tool error: no"))
	require.Equal(t, "[answer] hi", debugLine(conversation.Answer, "hi"))

	for _, unit := range []string{"x", "é", "🙂"} {
		exact := strings.Repeat(unit, 2000)
		require.Equal(t, "[answer] "+exact, debugLine(conversation.Answer, exact))
		require.Equal(t, "[answer] "+exact+"… (truncated)", debugLine(conversation.Answer, exact+"x"))
		line := toolResponseLine("f", `["`+strings.Repeat(unit, 100_000)+`"]`)
		require.True(t, utf8.ValidString(line))
		require.Equal(t, len("[tool_response] f -> ")+2000+utf8.RuneCountInString("… (truncated)"), utf8.RuneCountInString(line))
	}
}
