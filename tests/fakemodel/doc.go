// Package fakemodel is a scripted OpenAI-compatible server: what the tests, the demo and the benchmarks talk to instead
// of a real model, so that the path from the database to the model (HTTP, JSON, limits, errors, cancel) is the real one.
//
// It listens on loopback only and speaks POST …/chat/completions, …/messages, …/responses and GET …/models. What it answers is decided by the
// request's model name: a Script replays replies in order, a Brain (any function) answers from what it was sent, and
// anything else falls to the server's default Brain. A Reply can be a text, tool calls, an HTTP error, a page of
// HTML, a body of any size, a connection that hangs or closes: the odd things that servers do.
//
// Words used here: a *request* is one HTTP request; it is *in flight* from the moment it was read until it was answered
// or the client went away, in which case it counts as *abandoned*.
package fakemodel
