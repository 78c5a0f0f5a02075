package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
)

// binDir is where the server's programs are: the same server that the Makefile builds for.
func binDir(ctx context.Context) (string, error) {
	candidates := []string{os.Getenv("PG_CONFIG")}
	if candidates[0] == "" {
		major := os.Getenv("PG_MAJOR")
		if major == "" {
			major = "15"
		}
		candidates = []string{"/usr/lib/postgresql/" + major + "/bin/pg_config", "pg_config"}
	}
	var last error
	for _, pgConfig := range candidates {
		out, err := exec.CommandContext(ctx, pgConfig, "--bindir").Output()
		if err != nil {
			last = fmt.Errorf("%s --bindir: %w", pgConfig, err)
			continue
		}
		dir := strings.TrimSpace(string(out))
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
			last = fmt.Errorf("no PostgreSQL server programs: %w", err)
			continue
		}
		return dir, nil
	}
	return "", last
}

// tempDir makes a folder that the server's user owns and can reach. A temporary folder inside a home that only its owner
// may enter would do for us and not for the server, so then /tmp is taken.
func tempDir(owner int) (string, error) {
	base := os.TempDir()
	if owner != os.Getuid() && !openToAll(base) {
		base = "/tmp"
	}
	dir, err := os.MkdirTemp(base, "aidb-")
	if err != nil {
		return "", err
	}
	if err := os.Chown(dir, owner, -1); err != nil {
		return "", err
	}
	// Others connect through the socket in here; the data below is closed to them by initdb.
	return dir, os.Chmod(dir, 0o755) //nolint:gosec // see above
}

func openToAll(dir string) bool {
	for dir != "/" && dir != "." {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		dir = filepath.Dir(dir)
	}
	return true
}

func lookup(name string) (uid, gid int, home string, err error) {
	u, err := user.Lookup(name)
	if err != nil {
		return 0, 0, "", err
	}
	if uid, err = strconv.Atoi(u.Uid); err != nil {
		return 0, 0, "", err
	}
	if gid, err = strconv.Atoi(u.Gid); err != nil {
		return 0, 0, "", err
	}
	return uid, gid, u.HomeDir, nil
}
