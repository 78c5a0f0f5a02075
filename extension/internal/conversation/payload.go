package conversation

// The layout of the action log's payloads, one function for each. They are written by hand and not by reflection:
// a run writes about ten of them, and their cost is a visible part of a short run's.

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// UserPromptPayload is the request payload of a user_prompt.
func UserPromptPayload(contents, user string) json.RawMessage {
	b := make([]byte, 0, len(contents)+len(user)+32)
	b = appendString(append(b, `{"contents":`...), contents)
	b = appendString(append(b, `,"user":`...), user)
	return append(b, '}')
}

// Noted is a user_prompt payload with what the system told the model along with the prompt; "" is nothing.
func Noted(request json.RawMessage, note string) json.RawMessage {
	if note == "" {
		return request
	}
	b := append(request[:len(request)-1:len(request)-1], `,"note":`...)
	return append(appendString(b, note), '}')
}

// WithNote is a prompt as the model sees it.
func WithNote(contents, note string) string {
	if note == "" {
		return contents
	}
	return contents + "\n\n" + note
}

// ModelRequestPayload is the request payload of a model_request. It says how much was sent, not what: the prompt
// is the log itself, and a copy of it with every round would make the log grow with the square of the rounds.
func ModelRequestPayload(model string, round, messages int, tools []string) json.RawMessage {
	b := make([]byte, 0, 96)
	b = appendString(append(b, `{"model":`...), model)
	b = strconv.AppendInt(append(b, `,"round":`...), int64(round), 10)
	b = strconv.AppendInt(append(b, `,"messages":`...), int64(messages), 10)
	b = append(b, `,"tools":[`...)
	for i, t := range tools {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, t)
	}
	return append(b, "]}"...)
}

// ModelResponsePayload is the response payload of a model_response. An empty text is null, an unknown count too.
func ModelResponsePayload(contents string, calls []ToolCall, finish, model string, u Usage) json.RawMessage {
	n := len(contents) + 192
	for i := range calls {
		n += len(calls[i].Arguments) + len(calls[i].Name) + 96
	}
	b := append(make([]byte, 0, n), `{"contents":`...)
	if contents == "" {
		b = append(b, "null"...)
	} else {
		b = appendString(b, contents)
	}
	b = append(b, `,"tool_calls":[`...)
	for i := range calls {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"id":`...), calls[i].ID)
		b = appendString(append(b, `,"name":`...), calls[i].Name)
		b = appendString(append(b, `,"arguments":`...), calls[i].Arguments)
		b = append(b, '}')
	}
	b = appendString(append(b, `],"finish_reason":`...), finish)
	b = appendString(append(b, `,"model":`...), model)
	return append(appendUsage(b, u), '}')
}

func appendUsage(b []byte, u Usage) []byte {
	b = appendCount(append(b, `,"usage":{"input":`...), u.Input)
	b = appendCount(append(b, `,"output":`...), u.Output)
	b = appendCount(append(b, `,"cached":`...), u.Cached)
	b = appendCount(append(b, `,"reasoning":`...), u.Reasoning)
	return append(b, '}')
}

// Rejected is a model_response payload with the reason why the loop did not accept the reply. Such a reply is no part of
// the history: see Rebuild.
func Rejected(response json.RawMessage, why string) json.RawMessage {
	b := append(response[:len(response)-1:len(response)-1], `,"rejected":`...)
	return append(appendString(b, why), '}')
}

// Retry is a model request that failed and was sent again after Wait.
type Retry struct {
	Error string
	Wait  time.Duration
}

// maxRetries bounds how many retries of one reply are told of.
const maxRetries = 20

// Retried is a model_response payload with the failures that came before the reply.
func Retried(response json.RawMessage, retries []Retry) json.RawMessage {
	if len(retries) == 0 {
		return response
	}
	b := append(response[:len(response)-1:len(response)-1], `,"retries":[`...)
	for i, r := range retries[:min(len(retries), maxRetries)] {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"error":`...), r.Error)
		b = strconv.AppendInt(append(b, `,"wait_ms":`...), r.Wait.Milliseconds(), 10)
		b = append(b, '}')
	}
	return append(b, "]}"...)
}

// ToolCallPayload is the request payload of a tool_call. No arguments are an empty object. Arguments that jsonb would
// refuse, or that are not an object, stand there as a string.
func ToolCallPayload(c ToolCall) json.RawMessage {
	arguments := CleanJSON(c.Arguments)
	b := make([]byte, 0, len(arguments)+len(c.Name)+len(c.ID)+64)
	b = appendString(append(b, `{"tool_name":`...), c.Name)
	b = append(b, `,"arguments":`...)
	switch {
	case storable(arguments):
		b = append(b, arguments...)
	case strings.TrimSpace(arguments) == "":
		b = append(b, "{}"...)
	default:
		b = appendString(b, arguments)
	}
	b = appendString(append(b, `,"tool_call_id":`...), c.ID)
	return append(b, '}')
}

// ToolResponsePayload is the request payload of a tool_response.
func ToolResponsePayload(c ToolCall) json.RawMessage {
	b := make([]byte, 0, len(c.Name)+len(c.ID)+40)
	b = appendString(append(b, `{"tool_name":`...), c.Name)
	b = appendString(append(b, `,"tool_call_id":`...), c.ID)
	return append(b, '}')
}

// Delegated is a tool_response's request payload with what the runs used that the call delegated, the cost in units.
func Delegated(request json.RawMessage, tokens, cost int64) json.RawMessage {
	b := request[: len(request)-1 : len(request)-1]
	if tokens > 0 {
		b = strconv.AppendInt(append(b, `,"used_tokens":`...), tokens, 10)
	}
	if cost > 0 {
		b = append(append(b, `,"used_cost":`...), Money(cost)...)
	}
	return append(b, '}')
}

// OfAction is a tool_response's request payload with the action that the call was.
func OfAction(request json.RawMessage, action string) json.RawMessage {
	b := append(request[:len(request)-1:len(request)-1], `,"action_id":`...)
	return append(appendString(b, action), '}')
}

// Quote is s as a JSON string.
func Quote(s string) string { return string(appendString(make([]byte, 0, len(s)+len(s)/8+2), s)) }

// ContentsPayload is the response payload of an answer and of a tool call that succeeded.
func ContentsPayload(contents string) json.RawMessage { return single(`{"contents":`, contents) }

// ErrorPayload is the response payload of an error and of a tool call that failed.
func ErrorPayload(text string) json.RawMessage { return single(`{"error":`, text) }

func single(key, value string) json.RawMessage {
	b := append(make([]byte, 0, len(value)+24), key...)
	return append(appendString(b, value), '}')
}

func appendCount(b []byte, n *int64) []byte {
	if n == nil {
		return append(b, "null"...)
	}
	return strconv.AppendInt(b, *n, 10)
}

const hexDigits = "0123456789abcdef"

// appendString appends s as a JSON string. What jsonb refuses is cleaned on the way, so that no payload can make
// the insert of a whole run fail.
func appendString(b []byte, s string) []byte {
	s = Clean(s)
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(b, s[start:]...), '"')
}

// Limits of what is stored as jsonb. JSON allows more than jsonb: numbers beyond numeric's range and nesting beyond
// the server's stack raise an error there.
const (
	maxDepth  = 200
	maxDigits = 400
)

// storable reports whether the text is a JSON object that jsonb takes.
func storable(s string) bool {
	i := 0
	for i < len(s) && (s[i] == ' ' || s[i] == '\n' || s[i] == '\t' || s[i] == '\r') {
		i++
	}
	if i == len(s) || s[i] != '{' || !json.Valid([]byte(s)) {
		return false
	}
	depth, digits, exponent := 0, 0, -1
	for inString := false; i < len(s); i++ {
		c := s[i]
		if inString {
			switch c {
			case '\\':
				i++
			case '"':
				inString = false
			}
			continue
		}
		switch {
		case c >= '0' && c <= '9':
			if digits++; digits > maxDigits {
				return false
			}
			if exponent >= 0 {
				if exponent = exponent*10 + int(c-'0'); exponent > maxDigits {
					return false
				}
			}
			continue
		case c == 'e' || c == 'E':
			// Also the last letter of true and false: no digit follows there.
			exponent = 0
			continue
		case c == '+' || c == '-' || c == '.':
			continue
		case c == '"':
			inString = true
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return false
			}
		case c == '}' || c == ']':
			depth--
		}
		digits, exponent = 0, -1
	}
	return true
}
