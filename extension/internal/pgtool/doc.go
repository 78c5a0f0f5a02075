// Package pgtool runs tools inside the database: the tools of an agent's call (Opener makes a Toolbox for the loop)
// and single tools (aidb.run_tool and the functions of the native tools).
//
// A tool is one of three kinds of work. A *statement* tool is SQL that the model wrote; a *function* tool calls one
// of the extension's functions; an *engine* tool (sleep, generate_text) is done here. All but the last go through
// spi.Host.Tool, the one way into the sandbox.
package pgtool
