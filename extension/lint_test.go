package main_test

// What a library inside a database server must not do, whatever else it does. The rules are checked on the syntax
// tree, so a mention in a comment or a text is none.

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// goroutines is the one folder with a go statement: its wrapper recovers, and gives each goroutine an owner.
const goroutines = "internal/safego/"

// maxLines is the length at which a file has become two: about 400 lines.
const maxLines = 450

// forbidden calls, by package and name; "*" forbids every name that begins with what stands before it.
var forbidden = []struct{ path, name, why string }{
	{"os", "Exit", "ends the backend process"},
	{"log", "Fatal*", "ends the backend process"},
	{"log", "Panic*", "panics"},
	{"os/signal", "*", "takes signals away from the server"},
	{"syscall", "Kill", "signals are the server's"},
	{"syscall", "Exit", "ends the backend process"},
	{"syscall", "Setenv", "the environment is the server's"},
	{"os", "Setenv", "the environment is the server's, and changing it is not safe beside C"},
	{"os", "Unsetenv", "the environment is the server's, and changing it is not safe beside C"},
	{"os", "Chdir", "the working directory is the server's"},
	{"runtime", "Goexit", "ends a goroutine whose owner waits for it"},
}

type source struct {
	name  string // with slashes, from this folder
	file  *ast.File
	fset  *token.FileSet
	lines int
	test  bool
}

func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		all = append(all, source{name: filepath.ToSlash(path), file: file, fset: fset,
			lines: fset.File(file.FileStart).LineCount(), test: strings.HasSuffix(path, "_test.go")})
		return nil
	})
	require.NoError(t, err)
	require.NotEmpty(t, all)
	return all
}

// violations are what a file does that it must not.
func violations(s source) []string {
	var found []string
	report := func(n ast.Node, format string, args ...any) {
		found = append(found, fmt.Sprintf("%s: %s", s.fset.Position(n.Pos()), fmt.Sprintf(format, args...)))
	}
	imports := map[string]string{} // local name → path
	for _, i := range s.file.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			continue
		}
		name := path[strings.LastIndexByte(path, '/')+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		imports[name] = path
		if name == "." {
			report(i, "dot import")
		}
		if path == "C" && strings.Contains(s.name, "/") {
			report(i, "import \"C\" outside the bridge")
		}
		if path == "unsafe" && strings.HasPrefix(s.name, "internal/") {
			report(i, "import \"unsafe\" outside the bridge")
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			if !strings.HasPrefix(s.name, goroutines) {
				report(n, "bare go statement: use safego.Go")
			}
		case *ast.CallExpr:
			if id, ok := n.Fun.(*ast.Ident); ok && id.Name == "panic" {
				report(n, "panic: return an error")
			}
		case *ast.SelectorExpr:
			id, ok := n.X.(*ast.Ident)
			if !ok {
				return true
			}
			for _, f := range forbidden {
				prefix, wild := strings.CutSuffix(f.name, "*")
				if imports[id.Name] == f.path && (n.Sel.Name == f.name || (wild && strings.HasPrefix(n.Sel.Name, prefix))) {
					report(n, "%s.%s: %s", id.Name, n.Sel.Name, f.why)
				}
			}
		case *ast.FuncDecl:
			if n.Name.Name == "init" && n.Recv == nil && strings.HasPrefix(s.name, "internal/") {
				report(n, "init: every backend would pay for it when the library is loaded")
			}
		}
		return true
	})
	return found
}

func TestLint_NothingThatHarmsTheServer(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for _, v := range violations(s) {
			t.Error(v)
		}
	}
}

func TestLint_FilesAreShort(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.lines > maxLines && !s.test {
			t.Errorf("%s has %d lines, the limit is %d", s.name, s.lines, maxLines)
		}
	}
}

// A rule that finds nothing might be one that cannot find anything.
func TestLint_FindsWhatItLooksFor(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"package p; func f() { go f() }":                                                    "bare go statement",
		"package p; func f() { panic(1) }":                                                  "panic",
		"package p; import \"os\"; func f() { os.Exit(1) }":                                 "os.Exit",
		"package p; import quit \"os\"; func f() { x := quit.Exit; x(1) }":                  "quit.Exit",
		"package p; import \"log\"; func f() { log.Fatalf(\"x\") }":                         "log.Fatalf",
		"package p; import \"os/signal\"; func f() { signal.Notify(nil) }":                  "signal.Notify",
		"package p; import \"os\"; func f() { os.Setenv(\"a\", \"b\") }":                    "os.Setenv",
		"package p; import . \"os\"; func f() { Exit(1) }":                                  "dot import",
		"package p; import \"C\"":                                                           "outside the bridge",
		"package p; func init() {}":                                                         "init",
		"package p; type t struct{}; func (t) init() {}; func f() string { return \"go\" }": "",
		"package p; // panic(1), os.Exit(1)":                                                "",
	}
	for text, want := range cases {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, "x.go", text, parser.SkipObjectResolution)
		require.NoError(t, err, text)
		found := violations(source{name: "internal/p/x.go", file: file, fset: fset})
		if want == "" {
			require.Empty(t, found, text)
			continue
		}
		require.Len(t, found, 1, text)
		require.Contains(t, found[0], want)
	}
}
