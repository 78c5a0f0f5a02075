package cluster_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aidb/tests/cluster"
)

// The helper of every other test: if it left processes or files behind, or overlooked a crash, they would prove nothing.

func TestCluster_LeavesNothingBehind(t *testing.T) {
	ctx := context.Background()
	c, err := cluster.New(ctx, cluster.Options{})
	require.NoError(t, err)
	defer c.Remove()

	require.NoError(t, c.Exec(ctx, "postgres", "SELECT 1"))
	require.NotEmpty(t, c.Processes(), "a running server has processes")
	require.Empty(t, c.Crashes())

	c.Remove()
	require.NoError(t, c.WaitGone(10*time.Second))
	require.NoDirExists(t, c.Dir)
}

func TestCluster_SeesACrash(t *testing.T) {
	ctx := context.Background()
	c, err := cluster.New(ctx, cluster.Options{})
	require.NoError(t, err)
	defer c.Remove()

	conn, err := c.Connect(ctx, "postgres", "postgres")
	require.NoError(t, err)
	pid := int(conn.PgConn().PID())
	victim, err := os.FindProcess(pid)
	require.NoError(t, err)
	require.NoError(t, victim.Kill())
	require.True(t, cluster.Wait(10*time.Second, func() bool { return len(c.Crashes()) > 0 }), "the log of a killed backend counts as a crash")
}

// A test run that is killed cannot clean up after itself: the watchdog does.
func TestCluster_GoesWhenItsMakerIsKilled(t *testing.T) {
	if os.Getenv("CLUSTER_TEST_MAKER") != "" {
		c, err := cluster.New(context.Background(), cluster.Options{})
		require.NoError(t, err)
		_, _ = os.Stdout.WriteString("dir " + c.Dir + "\n")
		select {} // until killed
	}
	maker := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	maker.Env = append(os.Environ(), "CLUSTER_TEST_MAKER=1")
	out, err := maker.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, maker.Start())
	buf := make([]byte, 4096)
	n, err := out.Read(buf)
	require.NoError(t, err)
	dir, ok := strings.CutPrefix(strings.TrimSpace(string(buf[:n])), "dir ")
	require.True(t, ok, "the maker printed %q", buf[:n])
	require.DirExists(t, dir)

	require.NoError(t, maker.Process.Kill())
	_ = maker.Wait()
	gone := func() bool { _, err := os.Stat(dir); return os.IsNotExist(err) }
	require.True(t, cluster.Wait(20*time.Second, gone), "%s is still there", dir)
}
