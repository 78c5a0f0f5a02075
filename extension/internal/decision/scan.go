package decision

import (
	"regexp"
	"strings"
)

// An attempt to become somebody else, wherever in the statement it stands: inside a DO block, a string that will be
// executed, an argument of set_config. The scan only marks a record; nothing is allowed or refused because of it.
var escalation = regexp.MustCompile(`(?i)\bset\s+(session\s+|local\s+)?role\b|\breset\s+role\b|\bsession\s+authorization\b|` +
	`\bset_config\s*\(|\breset\s+all\b|\bdiscard\s+all\b|\bset\s+role\s*=|\balter\s+(role|user)\b|\bsecurity\s+definer\b`)

// The same where it is the statement, and not something in it.
var identitySwitch = regexp.MustCompile(`(?i)^\s*(set\s+(session\s+|local\s+)?(role|session\s+authorization)|` +
	`reset\s+(role|session\s+authorization|all)|discard\s+all)\b`)

var (
	blockComment = regexp.MustCompile(`(?s)/\*.*?\*/`)
	lineComment  = regexp.MustCompile(`--[^\n]*`)
)

// Attempts reports whether a statement's text holds an attempt to change identity. Comments between the words do not
// hide it.
func Attempts(sql string) bool {
	if len(sql) > 1<<20 {
		sql = sql[:1<<20]
	}
	if escalation.MatchString(sql) {
		return true
	}
	if !strings.Contains(sql, "--") && !strings.Contains(sql, "/*") {
		return false
	}
	bare := lineComment.ReplaceAllString(blockComment.ReplaceAllString(sql, " "), " ")
	return escalation.MatchString(bare)
}

// Switches reports whether a statement is an attempt to change identity, rather than one that holds such an attempt.
func Switches(sql string) bool {
	if len(sql) > 1<<20 {
		sql = sql[:1<<20]
	}
	return identitySwitch.MatchString(lineComment.ReplaceAllString(blockComment.ReplaceAllString(sql, " "), " "))
}
