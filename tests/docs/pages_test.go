package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/tests/docs/refgen"
	"aidb/tests/servertest"
)

// A page that shows SQL and what came of it is run, from top to bottom, in one session of psql as `make cluster` gives it:
// a superuser in a database with the extension. A block of SQL may be followed by a block of text, its output; when there
// is more after the word text ("```text (last statement)"), it is only the end of the output.
func TestPages_ShowWhatComes(t *testing.T) {
	for _, page := range []string{"README.md", "docs/tutorial.md", "docs/reference/actions.md", "docs/examples/five-people.md"} {
		t.Run(page, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(root, page))
			require.NoError(t, err)
			blocks := sqlBlocks(string(text))
			require.NotEmpty(t, blocks)
			database := "page_" + regexp.MustCompile(`\W`).ReplaceAllString(strings.ToLower(page), "_")
			admin := server.Admin(t)
			servertest.Exec(t, admin, "CREATE DATABASE "+database)
			require.NoError(t, server.Exec(t.Context(), database, "CREATE EXTENSION aidb"))

			scripts := make([]string, len(blocks))
			for i, b := range blocks {
				scripts[i] = b.sql
			}
			outputs, err := refgen.Psql(t.Context(), server.Cluster, "postgres", database, scripts)
			require.NoError(t, err)
			for i, b := range blocks {
				switch {
				case b.output == "":
					require.NotContains(t, outputs[i], "ERROR:", "the block fails:\n%s", b.sql)
				case b.tail:
					require.True(t, strings.HasSuffix(outputs[i], b.output), "the block\n%s\nends in\n%s\nand not in\n%s", b.sql, outputs[i], b.output)
				default:
					sameLines(t, outputs[i], b.output, page+" does not show what comes of\n"+b.sql)
				}
			}
		})
	}
}

type block struct {
	sql, output string
	tail        bool // output is the end of what is printed
}

var fenced = regexp.MustCompile("(?ms)^```(\\w*)([^\n]*)\n(.*?)^```$")

// sqlBlocks finds the blocks of a page. A block in any other language, which needs a network or a shell, is not run.
func sqlBlocks(page string) []block {
	var blocks []block
	marks := fenced.FindAllStringSubmatchIndex(page, -1)
	for i, m := range marks {
		if page[m[2]:m[3]] != "sql" {
			continue
		}
		b := block{sql: page[m[6]:m[7]]}
		if i+1 < len(marks) {
			next := marks[i+1]
			if page[next[2]:next[3]] == "text" && strings.TrimSpace(page[m[1]:next[0]]) == "" {
				b.output, b.tail = refgen.Alike(page[next[6]:next[7]]), page[next[4]:next[5]] != ""
			}
		}
		blocks = append(blocks, b)
	}
	return blocks
}

// The README's first screen ends with the block that was pasted, and the whole of it stays short.
func TestReadme_IsShort(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	require.LessOrEqual(t, strings.Count(string(text), "\n"), 200)
	_, rest, found := strings.Cut(string(text), "(1 row)\n```\n")
	require.True(t, found)
	require.LessOrEqual(t, strings.Count(string(text), "\n")-strings.Count(rest, "\n"), 40, "lines of the first screen")
}

// Links between the pages lead somewhere.
func TestLinks_LeadSomewhere(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "docs/*.md"))
	require.NoError(t, err)
	for _, pattern := range []string{"docs/*/*.md", "*.md"} {
		more, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		pages = append(pages, more...)
	}
	link := regexp.MustCompile(`\]\(([^)#\s]+)(#[^)\s]*)?\)`)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(m[1], "://") {
				_, err := os.Stat(filepath.Join(filepath.Dir(page), m[1]))
				require.NoError(t, err, "%s links to %s", page, m[1])
			}
		}
	}
}
