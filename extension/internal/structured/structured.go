// Package structured is the typed answer: an agent, or one call of it, may ask for JSON of a certain shape. Type says
// to the model what is wanted, and reads what it gives; asking again, and how often, is the loop's business.
//
// What providers offer for this (response_format and the like) is used where it is known to be there: many servers refuse
// it, some of them only beside tools, and none can be trusted without looking at what came. So the words are always said,
// and what comes is always checked here.
package structured

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
	"aidb/extension/internal/schema"
)

// Type is an output type, ready for use.
type Type struct {
	schema *schema.Schema
	text   string // the JSON Schema, in one line
}

// Compile reads an output type: a list of fields as aidb.output_type() makes it, or a JSON Schema. Nothing and a JSON
// null are no output type, nil without an error.
func Compile(raw json.RawMessage) (*Type, error) {
	trimmed := strings.TrimSpace(string(raw))
	switch {
	case trimmed == "" || trimmed == "null":
		return nil, nil
	case trimmed[0] != '{':
		return nil, fault.New(fault.InvalidArgument, "output_type must be a JSON object")
	}
	var builder struct {
		Fields *json.RawMessage `json:"fields"`
	}
	if err := json.Unmarshal([]byte(trimmed), &builder); err != nil {
		return nil, unusable(err)
	}
	document := json.RawMessage(trimmed)
	if builder.Fields != nil {
		fields, err := readFields(*builder.Fields)
		if err != nil {
			return nil, unusable(err)
		}
		document = objectSchema(fields)
	}
	compiled, err := schema.Compile(document)
	if err != nil {
		return nil, unusable(err)
	}
	var text bytes.Buffer
	if err := json.Compact(&text, document); err != nil {
		return nil, unusable(err)
	}
	return &Type{schema: compiled, text: text.String()}, nil
}

func unusable(err error) error {
	return fault.Wrap(err, fault.InvalidArgument, "output_type cannot be used: %s", conversation.Clean(err.Error()))
}

// Schema is the JSON Schema of the type, nil for none.
func (t *Type) Schema() json.RawMessage {
	if t == nil {
		return nil
	}
	return json.RawMessage(t.text)
}

// Instruction is what the model is told about its answer.
func (t *Type) Instruction() string {
	return "Your final answer must be one JSON object that is valid against this JSON Schema, and nothing else: no explanation, no code fence.\n" + t.text
}

// Read takes the JSON out of an answer and checks it. The error, of kind ModelOutput, names everything that is wrong.
func (t *Type) Read(answer string) (string, error) {
	text := conversation.CleanJSON(unwrap(answer))
	if !json.Valid([]byte(text)) {
		if only, found := t.only(text); found {
			return only, nil
		}
		var e *json.SyntaxError
		var v any
		if err := json.Unmarshal([]byte(text), &v); errors.As(err, &e) {
			return "", fault.New(fault.ModelOutput, "not valid JSON: %s", e.Error())
		}
		return "", fault.New(fault.ModelOutput, "not valid JSON")
	}
	if text[0] != '{' {
		return "", fault.New(fault.ModelOutput, "not a JSON object")
	}
	return text, t.schema.Validate([]byte(text))
}

// maxTries bounds how often a brace is taken for the beginning of an object.
const maxTries = 32

// only finds the object among other words that can be the answer: the one that is valid against the schema. Where two
// different ones are there is a choice, and in a thought without an end there is no answer yet.
func (t *Type) only(text string) (only string, found bool) {
	if strings.HasPrefix(text, "<think") {
		return "", false
	}
	for range maxTries {
		at := strings.IndexByte(text, '{')
		if at < 0 {
			break
		}
		text = text[at:]
		var object json.RawMessage
		if json.NewDecoder(strings.NewReader(text)).Decode(&object) != nil {
			text = text[1:]
			continue
		}
		text = text[len(object):]
		if t.schema.Validate(object) != nil || string(object) == only {
			continue
		}
		if found {
			return "", false
		}
		only, found = string(object), true
	}
	return only, found
}

const mark = "```"

// unwrap takes away what models put around their JSON although they were asked not to: their thinking before it, and
// a code fence, with or without words around, or quotation marks around all of it. Two fences leave a choice, and nothing is
// chosen here.
func unwrap(s string) string {
	s = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(s), "\uFEFF"))
	var quoted string
	if strings.HasPrefix(s, `"`) && json.Unmarshal([]byte(s), &quoted) == nil && strings.HasPrefix(strings.TrimSpace(quoted), "{") {
		return strings.TrimSpace(quoted)
	}
	for _, tag := range []string{"think>", "thinking>"} {
		if strings.HasPrefix(s, "<"+tag) {
			if end := strings.Index(s, "</"+tag); end >= 0 {
				s = strings.TrimSpace(s[end+len("</"+tag):])
			}
		}
	}
	first, last := strings.Index(s, mark), strings.LastIndex(s, mark)
	whole := first == 0 && last == len(s)-len(mark)
	if first < 0 || last < first+len(mark) || s[0] == '{' || (!whole && strings.Count(s, mark) != 2) {
		return s
	}
	inner := s[first+len(mark) : last]
	// The word after the mark names a language.
	if at := strings.IndexByte(inner, '{'); at >= 0 && len(strings.Fields(inner[:at])) <= 1 {
		inner = inner[at:]
	}
	return strings.TrimSpace(inner)
}
