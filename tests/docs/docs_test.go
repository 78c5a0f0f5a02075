// Package docs holds the reference to the catalog: what the extension has is described, and what is described exists.
package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/tests/cluster"
	"aidb/tests/docs/refgen"
	"aidb/tests/servertest"
)

var server *servertest.Server

// Preloaded, because the settings of the background worker exist only then.
func TestMain(m *testing.M) { servertest.Main(m, cluster.Options{Preload: true}, &server) }

const root = "../.."

// reference is the text of docs/reference, all pages.
func reference(t *testing.T) string {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(root, "docs/reference/*.md"))
	require.NoError(t, err)
	require.NotEmpty(t, pages, "docs/reference has no pages")
	var all strings.Builder
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		all.Write(text)
	}
	return all.String()
}

// The pages that come from the catalog are what the generator writes now.
func TestGeneratedPages_AreUpToDate(t *testing.T) {
	if version := servertest.Value(t, server.Admin(t), "SELECT current_setting('server_version_num')::int / 10000"); version != "15" {
		t.Skip("the pages are made with PostgreSQL 15, this is " + version)
	}
	pages, err := refgen.Pages(t.Context(), server.Cluster, servertest.Database)
	require.NoError(t, err)
	for name, text := range pages {
		written, err := os.ReadFile(filepath.Join(root, "docs/reference", name))
		require.NoError(t, err)
		sameLines(t, text, string(written), "docs/reference/"+name+" is not what the catalog says: run make docs")
	}
}

// sameLines shows the first lines that differ, and not two pages.
func sameLines(t *testing.T, want, got, message string) {
	t.Helper()
	wanted, found := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(wanted), len(found)) {
		w, g := "", ""
		if i < len(wanted) {
			w = wanted[i]
		}
		if i < len(found) {
			g = found[i]
		}
		if w != g || i >= len(wanted) || i >= len(found) {
			t.Errorf("%s\nline %d is\n\t%s\nand should be\n\t%s", message, i+1, g, w)
			return
		}
	}
}

// missing lists what is in want and not in have.
func missing(want, have []string) []string {
	var list []string
	for _, w := range want {
		if !slices.Contains(have, w) {
			list = append(list, w)
		}
	}
	return list
}

func names(t *testing.T, sql string) []string {
	t.Helper()
	var list []string
	for _, row := range servertest.Rows(t, server.Admin(t), sql) {
		list = append(list, row["name"].(string))
	}
	require.NotEmpty(t, list)
	return list
}

// headings lists the entries of the reference: "### aidb.create_agent" with or without backquotes, arguments or other words.
func headings(text string) []string {
	var found []string
	for _, m := range regexp.MustCompile("(?m)^#{2,4} .*").FindAllString(text, -1) {
		for _, name := range regexp.MustCompile(`\baidb(?:_internal)?\.\w+`).FindAllString(m, -1) {
			found = append(found, name)
		}
	}
	return found
}

func TestEveryFunction_HasAnEntry(t *testing.T) {
	functions := names(t, `SELECT DISTINCT 'aidb.' || p.proname AS name FROM pg_proc p WHERE p.pronamespace = 'aidb'::regnamespace ORDER BY 1`)
	require.Empty(t, missing(functions, headings(reference(t))), "functions without a heading in docs/reference")
}

// Name and default of a setting are in one row of settings.md; a setting that is not there any more is not described.
func TestEverySetting_HasAnEntryWithItsDefault(t *testing.T) {
	admin := server.Admin(t)
	servertest.Exec(t, admin, "LOAD 'aidb'")
	text, err := os.ReadFile(filepath.Join(root, "docs/reference/settings.md"))
	require.NoError(t, err)
	described := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(aidb\\.\\w+)` \\| ([^|]*) \\|").FindAllStringSubmatch(string(text), -1) {
		described[m[1]] = m[2]
	}
	settings := servertest.Rows(t, admin, `SELECT name, coalesce(boot_val, '') AS def, coalesce(unit, '') AS unit FROM pg_settings WHERE name LIKE 'aidb.%'`)
	require.Len(t, described, len(settings), "settings.md has a row for what does not exist")
	for _, row := range settings {
		name := row["name"].(string)
		want := "(empty)"
		if row["def"] != "" {
			want = strings.TrimSpace("`" + row["def"].(string) + "` " + row["unit"].(string))
		}
		require.Equal(t, want, described[name], "settings.md: the default of %s", name)
	}
}

func TestEveryView_HasAnEntry(t *testing.T) {
	views := names(t, `SELECT 'aidb.' || c.relname AS name FROM pg_class c WHERE c.relnamespace = 'aidb'::regnamespace AND c.relkind IN ('v', 'r', 'm') ORDER BY 1`)
	require.Empty(t, missing(views, headings(reference(t))), "views without a heading in docs/reference")
}

// An entry for something that is not there is worse than none.
func TestEveryEntry_Exists(t *testing.T) {
	existing := names(t, `SELECT n.nspname || '.' || p.proname AS name FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname IN ('aidb', 'aidb_internal')
		UNION SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname IN ('aidb', 'aidb_internal')
		UNION SELECT n.nspname || '.' || t.typname FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace WHERE n.nspname IN ('aidb', 'aidb_internal')`)
	admin := server.Admin(t)
	servertest.Exec(t, admin, "LOAD 'aidb'")
	for _, row := range servertest.Rows(t, admin, `SELECT name FROM pg_settings WHERE name LIKE 'aidb.%'`) {
		existing = append(existing, row["name"].(string))
	}
	for _, entry := range headings(reference(t)) {
		require.True(t, slices.Contains(existing, entry), "docs/reference describes %s, which does not exist", entry)
	}
}

// Every function of the API says in the catalog what it does, for \df+ and for those who have no browser at hand.
func TestEveryObject_HasAComment(t *testing.T) {
	for _, row := range servertest.Rows(t, server.Admin(t), `
		SELECT p.oid::regprocedure::text AS name, obj_description(p.oid, 'pg_proc') IS NOT NULL AS described FROM pg_proc p WHERE p.pronamespace = 'aidb'::regnamespace
		UNION ALL
		SELECT c.oid::regclass::text, obj_description(c.oid, 'pg_class') IS NOT NULL FROM pg_class c
		WHERE c.relnamespace IN ('aidb'::regnamespace, 'aidb_internal'::regnamespace) AND c.relkind IN ('r', 'v')`) {
		require.Equal(t, true, row["described"], "%s has no comment", row["name"])
	}
}
