// Package schema is our face of a JSON Schema validator: compile once, validate many times, get back sentences that
// a model can act on. The validator itself is github.com/santhosh-tekuri/jsonschema (complete, kept up, run against
// the official test suite); nothing else in the tree imports it, so that it can be replaced here.
//
// That validator compiles its meta-schemas when the process starts (about 10 ms and 1.7 MB), so a package that
// only needs argument names and types uses package tool and does not import this one.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"aidb/extension/internal/fault"
)

// Schema is a compiled schema. It is safe for concurrent use.
type Schema struct{ compiled *jsonschema.Schema }

// location is the name of the schema being compiled; relative references inside it resolve against it.
const location = "aidb:///schema"

// noLoader refuses every reference that leaves the schema: a schema is somebody's argument, and must not make the
// server read a file or open a connection.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("reference to %q leaves the schema", url)
}

// Compile reads and checks a schema. A schema that is not valid is an error of kind InvalidArgument.
func Compile(raw json.RawMessage) (*Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fault.Wrap(err, fault.InvalidText, "JSON schema is not valid JSON").WithDetail("%s.", err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	if err := c.AddResource(location, doc); err != nil {
		return nil, invalid(err)
	}
	s, err := c.Compile(location)
	if err != nil {
		return nil, invalid(err)
	}
	return &Schema{compiled: s}, nil
}

func invalid(err error) error {
	return fault.Wrap(err, fault.InvalidArgument, "JSON schema is not valid").WithDetail("%s.", oneLine(err))
}

// Validate checks a JSON text against the schema. What does not fit is an error of kind ModelOutput whose message
// names every place: "/total: got string, want integer; /size: missing property 'w'".
func (s *Schema) Validate(raw []byte) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return fault.Wrap(err, fault.ModelOutput, "not valid JSON: %s", err)
	}
	err = s.compiled.Validate(v)
	if err == nil {
		return nil
	}
	return fault.Wrap(err, fault.ModelOutput, "%s", oneLine(err))
}

// oneLine lists the problems of an error, each with the place it is in.
func oneLine(err error) string {
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return strings.Join(strings.Fields(err.Error()), " ")
	}
	var problems []string
	for _, unit := range invalid.BasicOutput().Errors {
		if unit.Error == nil {
			continue
		}
		place := unit.InstanceLocation
		if place == "" {
			place = "/"
		}
		problems = append(problems, place+": "+unit.Error.String())
	}
	if len(problems) == 0 {
		return strings.Join(strings.Fields(err.Error()), " ")
	}
	return strings.Join(problems, "; ")
}
