package mcp

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/tests/fakemcp"
	"aidb/tests/servertest"
)

// What a tool says of its results is shown, and pinned like the rest of its definition.
func TestOutputSchema_IsShownAndPinned(t *testing.T) {
	ann := server.Conn(t, "ann")
	var output atomic.Value
	output.Store(`{"type":"object","properties":{"n":{"type":"integer"}}}`)
	raw(t, ann, "structured", func(m fakemcp.Message, w http.ResponseWriter, _ *http.Request) bool {
		if m.Method != "tools/list" {
			return false
		}
		fakemcp.JSON(w, m.Result(`{"tools":[{"name":"counts","inputSchema":{"type":"object"},"outputSchema":`+output.Load().(string)+`}]}`))
		return true
	})
	schemas := `SELECT concat_ws(' ', status, output_schema #>> '{properties,n,type}', new_output_schema #>> '{properties,n,type}') FROM aidb.mcp_tools WHERE name = 'counts'`
	listed := `SELECT output_schema #>> '{properties,n,type}' FROM aidb.get_mcp_tools() WHERE name = 'counts'`
	require.Equal(t, "approved integer", servertest.Value(t, ann, schemas))
	require.Equal(t, "integer", servertest.Value(t, ann, listed))

	output.Store(`{"type":"object","properties":{"n":{"type":"string"}}}`)
	servertest.Exec(t, ann, "SELECT aidb.refresh_mcp_tools('structured')")
	require.Equal(t, "quarantined integer string", servertest.Value(t, ann, schemas))
	servertest.Exec(t, ann, "SELECT aidb.approve_mcp_tool('counts')")
	require.Equal(t, "approved string", servertest.Value(t, ann, schemas))
	require.Equal(t, "string", servertest.Value(t, ann, listed))
}
