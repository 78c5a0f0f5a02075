package smallfile

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	require.NoError(t, os.WriteFile(plain, []byte("12345"), 0o600))
	b, err := Read(plain, 5)
	require.NoError(t, err)
	require.Equal(t, "12345", string(b))
	_, err = Read(plain, 4)
	require.Error(t, err, "one byte too long")

	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, path := range []string{pipe, dir, filepath.Join(dir, "none"), "/dev/zero", "/dev/null", ""} {
		_, err = Read(path, 1<<20)
		require.Error(t, err, path)
	}
	// A plain file that is longer than it says.
	_, err = Read("/proc/self/status", 10)
	require.Error(t, err)
}
