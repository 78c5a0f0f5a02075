// Package responses is the provider openai_responses: models behind /v1/responses, with native tools.
//
// It speaks HTTP through package wire and writes and reads the API's JSON itself. The library that openai_completions uses
// does not know this API, and the maker's SDK costs every session several times the memory of the whole library.
//
//	writer   the request: items of the conversation, nothing stored at the server   (request.go)
//	reply    the reply, whole or at the end of a stream                              (reply.go, stream.go)
//
// Since nothing is stored there, a reasoning model's thoughts come back encrypted and are sent again with the next
// request of a tool round: they are kept for the run, in memory.
package responses
