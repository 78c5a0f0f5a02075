// Package openai is the provider openai_completions: models behind /v1/chat/completions, OpenAI's own and the many
// servers that speak its protocol more or less, with native tool calls.
//
// Under it is github.com/sashabaranov/go-openai, which is kept away from the network on both sides. It hides what
// is needed (headers, the body, an error that came with status 200), refuses a whole reply for one member of an
// unexpected type, cannot leave members out or in as servers want it, and decides by a model's name what may be
// asked. So an exchange stands between it and the wire:
//
//	Model.Complete ─► writer      the request as this server wants it            (request.go, dialect.go)
//	               ─► go-openai ─► exchange ─► wire.Line ─► http.Client          (exchange.go)
//	               ◄─ go-openai ◄─ normalize ◄─ body or stream, capped           (answer.go, stream.go, normalize.go)
//	                               wire.Failure, classified
//
// Vocabulary, beside that of package wire:
//
//	try        one request on the wire; a Complete makes a few when the failures are of a kind that passes
//	dialect    how one server wants things spelled that mean the same; learnt from its complaints
//	extras     members of a reply that only its maker understands and wants back in the next request of a round
//
// The history is repaired on the copy that goes over the wire, never in what is stored.
package openai
