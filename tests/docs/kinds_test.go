package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// The kinds of errors and their SQLSTATEs are a table in extension/internal/fault/kind.go, which tests may not import: it is
// read as text.
func TestEveryKind_IsInTheReference(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(root, "extension/internal/fault/kind.go"))
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(root, "docs/reference/errors.md"))
	require.NoError(t, err)

	states := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w{5}) \\|").FindAllStringSubmatch(string(page), -1) {
		states[m[1]] = m[2]
	}
	rows := regexp.MustCompile(`(?m)^\s+\w+:\s+\{"(\w+)", "(\w{5})"\},`).FindAllStringSubmatch(string(source), -1)
	require.Greater(t, len(rows), 20, "the table of kinds is not found any more")
	for _, row := range rows {
		require.Equal(t, row[2], states[row[1]], "errors.md: SQLSTATE of kind %s", row[1])
	}
	require.Len(t, states, len(rows), "errors.md has a kind that does not exist")
}
