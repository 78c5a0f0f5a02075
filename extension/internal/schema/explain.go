package schema

// The validator stops at the first thing that is wrong. A model that is told one thing at a time needs a round for
// each, so the parts of a value are judged one by one: by the same validator, with the part of the schema that is for
// them. This file only says where; what is right and wrong is decided there.

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"aidb/extension/internal/fault"
)

const (
	// maxProblems bounds how many problems one message lists.
	maxProblems = 20
	// maxShown bounds a place, a name or a library's sentence in a message, in bytes.
	maxShown = 200
)

// location is the schema's name while a part of it is used by itself.
const location = "aidb:///schema"

type explainer struct {
	schema   *Schema
	parts    map[string]*jsonschema.Resolved
	problems []string
}

// explain lists what is wrong with a value that the schema refuses.
func (s *Schema) explain(v any, err error) []string {
	e := &explainer{schema: s, parts: map[string]*jsonschema.Resolved{}}
	e.inside("", s.root, v, "", err)
	if len(e.problems) > maxProblems {
		e.problems = append(e.problems[:maxProblems], "and more")
	}
	return e.problems
}

// judge adds what is wrong with a value by the schema at a place.
func (e *explainer) judge(place string, v any, at string) {
	if len(e.problems) > maxProblems {
		return
	}
	part, err := e.part(place)
	if err == nil {
		err = part.Validate(v)
	}
	if err != nil {
		e.inside(place, e.schema.places[place], v, at, err)
	}
}

// part is the schema at a place, by itself; its references lead into the whole.
func (e *explainer) part(place string) (*jsonschema.Resolved, error) {
	if p := e.parts[place]; p != nil {
		return p, nil
	}
	whole := *e.schema.root
	whole.ID, whole.Ref, whole.Schema = location, "", ""
	fragment := url.URL{Fragment: place}
	only := &jsonschema.Schema{
		Schema: e.schema.root.Schema, Ref: location + fragment.String(), Defs: map[string]*jsonschema.Schema{"whole": &whole},
	}
	p, err := only.Resolve(&jsonschema.ResolveOptions{BaseURI: "aidb:///part"})
	if err == nil {
		e.parts[place] = p
	}
	return p, err
}

// inside looks for what is wrong further down; when there is nothing, the fault is here.
func (e *explainer) inside(place string, s *jsonschema.Schema, v any, at string, err error) {
	before := len(e.problems)
	if s.Ref != "" {
		e.judge(target(s.Ref), v, at)
		if e.schema.root.Schema == draft7 { // there a reference stands alone
			return
		}
	}
	for i := range s.AllOf {
		e.judge(place+"/allOf/"+strconv.Itoa(i), v, at)
	}
	switch v := v.(type) {
	case map[string]any:
		e.members(place, s, v, at)
	case []any:
		if s.Items != nil {
			for i := range v {
				if i >= len(s.PrefixItems) {
					e.judge(place+"/items", v[i], at+"/"+strconv.Itoa(i))
				}
			}
		}
	}
	if len(e.problems) == before {
		e.add(at, sentence(s, v, err))
	}
}

func (e *explainer) members(place string, s *jsonschema.Schema, v map[string]any, at string) {
	for _, name := range s.Required {
		if _, there := v[name]; !there {
			e.add(at, fault.Name(name)+" is missing")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		below := at + "/" + pointerEscapes.Replace(name)
		switch {
		case s.Properties[name] != nil:
			e.judge(place+"/properties/"+pointerEscapes.Replace(name), v[name], below)
		case s.AdditionalProperties == nil || len(s.PatternProperties) > 0:
		case isFalse(s.AdditionalProperties):
			e.add(at, fault.Name(name)+" is not a member of it")
		default:
			e.judge(place+"/additionalProperties", v[name], below)
		}
	}
}

func (e *explainer) add(at, problem string) {
	if len(e.problems) <= maxProblems {
		e.problems = append(e.problems, shown(at)+": "+problem)
	}
}

// isFalse reports whether the schema is false, which the validator reads as {"not": {}}.
func isFalse(s *jsonschema.Schema) bool { return s.Not != nil && reflect.ValueOf(*s.Not).IsZero() }

// sentence says what is wrong with a value itself. The validator's own sentences show values as Go writes them, so
// the usual ones are said here.
func sentence(s *jsonschema.Schema, v any, err error) string {
	text := oneLine(innermost(err))
	keyword, _, _ := strings.Cut(text, ":")
	switch keyword {
	case "type":
		wanted := s.Types
		if s.Type != "" {
			wanted = []string{s.Type}
		}
		if len(wanted) > 0 {
			return "must be " + article(strings.Join(wanted, " or ")) + ", not " + article(typeOf(v))
		}
	case "enum":
		if list, err := json.Marshal(s.Enum); err == nil && s.Enum != nil {
			return "must be one of " + fault.Cut(string(list), maxShown)
		}
	case "const":
		if s.Const != nil {
			if value, err := json.Marshal(*s.Const); err == nil {
				return "must be " + fault.Cut(string(value), maxShown)
			}
		}
	case "pattern":
		return "must match the pattern " + fault.Cut(s.Pattern, maxShown)
	}
	switch {
	case s.AnyOf != nil:
		return "fits none of the alternatives (anyOf)"
	case s.OneOf != nil:
		return "must fit exactly one of the alternatives (oneOf)"
	case s.Not != nil:
		return "fits what it must not (not)"
	}
	return fault.Cut(text, maxShown)
}

func article(kind string) string {
	switch kind[0] {
	case 'a', 'i', 'o':
		return "an " + kind
	}
	if kind == "null" {
		return kind
	}
	return "a " + kind
}

func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return fmt.Sprintf("%T", v)
}
