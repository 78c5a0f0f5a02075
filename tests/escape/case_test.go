package escape

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A case is a file of plain SQL with marker lines, "-- word: value" at the beginning of a line. Markers of one line say
// what kind of case it is:
//
//	class       what is attacked; must be one of classes
//	caller      superuser, owner (keeper) or member (clerk): who calls the agent
//	mode        role (execute_sql) or readonly (run_sql_query)
//	must        what has to be so, in words
//	txn         block: before, attack and after are one transaction, then COMMIT; auto (default): each on its own
//	savepoint   off: in a block, no savepoint of the caller around each attack
//	agent       bare: one without a purpose, whose tools run as the caller (readonly only)
//	needs       extensions; the case is skipped where one cannot be installed
//	limit       seconds that the caller's whole session may take (60)
//	fingerprint off: the session is meant to change
//	digest      off: the caller itself writes, in a readonly case
//	log         bytes that the server's log may grow by
//	time        aidb.tool_timeout of the case
//
// The others begin a block, which ends at the next marker. Each may come several times:
//
//	setup   by the superuser, in a session of its own, before all else
//	before  by the caller
//	attack  the statement of one tool call
//	attacks one tool call for each line
//	after   by the caller, in the same session and transaction
//	next    by the caller, in the same session after COMMIT
//	check   by the superuser at the end: a query whose one value must be true. judge.* tells what was seen
//
// Besides its own check a case must leave the caller's session as it was before the first attack, and the database too
// when it is a readonly one (what aidb writes down for itself aside).
type escapeCase struct {
	name   string
	header map[string]string
	blocks []block
}

type block struct{ kind, text string }

var (
	headers  = []string{"class", "caller", "mode", "must", "txn", "savepoint", "agent", "needs", "limit", "fingerprint", "digest", "log", "time"}
	blocks   = []string{"setup", "before", "attack", "attacks", "after", "next", "check"}
	required = []string{"class", "caller", "mode", "must"}
	classes  = []string{
		"role-escape", "privilege", "guc", "prepared", "cursor", "deferred", "temp", "plant", "files", "fdw", "txn", "lock",
		"notify", "leak", "lo", "render", "resource", "ro-statement", "ro-function", "ro-parse", "ro-toggle", "accepted",
		"nested", "internal", "text",
	}
	marker = regexp.MustCompile(`^-- (` + strings.Join(append(slices.Clone(headers), blocks...), "|") + `):\s*(.*)$`)
)

func (c *escapeCase) of(kind string) []string {
	var texts []string
	for _, b := range c.blocks {
		if b.kind == kind {
			texts = append(texts, b.text)
		}
	}
	return texts
}

// attacks are the tool calls, in the order of the file.
func (c *escapeCase) attacks() []string {
	var calls []string
	for _, b := range c.blocks {
		switch b.kind {
		case "attack":
			calls = append(calls, b.text)
		case "attacks":
			for line := range strings.SplitSeq(b.text, "\n") {
				if strings.TrimSpace(line) != "" {
					calls = append(calls, line)
				}
			}
		}
	}
	return calls
}

func (c *escapeCase) seconds(t *testing.T) time.Duration {
	if c.header["limit"] == "" {
		return time.Minute
	}
	limit, err := time.ParseDuration(c.header["limit"] + "s")
	require.NoError(t, err)
	return limit
}

func parseCase(t *testing.T, file string) *escapeCase {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	c := &escapeCase{name: strings.TrimSuffix(filepath.Base(file), ".sql"), header: map[string]string{}}
	for line := range strings.SplitSeq(string(text), "\n") {
		switch m := marker.FindStringSubmatch(line); {
		case m != nil && slices.Contains(headers, m[1]):
			require.NotContains(t, c.header, m[1], "%s says %s twice", file, m[1])
			c.header[m[1]] = m[2]
		case m != nil:
			c.blocks = append(c.blocks, block{m[1], m[2]})
		case len(c.blocks) > 0:
			c.blocks[len(c.blocks)-1].text += "\n" + line
		default:
			require.Empty(t, strings.TrimSpace(line), "%s: a line before the first block", file)
		}
	}
	for i := range c.blocks {
		c.blocks[i].text = strings.Trim(c.blocks[i].text, "\n")
	}
	for _, h := range required {
		require.NotEmpty(t, c.header[h], "%s does not say its %s", file, h)
	}
	require.Contains(t, classes, c.header["class"], file)
	require.Contains(t, []string{"superuser", "owner", "member"}, c.header["caller"], file)
	require.Contains(t, []string{"role", "readonly"}, c.header["mode"], file)
	require.NotEmpty(t, c.of("check"), "%s checks nothing", file)
	return c
}

func allCases(t *testing.T) []*escapeCase {
	files, err := filepath.Glob("cases/*.sql")
	require.NoError(t, err)
	cases := make([]*escapeCase, len(files))
	for i, file := range files {
		cases[i] = parseCase(t, file)
	}
	return cases
}

// Every class has cases, and every kind of caller meets both modes.
func TestCases_CoverTheClasses(t *testing.T) {
	cases := allCases(t)
	require.GreaterOrEqual(t, len(cases), 80)
	seen, met := map[string]int{}, map[string]int{}
	for _, c := range cases {
		seen[c.header["class"]]++
		met[c.header["caller"]+" "+c.header["mode"]]++
	}
	for _, class := range classes {
		require.Positive(t, seen[class], "no case of class %s", class)
	}
	require.Len(t, met, 6)
}
