// Package testkit holds fakes of what the core needs from the outside: a clock and ids that a test can predict, a
// model that follows a script, tools that are Go functions, and a store in memory that keeps what a journal writes, so
// that a conversation can be continued. Only tests import it.
package testkit
