package agent

// Debug lines: what agent_converse(debug => true) shows of each step as a NOTICE. The shapes are documented and
// read by people and by tests; payloads come without secrets, and are cut.

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
)

const (
	// maxDebug bounds a payload in a debug line, in characters.
	maxDebug = 2000
	// debugMark follows a payload that was cut.
	debugMark = "… (truncated)"
	// maxDebugName bounds a tool's name in a debug line, in bytes.
	maxDebugName = 200
)

// line is the debug line of a step, "" without Debug.
func (s *State) line(t conversation.ActionType, text string) string {
	if !s.cfg.Debug {
		return ""
	}
	return debugLine(t, text)
}

func debugLine(t conversation.ActionType, text string) string {
	return "[" + string(t) + "] " + cut(text)
}

func toolCallLine(c conversation.ToolCall) string {
	arguments := strings.TrimSpace(c.Arguments)
	if arguments == "" {
		arguments = "{}"
	}
	return "[tool_call] " + fault.Cut(c.Name, maxDebugName) + "(" + cut(spaced(arguments)) + ")"
}

func toolResponseLine(name, text string) string {
	return "[tool_response] " + fault.Cut(name, maxDebugName) + " -> " + cut(spaced(text))
}

// cut returns at most maxDebug characters of the text, with a mark when something was cut.
func cut(s string) string {
	if len(s) <= maxDebug {
		return s
	}
	n := 0
	for i := range s {
		if n++; n > maxDebug {
			return s[:i] + debugMark
		}
	}
	return s
}

// spaced writes a JSON object or array as PostgreSQL writes jsonb, with a space after each comma and colon, and leaves
// every other text as it is. Only what can be shown is worked on.
func spaced(s string) string {
	if s == "" || (s[0] != '{' && s[0] != '[') || !json.Valid([]byte(s)) {
		return s
	}
	var b strings.Builder
	b.Grow(min(len(s)+len(s)/8, maxDebug*utf8.UTFMax+64))
	inString := false
	for i := 0; i < len(s) && b.Len() <= maxDebug*utf8.UTFMax; i++ {
		c := s[i]
		if inString {
			b.WriteByte(c)
			switch c {
			case '\\':
				i++
				b.WriteByte(s[i])
			case '"':
				inString = false
			}
			continue
		}
		switch c {
		case ' ', '\n', '\r', '\t':
			continue
		case '"':
			inString = true
		}
		b.WriteByte(c)
		if c == ',' || c == ':' {
			b.WriteByte(' ')
		}
	}
	return b.String()
}
