// Package anthropic is the provider anthropic_messages: models behind /v1/messages, with native tools.
//
// It speaks HTTP through package wire and writes and reads the API's JSON itself. The maker's SDK is well kept, but costs
// every session several times the memory of the whole library, and hides what is needed as other SDKs do.
//
//	writer   the request: blocks of text, tool_use and tool_result, alternating     (request.go)
//	message  the reply, whole or folded from a stream as it arrives                  (reply.go, stream.go)
//
// A reply's thinking is signed and must come back unchanged with the next request of a tool round: it is kept for the
// run, in memory.
package anthropic
