package approval

import (
	"bytes"
	"encoding/json"
	"strings"

	"aidb/extension/internal/fault"
)

// MaxSteps is how many steps a plan may have.
const MaxSteps = 10

// Step is one call of a plan, numbered from 1.
type Step struct {
	N    int             `json:"step"`
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
}

// ParsePlan reads the arguments of act. Nothing of a plan that cannot be read is run.
func ParsePlan(arguments string) ([]Step, error) {
	var outer map[string]json.RawMessage
	if err := json.Unmarshal([]byte(arguments), &outer); err != nil {
		return nil, fault.New(fault.InvalidText, "arguments are not a JSON object: %s", fault.Cut(arguments, 200))
	}
	for name := range outer {
		if name != "steps" {
			return nil, fault.New(fault.InvalidArgument, "unknown argument %s (arguments: steps)", fault.Name(name))
		}
	}
	raw, given := outer["steps"]
	if !given || string(raw) == "null" {
		return nil, fault.New(fault.InvalidArgument, "missing argument 'steps' (arguments: steps)")
	}
	var list []json.RawMessage
	var text string
	if json.Unmarshal(raw, &text) == nil { // an array in a string, as some models write it
		raw = json.RawMessage(text)
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fault.New(fault.InvalidArgument, "argument 'steps' must be an array of {\"tool\", \"args\"}")
	}
	if len(list) == 0 || len(list) > MaxSteps {
		return nil, fault.New(fault.InvalidArgument, "a plan has one to %d steps, not %d", MaxSteps, len(list))
	}
	steps := make([]Step, len(list))
	for i, one := range list {
		s, problem := parseStep(one)
		if problem != "" {
			return nil, fault.New(fault.InvalidArgument, "step %d %s", i+1, problem)
		}
		s.N = i + 1
		steps[i] = s
	}
	return steps, nil
}

func parseStep(raw json.RawMessage) (Step, string) {
	var s struct {
		Tool string          `json:"tool"`
		Args json.RawMessage `json:"args"`
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return Step{}, "must be {\"tool\": name, \"args\": {…}} and nothing else"
	}
	if strings.TrimSpace(s.Tool) == "" {
		return Step{}, "names no tool"
	}
	if len(s.Args) == 0 || string(s.Args) == "null" {
		s.Args = json.RawMessage("{}")
	}
	return Step{Tool: s.Tool, Args: s.Args}, ""
}
