package secretfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	bare, err := Read(write("key", "sk-1\n"))
	require.NoError(t, err)
	require.Equal(t, "sk-1", bare)

	write("login/username", "ann")
	write("login/password", "p\"w\n")
	object, err := Read(filepath.Join(dir, "login"))
	require.NoError(t, err)
	require.JSONEq(t, `{"basic_auth": "ann:p\"w"}`, object)

	for _, path := range []string{filepath.Join(dir, "none"), dir, write("huge", strings.Repeat("s", maxSize+1))} {
		_, err = Read(path)
		require.Error(t, err, path)
		require.NotContains(t, err.Error(), "sss")
	}
}
