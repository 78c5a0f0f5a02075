package wire

import (
	"encoding/json"
	"strconv"
	"strings"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
)

// Names knows the tools on offer by the names they have on the wire, and makes ids for calls that came without.
//
// The protocol allows letters, digits, _ and - in a tool's name, 64 characters at most. A tool whose name is
// legal keeps it; another one gets a legal alias for as long as it is on the wire.
type Names struct {
	Tools    []agent.ToolSpec
	messages []conversation.Message
	// alias maps wire names to real ones, nil when every name is legal.
	alias map[string]string
	// Answer is a name that no tool has, for the tool whose call is a typed answer; "" when none is asked for.
	Answer string
	// made counts the ids made so far.
	made int
}

const maxToolName = 64

func NewNames(r agent.Request) *Names {
	n := &Names{Tools: r.Tools, messages: r.Messages}
	defer func() {
		if r.Output != nil {
			n.Answer = n.unused("answer")
		}
	}()
	for i := range r.Tools {
		if name := r.Tools[i].Name; !LegalName(name) {
			if n.alias == nil {
				n.alias = map[string]string{}
			}
			n.alias[n.unused(legalise(name))] = name
		}
	}
	return n
}

// unused returns the name, with a number when a tool or an alias has it already.
func (n *Names) unused(name string) string {
	try := name
	for i := 2; ; i++ {
		if _, taken := n.alias[try]; !taken && !n.Knows(try) {
			return try
		}
		suffix := "_" + strconv.Itoa(i)
		try = name[:min(len(name), maxToolName-len(suffix))] + suffix
	}
}

func LegalName(name string) bool {
	if name == "" || len(name) > maxToolName {
		return false
	}
	for i := range len(name) {
		if !LegalByte(name[i]) {
			return false
		}
	}
	return true
}

func LegalByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// legalise makes a legal name of any.
func legalise(name string) string {
	b := make([]byte, 0, min(len(name), maxToolName))
	for _, r := range name {
		if len(b) == maxToolName {
			break
		}
		if r < 0x80 && LegalByte(byte(r)) {
			b = append(b, byte(r))
		} else {
			b = append(b, '_')
		}
	}
	if strings.Trim(string(b), "_") == "" {
		return "unnamed_tool"
	}
	return string(b)
}

// Knows reports whether a tool of exactly that name is on offer.
func (n *Names) Knows(name string) bool {
	for i := range n.Tools {
		if n.Tools[i].Name == name {
			return true
		}
	}
	return false
}

// OnWire returns the name that a tool, on offer or long gone, has on the wire.
func (n *Names) OnWire(name string) string {
	if LegalName(name) {
		return name
	}
	for wire, real := range n.alias {
		if real == name {
			return wire
		}
	}
	return legalise(name)
}

// Offered returns the tool that a reply means. A name that differs only in case, in white space around it or by
// the prefix and the marks that models take from their training means the one tool it fits; any other stays as it
// is, and the loop tells the model that there is no such tool.
func (n *Names) Offered(name string) string {
	if n.Knows(name) {
		return name
	}
	if real, ok := n.alias[name]; ok {
		return real
	}
	trimmed := strings.TrimSpace(name)
	bare, _, _ := strings.Cut(strings.TrimPrefix(trimmed, "functions."), "<|")
	for _, try := range []string{trimmed, bare} {
		if real, ok := n.alias[try]; ok {
			return real
		}
		match := ""
		for i := range n.Tools {
			switch has := n.Tools[i].Name; {
			case has == try:
				return has
			case strings.EqualFold(has, try):
				if match != "" {
					return trimmed
				}
				match = has
			}
		}
		if match != "" {
			return match
		}
	}
	return trimmed
}

// AnswerTool is the tool whose call is a typed answer.
func (n *Names) AnswerTool(schema json.RawMessage) agent.ToolSpec {
	return agent.ToolSpec{Name: n.Answer, Description: "Gives the final answer. Call it when you have all that the answer needs.", Parameters: schema}
}

// FreshID makes a call id that the conversation does not have. Nine letters and digits are what every provider
// accepts.
func (n *Names) FreshID() string {
	for {
		if n.made == 0 {
			for i := range n.messages {
				n.made += len(n.messages[i].ToolCalls)
			}
		}
		n.made++
		id := "call" + Pad(n.made, 5)
		if !n.hasID(id) {
			return id
		}
	}
}

func (n *Names) hasID(id string) bool {
	for i := range n.messages {
		for j := range n.messages[i].ToolCalls {
			if n.messages[i].ToolCalls[j].ID == id {
				return true
			}
		}
	}
	return false
}

func Pad(n, width int) string {
	s := strconv.Itoa(n)
	if len(s) < width {
		s = "00000000"[:width-len(s)] + s
	}
	return s
}
