package decision

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// The expressions are compiled when they are first needed: most sessions never do.

// An attempt to become somebody else, wherever in the statement it stands: inside a DO block, a string that will be
// executed, an argument of set_config. The scan only marks a record; nothing is allowed or refused because of it.
var escalation = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\bset\s+(session\s+|local\s+)?role\b|\breset\s+role\b|\bsession\s+authorization\b|` +
		`\bset_config\s*\(|\breset\s+all\b|\bdiscard\s+all\b|\bset\s+role\s*=|\balter\s+(role|user)\b|\bsecurity\s+definer\b`)
})

// What every match of it holds one of, in letters that have no other form than upper and lower case.
var telltales = []string{"role", "authorization", "et_config", "all", "alter", "definer"}

// The same where it is the statement, and not something in it.
var identitySwitch = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^\s*(set\s+(session\s+|local\s+)?(role|session\s+authorization)|` +
		`reset\s+(role|session\s+authorization|all)|discard\s+all)\b`)
})

var comments = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)/\*.*?\*/`) })

var lineComments = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`--[^\n]*`) })

// bare is the statement with a space for each comment.
func bare(sql string) string {
	return lineComments().ReplaceAllString(comments().ReplaceAllString(sql, " "), " ")
}

// Attempts reports whether a statement's text holds an attempt to change identity. Comments between the words do not
// hide it.
func Attempts(sql string) bool {
	if len(sql) > 1<<20 {
		sql = sql[:1<<20]
	}
	lower := strings.ToLower(sql)
	if !slices.ContainsFunc(telltales, func(word string) bool { return strings.Contains(lower, word) }) {
		return false
	}
	if escalation().MatchString(sql) {
		return true
	}
	if !strings.Contains(sql, "--") && !strings.Contains(sql, "/*") {
		return false
	}
	return escalation().MatchString(bare(sql))
}

// Switches reports whether a statement is an attempt to change identity, rather than one that holds such an attempt.
func Switches(sql string) bool {
	if len(sql) > 1<<20 {
		sql = sql[:1<<20]
	}
	return identitySwitch().MatchString(bare(sql))
}
