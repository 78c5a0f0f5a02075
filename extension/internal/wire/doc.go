// Package wire is what talking to a model's server over HTTP takes, whatever the server's API: the adapters of package
// model stand on it and know only how requests and replies are written.
//
//	Transport   what all models share: connections (TLS, proxy, egress list), time limits, retries
//	Line        the way to one model's server: Do tries again what may pass, Exchange makes one request
//	Gate        where requests wait for their turn when a model's limits are shared with other processes
//	Answer      a reply's body, capped, whole or as the lines of a stream
//	Failure     why a request gave no reply, classified; becomes a *fault.Error without secrets when it leaves
//	Scanner     a JSON reader for what servers send instead of JSON, and Text, a string that is not resolved yet
//	Names       the tools on offer by their names on the wire, and ids for calls that came without
//
// The rules of tolerance: what is harmless is accepted, what is certain is repaired, anything else is an error or goes
// back to the model.
package wire
