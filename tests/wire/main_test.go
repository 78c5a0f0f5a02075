// Package wire proves what aidb makes of the odd things that model servers send, as its users see it: through
// agent_converse, with a model behind HTTP and the log afterwards.
//
//	scenarios_test.go   the project's own scenarios, one row each, against the fake model
//	recorded_test.go    the recorded scenarios of ../shared/cases/wire, where they are there (they need python3)
//	property_test.go    replies mutated at random
//
// Every run, whatever it was sent, is looked at in the same way: there is an answer or an error and not both, the log is
// there to its end, every call in it has a result, and no tool ran with arguments that the model did not give.
package wire

import (
	"testing"

	"aidb/tests/cluster"
	"aidb/tests/servertest"
)

var server *servertest.Server

func TestMain(m *testing.M) { servertest.Main(m, cluster.Options{}, &server) }
