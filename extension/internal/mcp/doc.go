// Package mcp calls tools of MCP servers: the protocol's client, with github.com/modelcontextprotocol/go-sdk below (the
// protocol's own library: handshake, both HTTP transports, resumption, cancellation).
//
// A server is somebody else's program. Everything that it says is bounded and cleaned here before anybody reads it: the
// size of each message, how deep it is nested, how many pages its list of tools has, names, descriptions, results. The
// library starts goroutines of its own, which nobody can recover; so what reaches them passes transport.go first.
//
// A Pool is one per process. It keeps sessions, one for each server and whoever it is used for, and opens them anew when
// the server has lost them. What a failed call has left behind is said by Outcome: whoever must not act twice asks it.
package mcp
