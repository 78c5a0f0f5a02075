// Package schema is our face of a JSON Schema validator: compile once, validate many times, get back sentences that
// a model can act on. The validator itself is github.com/google/jsonschema-go (drafts 2020-12 and 7, no dependencies,
// nothing to set up when the process starts); nothing else in the tree imports it, so that it can be replaced here.
// github.com/santhosh-tekuri/jsonschema says more about what is wrong, but it compiles its meta-schemas in every
// process that links it: 1.7 MB and some 10 ms of every session's first call.
//
// What the validator leaves to its caller is done here: schemas that would never end are refused (graph.go), and what
// is wrong with a value is said place by place and not only for the first place (explain.go).
package schema

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"aidb/extension/internal/fault"
)

// Schema is a compiled schema. It is safe for concurrent use.
type Schema struct {
	root     *jsonschema.Schema
	resolved *jsonschema.Resolved
	places   map[string]*jsonschema.Schema // every schema in it, by its JSON Pointer
}

const (
	// maxBytes bounds a schema.
	maxBytes = 1 << 20
	// maxNesting bounds the nesting of a schema and of a value: both are walked by functions that call themselves.
	maxNesting = 200
)

const draft7 = "http://json-schema.org/draft-07/schema#"

// The drafts that are understood, and what stands for them.
var drafts = map[string]string{
	"": "",
	"https://json-schema.org/draft/2020-12/schema": "https://json-schema.org/draft/2020-12/schema",
	// What 2020-12 changed against it nobody writes by hand: $recursiveRef and arrays of items.
	"https://json-schema.org/draft/2019-09/schema": "https://json-schema.org/draft/2020-12/schema",
	"http://json-schema.org/draft-07/schema":       draft7,
	"https://json-schema.org/draft-07/schema":      draft7,
	"http://json-schema.org/draft-06/schema":       draft7,
	"http://json-schema.org/schema":                "",
}

// Compile reads and checks a schema. A schema that is not valid is an error of kind InvalidArgument whose message says
// why, InvalidText when it is not even JSON. References are followed inside the schema only: it is somebody's argument,
// and must not make the server read a file or open a connection.
func Compile(raw json.RawMessage) (*Schema, error) {
	switch {
	case !json.Valid(raw):
		return nil, fault.New(fault.InvalidText, "JSON Schema is not valid JSON")
	case len(raw) > maxBytes:
		return nil, invalid(nil, "it is too long")
	case nesting(raw) > maxNesting:
		return nil, invalid(nil, "it is nested too deeply")
	}
	s := &Schema{root: &jsonschema.Schema{}}
	if err := json.Unmarshal(raw, s.root); err != nil {
		return nil, invalid(err, wrongType(err))
	}
	draft, known := drafts[strings.TrimSuffix(s.root.Schema, "#")]
	if !known {
		return nil, invalid(nil, "its draft "+fault.Name(s.root.Schema)+" is not supported, 2020-12 and 7 are")
	}
	s.root.Schema, s.root.ID = draft, ""
	if err := s.check(); err != nil {
		return nil, err
	}
	var err error
	if s.resolved, err = s.root.Resolve(nil); err != nil {
		return nil, invalid(err, oneLine(innermost(err)))
	}
	return s, nil
}

func invalid(err error, why string) error {
	return fault.Wrap(err, fault.InvalidArgument, "JSON Schema is not valid: %s", why)
}

// wrongType is a decoding error without the names of Go's types.
func wrongType(err error) string {
	var e *json.UnmarshalTypeError
	if !errors.As(err, &e) {
		return oneLine(err)
	}
	member := "a schema in it"
	if i := strings.LastIndexByte(e.Field, '.'); i >= 0 && i+1 < len(e.Field) {
		member = "its " + fault.Name(e.Field[i+1:])
	}
	return member + " must not be a JSON " + e.Value
}

// Validate checks a JSON text against the schema. What does not fit is an error of kind ModelOutput whose message
// names every place: "/total: must be an integer, not a string; /size: 'w' is missing".
func (s *Schema) Validate(raw []byte) error {
	var v any
	err := json.Unmarshal(raw, &v)
	var number *json.UnmarshalTypeError
	switch {
	case errors.As(err, &number):
		return fault.Wrap(err, fault.ModelOutput, "/: a number in it is out of range: %s", fault.Cut(number.Value, maxShown))
	case err != nil:
		return fault.Wrap(err, fault.ModelOutput, "not valid JSON: %s", oneLine(err))
	case nesting(raw) > maxNesting:
		return fault.New(fault.ModelOutput, "/: is nested too deeply")
	}
	err = s.resolved.Validate(v)
	if err == nil {
		return nil
	}
	return fault.Wrap(err, fault.ModelOutput, "%s", strings.Join(s.explain(v, err), "; "))
}

// innermost is the error at the bottom of a chain: the others only say on which way it was met.
func innermost(err error) error {
	for {
		if many, ok := err.(interface{ Unwrap() []error }); ok && len(many.Unwrap()) > 0 {
			err = many.Unwrap()[0]
		} else if inner := errors.Unwrap(err); inner != nil {
			err = inner
		} else {
			return err
		}
	}
}

// nesting is how deep a valid JSON text is nested.
func nesting(raw []byte) int {
	deepest, depth, inString := 0, 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
