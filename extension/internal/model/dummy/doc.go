// Package dummy is the provider dummy: a model that plays a script, for tests and for trying things out without a
// model. Its config is
//
//	{"responses": [{"response": text, "tool_calls": [{"name": text, "arguments": {…}}],
//	                "tokens_in": int, "tokens_out": int, "error": text}, …],
//	 "scope": "backend" | "call"}
//
// The replies are played in order and the last one repeats. Where a script stands is kept per process and model
// (scope backend, the default), or begins anew with every run (scope call). ${prompt} in a text, or in a string
// anywhere in the arguments, is the run's prompt. A reply with an error fails the model call with that text.
//
// The package is strict about its config: a script that is not understood would otherwise make a test pass for
// the wrong reason.
package dummy
