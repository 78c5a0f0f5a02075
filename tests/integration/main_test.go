// Package integration asks the extension what its users ask it: through SQL on a connection, with ordinary roles, against
// a server that `make install` has installed it into and a model behind HTTP. Nothing here knows how it works inside.
package integration

import (
	"testing"

	"aidb/tests/cluster"
	"aidb/tests/servertest"
)

var server *servertest.Server

func TestMain(m *testing.M) { servertest.Main(m, cluster.Options{}, &server) }
