// Package architecture holds the tree to what no compiler checks and no Go package can check for itself: where the few
// dangerous things may be, what the two libraries may know of each other, and that no test is forgotten. What the Go
// packages may import and call is checked beside them, in extension/.
package architecture

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// One C file changes the user id, so that one file has to be right about it.
func TestUserIdentity_ChangesInOneFile(t *testing.T) {
	for path, text := range texts(t, []string{"c_shim", "worker", "extension"}, ".c", ".h") {
		if path != "c_shim/sandbox.c" {
			require.NotContains(t, text, "SetUserIdAndSecContext(", "%s changes the user id", path)
		}
	}
}

// The seam between the two libraries builds without PostgreSQL, and the Go side knows no server header at all.
func TestSeam_KnowsNoServerHeader(t *testing.T) {
	headers := regexp.MustCompile(`(?m)^#include "([^"]*)"`)
	for path, text := range texts(t, []string{"extension", "c_shim"}, ".c", ".h") {
		if strings.HasPrefix(path, "extension/") || path == "c_shim/bridge.h" {
			for _, include := range headers.FindAllStringSubmatch(text, -1) {
				require.Equal(t, "bridge.h", filepath.Base(include[1]), path)
			}
		}
	}
}

// A Go signal handler in a backend would take the server's signals (docs/design/seam.md). Not even a dependency of the
// library may bring one.
func TestLibrary_LinksNoSignalHandler(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "./extension")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	require.NotContains(t, strings.Fields(string(out)), "os/signal")
}

func TestSources_KeepToTheirSize(t *testing.T) {
	const limit = 400 + 40 // about 400: a few lines over are no second room
	for path, text := range texts(t, []string{"c_shim", "worker", "sql", "tests"}, ".go", ".c", ".h", ".sql") {
		if lines := strings.Count(text, "\n"); lines > limit {
			t.Errorf("%s has %d lines: is there a second room in it?", path, lines)
		}
	}
}

// A test file that nobody runs would look like a promise: no folder below tests/ is one that go test ./... passes over, and
// no file is left out by a build constraint.
func TestTests_AreAllRun(t *testing.T) {
	for path, text := range texts(t, []string{"tests", "extension"}, ".go") {
		require.NotContains(t, text, "\n//go:build ", "%s is built only sometimes", path)
		for folder := range strings.SplitSeq(filepath.Dir(path), "/") {
			require.False(t, strings.HasPrefix(folder, "_") || strings.HasPrefix(folder, ".") || folder == "testdata",
				"%s is in a folder that go test ./... passes over", path)
		}
	}
}

// texts reads the files with these extensions; keys are paths from the root of the tree.
func texts(t *testing.T, folders []string, extensions ...string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !slices.Contains(extensions, filepath.Ext(path)) {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(root, path)
			found[rel] = string(text)
			return err
		})
		require.NoError(t, err)
	}
	require.NotEmpty(t, found)
	return found
}
