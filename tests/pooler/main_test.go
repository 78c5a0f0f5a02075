// Package pooler says what holds, and what does not, behind pgbouncer in transaction mode, where each transaction of a
// client may run on another server connection: docs/operations.md is the text that these tests stand behind.
package pooler

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"aidb/tests/cluster"
	"aidb/tests/servertest"
)

// patience is how long anything may take before it counts as lost.
const patience = 30 * time.Second

// poolSize is how many server connections each pair of database and role has.
const poolSize = 2

var (
	server *servertest.Server
	port   int // of pgbouncer; 0: there is none
)

func TestMain(m *testing.M) {
	servertest.Main(m, cluster.Options{Preload: true, Conf: []string{"max_worker_processes = 16"}}, &server)
}

// pooled opens a connection to pgbouncer, which is started by the first.
func pooled(t *testing.T, role string) *pgx.Conn {
	t.Helper()
	if port == 0 {
		start(t)
	}
	config := server.Config(role, servertest.Database)
	config.Host, config.Port = "127.0.0.1", uint16(port)
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol // prepared statements are the server connection's
	conn, err := pgx.ConnectConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func start(t *testing.T) {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program = "/usr/sbin/pgbouncer" // Debian's, which is not on everybody's PATH
	}
	if _, err := os.Stat(program); err != nil {
		t.Skip("pgbouncer is not installed (Debian: apt-get install pgbouncer)")
	}
	listen, err := cluster.FreePort()
	require.NoError(t, err)
	ini := fmt.Sprintf(`[databases]
* = host=%s port=%d
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
pool_mode = transaction
default_pool_size = %d
auth_type = trust
auth_file = users.txt
`, server.SocketDir(), server.Port, listen, poolSize)
	stop, err := server.Run("pgbouncer", map[string]string{"pgbouncer.ini": ini, "users.txt": `"ann" ""` + "\n" + `"bob" ""` + "\n"}, program, "pgbouncer.ini")
	require.NoError(t, err)
	t.Cleanup(func() { stop(); port = 0; _ = os.RemoveAll(filepath.Join(server.Dir, "pgbouncer")) })
	port = listen
	config := server.Config("ann", servertest.Database)
	config.Host, config.Port = "127.0.0.1", uint16(port)
	require.True(t, cluster.Wait(patience, func() bool {
		conn, err := pgx.ConnectConfig(t.Context(), config)
		if err == nil {
			_ = conn.Close(t.Context())
		}
		return err == nil
	}), "pgbouncer does not come up: %s", output())
}

func output() string {
	text, _ := os.ReadFile(filepath.Join(server.Dir, "pgbouncer", "output"))
	return string(text)
}

// backend is the server connection that the next transaction would have, or that the one in hand has.
func backend(t *testing.T, conn *pgx.Conn) string {
	t.Helper()
	return servertest.Value(t, conn, "SELECT pg_backend_pid()")
}

// elsewhere runs f while the server connection that conn would have had is another client's, so that f is on another one.
func elsewhere(t *testing.T, conn *pgx.Conn, f func()) {
	t.Helper()
	before := backend(t, conn)
	other := pooled(t, conn.Config().User)
	var held []*pgx.Conn
	for c := other; ; c = pooled(t, conn.Config().User) {
		servertest.Exec(t, c, "BEGIN")
		held = append(held, c)
		if backend(t, c) == before {
			break
		}
		require.Less(t, len(held), poolSize)
	}
	for _, c := range held[:len(held)-1] {
		servertest.Exec(t, c, "COMMIT")
	}
	require.NotEqual(t, before, backend(t, conn))
	f()
	servertest.Exec(t, held[len(held)-1], "COMMIT")
}
