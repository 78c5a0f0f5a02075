package fault

import (
	"strings"
	"unicode/utf8"
)

// maxName bounds a name inside an error text: names are arguments, and an argument may be a megabyte long.
const maxName = 200

// Name quotes an object's name for an error text. Long names are cut, with a mark.
func Name(s string) string { return "'" + Cut(s, maxName) + "'" }

// Cut returns at most max bytes of s, cut between characters, with a mark when something was cut.
func Cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return strings.ToValidUTF8(s[:max], "\uFFFD") + "…"
}
