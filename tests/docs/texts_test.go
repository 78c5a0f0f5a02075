package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The error texts of the tree, as far as users can meet them: fault.New and fault.Wrap in Go, errmsg in C, RAISE and the
// error column's texts in SQL. Defects (fault.Internal, elog, errmsg_internal) are not for the reference.

// sourceText is one error text and where it is made.
type sourceText struct{ where, text string }

func goTexts(t *testing.T) []sourceText {
	t.Helper()
	var found []sourceText
	files := token.NewFileSet()
	walk(t, "extension", ".go", func(path, _ string) {
		if strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/testkit/") || strings.HasSuffix(path, "test_hooks.go") {
			return
		}
		file, err := parser.ParseFile(files, filepath.Join(root, path), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if text, ok := faultText(call); ok {
				found = append(found, sourceText{path + ":" + strconv.Itoa(files.Position(call.Pos()).Line), text})
			}
			return true
		})
	})
	return found
}

// faultText returns the text of fault.New(kind, "text", …) and fault.Wrap(err, kind, "text", …).
func faultText(call *ast.CallExpr) (string, bool) {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", false
	}
	at := map[string]int{"New": 0, "Wrap": 1}
	pkg, ok := sel.X.(*ast.Ident)
	first, known := at[sel.Sel.Name]
	if !ok || pkg.Name != "fault" || !known || len(call.Args) < first+2 {
		return "", false
	}
	if kind, ok := call.Args[first].(*ast.SelectorExpr); ok && kind.Sel.Name == "Internal" {
		return "", false
	}
	text, ok := constant(call.Args[first+1])
	return text, ok && text != "%s"
}

// constant is the value of a string literal, or of several added up; what is not a literal counts as a blank.
func constant(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		return s, err == nil
	case *ast.BinaryExpr:
		x, okX := constant(e.X)
		y, okY := constant(e.Y)
		if !okY {
			y = "%s"
		}
		return x + y, okX
	}
	return "", false
}

var (
	cMessage  = regexp.MustCompile(`errmsg\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)`)
	cLiteral  = regexp.MustCompile(`"((?:[^"\\]|\\.)*)"`)
	sqlRaise  = regexp.MustCompile(`(?s)RAISE (?:EXCEPTION|WARNING|NOTICE) '((?:[^']|'')*)'`)
	sqlFormat = regexp.MustCompile(`(?s)(?:RETURN|error :=|problem :=)\s+format\(\s*'((?:[^']|'')*)'`)
	sqlPlain  = regexp.MustCompile(`(?:RETURN|error :=|problem :=)\s+'([A-Za-z](?:[^']|'')*?)'( \|\|)?`)
	sqlConcat = regexp.MustCompile(`THEN 'Invalid parameters: ' \|\| \$1 \|\| '([^']*)'`)
)

func cTexts(t *testing.T) []sourceText {
	t.Helper()
	var found []sourceText
	for _, folder := range []string{"c_shim", "worker"} {
		walk(t, folder, ".c", func(path, text string) {
			for _, m := range cMessage.FindAllStringSubmatch(text, -1) {
				var s strings.Builder
				for _, part := range cLiteral.FindAllStringSubmatch(m[1], -1) {
					s.WriteString(strings.ReplaceAll(part[1], `\"`, `"`))
				}
				found = append(found, sourceText{path, s.String()})
			}
		})
	}
	return found
}

func sqlTexts(t *testing.T) []sourceText {
	t.Helper()
	var found []sourceText
	walk(t, "sql", ".sql", func(path, text string) {
		for _, m := range sqlRaise.FindAllStringSubmatch(text, -1) {
			found = append(found, sourceText{path, m[1]})
		}
		for _, m := range sqlFormat.FindAllStringSubmatch(text, -1) {
			found = append(found, sourceText{path, m[1]})
		}
		for _, m := range sqlConcat.FindAllStringSubmatch(text, -1) {
			found = append(found, sourceText{path, "Invalid parameters: %" + m[1]})
		}
		for _, m := range sqlPlain.FindAllStringSubmatch(text, -1) {
			if m[2] == "" && strings.Contains(m[1], " ") {
				found = append(found, sourceText{path, m[1]})
			}
		}
	})
	return found
}

// walk reads the files of a folder of the tree that have the extension.
func walk(t *testing.T, folder, extension string, use func(path, text string)) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != extension {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		use(rel, string(text))
		return err
	}))
}

var (
	placeholder = regexp.MustCompile(`%(?:\d+\$)?[-+#0-9.]*l*[svdqtTfgxu]|%|<[^<>]*>|…`)
	quotedBlank = regexp.MustCompile(`["'\\]*\*["'\\]*`)
	blanks      = regexp.MustCompile(`(?:\*[ ]?)+`)
)

// alike brings a text of the sources and a text of the reference, where a placeholder is <name>, into one form.
func alike(s string) string {
	s = strings.ReplaceAll(s, "''", "'")
	s = placeholder.ReplaceAllString(s, "*")
	s = quotedBlank.ReplaceAllString(s, "*")
	s = blanks.ReplaceAllString(s, "*")
	return strings.TrimSpace(s)
}

var code = regexp.MustCompile("`([^`]+)`")

// TestEveryErrorText_IsInTheReference: whoever meets an error finds it in errors.md.
func TestEveryErrorText_IsInTheReference(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/reference/errors.md"))
	require.NoError(t, err)
	listed := map[string]bool{}
	for _, m := range code.FindAllStringSubmatch(string(text), -1) {
		listed[alike(strings.ReplaceAll(m[1], `\|`, "|"))] = true
	}
	all := append(append(goTexts(t), cTexts(t)...), sqlTexts(t)...)
	require.Greater(t, len(all), 150, "the texts are not found any more")
	seen := map[string]bool{}
	var missing []string
	for _, s := range all {
		key := alike(s.text)
		if !listed[key] && !seen[key] && strings.Trim(key, "*:; ") != "" {
			missing = append(missing, s.where+": "+s.text)
		}
		seen[key] = true
	}
	require.Empty(t, missing, "texts that docs/reference/errors.md does not list (placeholders are written <name> there)")
}
