package tool

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/tests/servertest"
)

// What a fuzzed statement is made of. A piece with a hole gets a name there; in a placeholder it is one, in all the others it is
// a part of a literal, a quoted identifier or a comment.
var pieces = []struct {
	text        string
	placeholder bool
}{
	{"${%s}", true}, {"(${%s})", true}, {"-${%s}", true}, {"${%s}::text", true}, {"${%s}x", true}, {"${%s}9", true}, {"${%s}$t$ $t$", true},
	{"'${%s}'", false}, {"'it''s ${%s}'", false}, {`E'\'${%s}\\'`, false}, {`e'\\\'${%s}'`, false}, {"B'1' '${%s}'", false}, {`U&'\0027${%s}'`, false},
	{`"${%s}"`, false}, {`"a""${%s}"`, false}, {`U&"\0022${%s}"`, false},
	{"$$${%s}$$", false}, {"$a$ $b$${%s}$b$ $a$", false}, {"$é$'${%s}$é$", false}, {"N'${%s}'", false},
	{"-- ${%s} '\n", false}, {"/* ${%s} */", false}, {"/* /* ' */ ${%s} */", false}, {"'a'\n  '${%s}'", false},
	{"SELECT", false}, {"a", false}, {"a$b", false}, {"1.5e3", false}, {"->>", false}, {"||", false}, {",", false}, {"é", false}, {"$", false}, {"{", false}, {"}", false}, {"{a}", false},
}

var placeholderNames = []string{"x", "y1", "_z", "Long_Name9", "SELECT"}

// FuzzPlaceholders builds statements of which it is known where the placeholders are, and compares.
func FuzzPlaceholders(f *testing.F) {
	f.Add([]byte{0, 0, 7, 1, 20, 2, 0, 3})
	f.Add([]byte{16, 1, 0, 1, 17, 2, 1, 0, 6, 0})
	f.Add([]byte{4, 0, 5, 1, 3, 2, 22, 3, 0, 4, 0, 0})
	f.Add([]byte{24, 0, 25, 0, 0, 0, 29, 0, 13, 1, 30, 0, 33, 0, 34, 0, 0, 1})
	every := make([]byte, 0, 2*len(pieces))
	for i := range pieces {
		every = append(every, byte(i), byte(i))
	}
	f.Add(every)
	conn := server.Admin(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		var source, want strings.Builder
		var names, ignored []string
		for i := 0; i+1 < min(len(data), 400); i += 2 {
			piece, name := pieces[int(data[i])%len(pieces)], placeholderNames[int(data[i+1])%len(placeholderNames)]
			before, after, hole := strings.Cut(piece.text, "${%s}")
			separator := " "
			if strings.HasPrefix(piece.text, "-- ") {
				separator = "\n" // an operator before it would swallow it
			}
			source.WriteString(before)
			want.WriteString(before)
			if hole {
				source.WriteString("${" + name + "}" + after + separator)
				if piece.placeholder {
					if !slices.Contains(names, name) {
						names = append(names, name)
					}
					fmt.Fprintf(&want, "$%d", slices.Index(names, name)+1)
					if after != "" && strings.ContainsAny(after[:1], "x9$") {
						want.WriteByte(' ')
					}
				} else {
					ignored = append(ignored, name)
					want.WriteString("${" + name + "}")
				}
			} else {
				source.WriteString(separator)
			}
			want.WriteString(after + separator)
		}
		var trimmed, statement string
		var found []string
		var passed *string
		err := conn.QueryRow(context.Background(), "SELECT * FROM aidb_internal.placeholders($1)", source.String()).Scan(&trimmed, &statement, &found, &passed)
		require.NoError(t, err, source.String())
		require.Equal(t, strings.TrimRight(source.String(), " \n"), trimmed)
		require.Equal(t, strings.TrimRight(want.String(), " \n"), statement, source.String())
		require.Equal(t, append([]string{}, names...), found, source.String())
		if passed == nil {
			passed = new(string)
		}
		require.Equal(t, strings.Join(ignored, ", "), *passed, source.String())
	})
}

// FuzzArguments gives one tool whatever an argument can be: it comes back as it is, or it is refused; never anything else.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{"plain", "it's", `a\b"c`, "'); DROP TABLE x; --", "${x} $1 %s", "{1,2}", "NULL", "", "\u0000", "é\u2028𝄞", strings.Repeat("x", 10000)} {
		f.Add(s)
	}
	conn := server.Admin(f)
	servertest.Exec(f, conn, `SELECT aidb.create_sql_tool('echoed', 'A test.', 'SELECT ${x} AS a, ${l} AS l', aidb.tool_params(aidb.tool_param('x', 'text', 'x'), aidb.tool_param('l', 'text[]', 'x')))`)
	f.Fuzz(func(t *testing.T, value string) {
		if !strings.HasPrefix(strings.ToValidUTF8(value, ""), value) || strings.ContainsRune(value, 0) || len(value) > 50_000 {
			return // jsonb itself refuses it
		}
		var same bool
		err := conn.QueryRow(context.Background(), `SELECT r -> 0 ->> 'a' = $1 AND r -> 0 -> 'l' ->> 1 = $1 AND jsonb_array_length(r -> 0 -> 'l') = 2
			FROM aidb.run_tool('echoed', jsonb_build_object('x', $1::text, 'l', jsonb_build_array('first', $1::text))) r`, value).Scan(&same)
		require.NoError(t, err, "%q", value)
		require.True(t, same, "%q", value)
	})
}
