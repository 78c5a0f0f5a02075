package pgtool

import (
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/tool"
)

// A run that goes on after a crash makes a call again only if its effect went with the crash.
func TestBox_DoesNotRepeatWhatLeftTheDatabase(t *testing.T) {
	t.Parallel()
	local := map[string]tool.Tool{"run_sql_query": {Type: tool.Native}, "mine": {Type: tool.SQL}, actTool: {Type: tool.Native}}
	b := &box{tools: local}
	var r agent.Repeater = b
	for _, name := range []string{"run_sql_query", "mine", actTool, "no such tool"} {
		require.True(t, r.Repeatable(conversation.ToolCall{Name: name}), name)
	}
	b.tools = map[string]tool.Tool{"run_sql_query": {Type: tool.Native}, "remote": {Type: tool.MCP}, actTool: {Type: tool.Native}}
	require.True(t, r.Repeatable(conversation.ToolCall{Name: "run_sql_query"}))
	for _, name := range []string{"remote", actTool} {
		require.False(t, r.Repeatable(conversation.ToolCall{Name: name}), name)
	}
	b.tools["remote"] = tool.Tool{Type: tool.MCP, Idempotent: true}
	for _, name := range []string{"remote", actTool} {
		require.True(t, r.Repeatable(conversation.ToolCall{Name: name}), name)
	}
}
