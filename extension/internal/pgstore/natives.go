package pgstore

import (
	"sync"

	"aidb/extension/internal/spi"
	"aidb/extension/internal/tool"
)

// Natives is the definitions of the native tools, read once in a process: they come with the libraries that it has
// loaded. The zero value is ready for use.
type Natives struct {
	mu    sync.Mutex
	tools map[string]tool.Tool
}

const nativesLookup = `LOOKUP
get native_tool_list native_tool_list_pkey $1 tools`

func nativesStatement() spi.Statement { return spi.Statement{SQL: nativesLookup, Args: []any{"true"}} }

func (n *Natives) known() map[string]tool.Tool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.tools
}

func (n *Natives) keep(rows spi.Rows) error {
	r, ok := firstRow([]spi.Rows{rows})
	if !ok {
		return nil
	}
	var list []storedTool
	if r.json(&list); r.err != nil {
		return r.err
	}
	tools := make(map[string]tool.Tool, len(list))
	for i := range list {
		tools[list[i].Name] = list[i].tool(tool.Native)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tools = tools
	return nil
}
