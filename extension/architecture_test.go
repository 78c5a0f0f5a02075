package main_test

// The import directions of the tree, as the style guide draws them: main knows everything, adapters know the core and
// not each other, the core knows its leaves. This test asks the go command, and needs neither cgo nor PostgreSQL:
//
//	go test extension/architecture_test.go extension/lint_test.go

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const internal = "aidb/extension/internal/"

// layer says what the packages of a layer may import of the tree, and what may stand below them at all.
type layer struct {
	name     string
	packages []string // a trailing / means everything below
	may      []string // names of layers, or of single packages
	pure     bool     // no network, no SQL, no driver, however indirectly
	modules  []string // other modules imported directly; nil means any
}

// A new package gets its place here, with the reason in the commit that adds it.
var layers = []layer{
	{name: "fault", packages: []string{"fault"}, pure: true, modules: []string{}},
	{name: "leaves", packages: []string{"conversation", "schema", "redact"}, may: []string{"fault"}, pure: true,
		modules: []string{"github.com/google/uuid", "github.com/google/jsonschema-go"}},
	{name: "core", packages: []string{"tool", "purpose", "policy", "approval", "structured", "decision", "action"},
		may: []string{"fault", "leaves"}, pure: true, modules: []string{"github.com/google/uuid"}},
	{name: "agent", packages: []string{"agent"}, may: []string{"fault", "leaves", "core"}, pure: true,
		modules: []string{"github.com/google/uuid"}},

	// What adapters stand on: one technical matter each, nothing of agents.
	{name: "safego", packages: []string{"safego"}, may: []string{"fault"}, pure: true, modules: []string{}},
	{name: "seam", packages: []string{"seam"}, may: []string{"fault"}, pure: true, modules: []string{}},
	{name: "smallfile", packages: []string{"smallfile"}, pure: true, modules: []string{}},
	{name: "outside", packages: []string{"egress", "secretfile"}, may: []string{"fault", "safego", "smallfile"}},
	{name: "spi", packages: []string{"spi"}, may: []string{"fault", "leaves", "seam", "safego"}, pure: true},

	// What the models' adapters share: everything about HTTP that is the same whoever answers.
	{name: "wire", packages: []string{"wire"}, may: []string{"fault", "leaves", "agent", "outside", "safego", "smallfile"}},

	{name: "postgres adapters", packages: []string{"pgstore", "pgtool"},
		may: []string{"fault", "leaves", "core", "agent", "spi"}, pure: true},
	{name: "network adapters", packages: []string{"model/", "mcp", "telemetry"},
		may: []string{"fault", "leaves", "core", "agent", "outside", "wire", "safego", "smallfile"}},

	{name: "testkit", packages: []string{"testkit"}, may: []string{"fault", "leaves", "core", "agent"}, pure: true},
}

// impure is what pure packages are kept from. The uuid package brings database/sql/driver (interfaces) and net (the
// machine's address) along, so those two are not in the list.
var impure = []string{"net/http", "database/sql", "C", "runtime/cgo", "os/exec"}

func (l layer) has(name string) bool {
	return slices.ContainsFunc(l.packages, func(p string) bool {
		return p == name || (strings.HasSuffix(p, "/") && strings.HasPrefix(name, p))
	})
}

func layerOf(name string) *layer {
	for i := range layers {
		if layers[i].has(name) {
			return &layers[i]
		}
	}
	return nil
}

type listed struct {
	ImportPath   string
	Standard     bool
	Imports      []string
	Deps         []string
	TestImports  []string
	XTestImports []string
	Module       *struct{ Path string }
}

// list asks the go command for the packages of the library and all that they depend on.
func list(t *testing.T) map[string]listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Standard,Imports,Deps,TestImports,XTestImports,Module", "./internal/...")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	require.NoError(t, err, complaint.String())
	all := map[string]listed{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		all[p.ImportPath] = p
	}
	return all
}

func TestArchitecture_ImportsPointDown(t *testing.T) {
	t.Parallel()
	all := list(t)
	seen := 0
	for path, p := range all {
		name, ours := strings.CutPrefix(path, internal)
		if !ours {
			continue
		}
		seen++
		l := layerOf(name)
		if l == nil {
			t.Errorf("package %s is in no layer: give it a place in architecture_test.go", name)
			continue
		}
		for _, imported := range p.Imports {
			below, ours := strings.CutPrefix(imported, internal)
			if ours {
				to := layerOf(below)
				if to == nil || !slices.Contains(l.may, to.name) {
					t.Errorf("%s (%s) must not import %s", name, l.name, below)
				}
				continue
			}
			if dep := all[imported]; l.modules != nil && !dep.Standard && !slices.ContainsFunc(l.modules, func(m string) bool {
				return imported == m || strings.HasPrefix(imported, m+"/")
			}) {
				t.Errorf("%s (%s) must not import %s", name, l.name, imported)
			}
		}
		for _, dep := range p.Deps {
			if l.pure && slices.Contains(impure, dep) {
				t.Errorf("%s (%s) must not depend on %s", name, l.name, dep)
			}
		}
	}
	require.NotZero(t, seen)
}

// The fakes are for tests: nothing that is built into the library may reach them.
func TestArchitecture_OnlyTestsImportTestkit(t *testing.T) {
	t.Parallel()
	for path, p := range list(t) {
		require.NotContains(t, p.Imports, internal+"testkit", path)
	}
}

// Words that say nothing about what a package is for.
func TestArchitecture_PackagesHaveAPurpose(t *testing.T) {
	t.Parallel()
	for path := range list(t) {
		if name, ours := strings.CutPrefix(path, internal); ours {
			for _, part := range strings.Split(name, "/") {
				require.NotContains(t, []string{"util", "utils", "common", "helper", "helpers", "types", "models", "misc", "base"}, part, path)
			}
		}
	}
}
