package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// verdict is a line of the acceptance runner's output that names a case which did not hold.
var verdict = regexp.MustCompile(`(?m)^(BROKEN|ERROR)\b.*(\n +.*)*`)

// Acceptance cases that live beside the repository, where they exist: a promise each, checked from outside. They bring
// their own runner, which needs psql and Python.
func TestAcceptanceCases(t *testing.T) {
	runner, err := filepath.Abs("../../../shared/cases/contract/run.py")
	require.NoError(t, err)
	if _, err := os.Stat(runner); err != nil {
		t.Skip("no acceptance cases beside this repository")
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("the acceptance cases need python3")
	}
	cmd := exec.CommandContext(t.Context(), python, runner, "--issue", "a", "--landed", "a")
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "PGHOST=127.0.0.1", fmt.Sprintf("PGPORT=%d", server.Port), "PGUSER=postgres", "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	require.Empty(t, verdict.FindAllString(string(out), -1), "%s", out)
	require.NoError(t, err, "%s", out)
}
