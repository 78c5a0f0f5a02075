// Package agent is the loop: it lets a model think, runs the tools that the model asks for, and goes on until
// there is an answer or a limit is reached.
//
// The loop itself is a state machine without I/O. A State is told what happened (an Event) and says what to do next
// (Effects): log a step, ask the model, run a tool, warn, finish. That is state.go, step.go, calls.go, closing.go,
// guard.go and limits.go; it can be tested in microseconds, and every rule of a run (budgets, guards, what a truncated
// reply means) is there and nowhere else. Service (service.go) and its run (run.go, journal.go) are the driver: they load
// what a run needs, do the effects through the interfaces of ports.go, and hand the outcome back as an event. An agent
// that delegates to another is a run within a run (delegate.go); answers of an output type are typed.go's.
//
// How a run ends:
//
//	SUCCESS   an answer
//	ERROR     the model failed, a budget or a limit ended it, or the call could not begin to run
//	TIMEOUT   the agent's time budget ended it
//	DENIED    governance refused it
//
// All of these are rows for the caller. Only conditions of the engine (cancel, shutdown, a log that cannot be written)
// are errors of Converse: they end the caller's transaction, so nothing of the run is left. A tool that fails is
// neither: it is a result, and the model sees it.
package agent
