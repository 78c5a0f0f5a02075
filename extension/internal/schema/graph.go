package schema

// The schemas inside a schema, and the check that judging a value comes to an end: the validator follows a schema that
// refers to itself for ever, and a stack that is used up cannot be recovered from.

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"aidb/extension/internal/fault"
)

var typeNames = []string{"null", "boolean", "object", "array", "number", "string", "integer"}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// part is a schema directly inside another: where, and whether it judges the same value or a part of it.
type part struct {
	place  string
	schema *jsonschema.Schema
	same   bool
}

// parts lists the schemas directly inside one.
func parts(place string, s *jsonschema.Schema) []part {
	var all []part
	one := func(keyword string, c *jsonschema.Schema, same bool) {
		if c != nil {
			all = append(all, part{place + "/" + keyword, c, same})
		}
	}
	list := func(keyword string, cs []*jsonschema.Schema, same bool) {
		for i, c := range cs {
			one(keyword+"/"+strconv.Itoa(i), c, same)
		}
	}
	named := func(keyword string, cs map[string]*jsonschema.Schema, same bool) {
		for name, c := range cs {
			one(keyword+"/"+pointerEscapes.Replace(name), c, same)
		}
	}
	list("allOf", s.AllOf, true)
	list("anyOf", s.AnyOf, true)
	list("oneOf", s.OneOf, true)
	one("not", s.Not, true)
	one("if", s.If, true)
	one("then", s.Then, true)
	one("else", s.Else, true)
	named("dependentSchemas", s.DependentSchemas, true)
	named("dependencies", s.DependencySchemas, true)
	named("$defs", s.Defs, false)
	named("definitions", s.Definitions, false)
	named("properties", s.Properties, false)
	named("patternProperties", s.PatternProperties, false)
	one("additionalProperties", s.AdditionalProperties, false)
	one("propertyNames", s.PropertyNames, false)
	one("unevaluatedProperties", s.UnevaluatedProperties, false)
	list("prefixItems", s.PrefixItems, false)
	one("items", s.Items, false)
	list("items", s.ItemsArray, false)
	one("additionalItems", s.AdditionalItems, false)
	one("contains", s.Contains, false)
	one("unevaluatedItems", s.UnevaluatedItems, false)
	return all
}

// check notes every schema inside this one, and refuses what cannot be judged.
func (s *Schema) check() error {
	s.places = map[string]*jsonschema.Schema{}
	if err := s.collect("", s.root); err != nil {
		return err
	}
	for place, c := range s.places {
		if c.Ref != "" && s.places[target(c.Ref)] == nil {
			return invalid(nil, "its reference "+fault.Name(c.Ref)+" at "+shown(place)+" leads to no schema inside it")
		}
	}
	seen := map[*jsonschema.Schema]int{}
	for place, c := range s.places {
		if s.endless(place, c, seen) {
			return invalid(nil, "it refers to itself without end at "+shown(place))
		}
	}
	return nil
}

func (s *Schema) collect(place string, c *jsonschema.Schema) error {
	if c.ID != "" || c.Anchor != "" || c.DynamicAnchor != "" || c.DynamicRef != "" || c.Extra["$recursiveRef"] != nil {
		return invalid(nil, "$id inside it, anchors and dynamic references are not supported")
	}
	for _, name := range append(slices.Clone(c.Types), c.Type) {
		if name != "" && !slices.Contains(typeNames, name) {
			return invalid(nil, fault.Name(name)+" at "+shown(place)+" is not a type of JSON")
		}
	}
	s.places[place] = c
	for _, p := range parts(place, c) {
		if err := s.collect(p.place, p.schema); err != nil {
			return err
		}
	}
	return nil
}

// target is the JSON Pointer that a reference names, and no place at all when it leaves the schema.
func target(ref string) string {
	fragment, inside := strings.CutPrefix(ref, "#")
	pointer, err := url.PathUnescape(fragment)
	if !inside || err != nil {
		return "elsewhere"
	}
	return pointer
}

// The states of a schema in the search for circles.
const (
	onTheWay = 1
	done     = 2
)

// endless reports whether judging one value by a schema comes back to that schema with the same value.
func (s *Schema) endless(place string, c *jsonschema.Schema, seen map[*jsonschema.Schema]int) bool {
	if seen[c] != 0 {
		return seen[c] == onTheWay
	}
	seen[c] = onTheWay
	if c.Ref != "" {
		if to := target(c.Ref); s.endless(to, s.places[to], seen) {
			return true
		}
	}
	for _, p := range parts(place, c) {
		if p.same && s.endless(p.place, p.schema, seen) {
			return true
		}
	}
	seen[c] = done
	return false
}

// shown is a place in an error text; the whole is the document.
func shown(place string) string {
	if place == "" {
		return "/"
	}
	return fault.Cut(place, maxShown)
}
