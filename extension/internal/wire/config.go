package wire

import (
	"bytes"
	"encoding/json"
	"math"

	"aidb/extension/internal/fault"
)

// ReadConfig reads a model's config; none is an empty one.
func ReadConfig(raw json.RawMessage, to any) error {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	if err := json.Unmarshal(raw, to); err != nil {
		return fault.New(fault.InvalidArgument, "config cannot be read: %s", fault.Cut(OneLine(err.Error()), MaxExcerpt))
	}
	return nil
}

// CheckNumbers refuses the members of a config that are there and no numbers.
func CheckNumbers(members map[string]*json.Number) error {
	for name, n := range members {
		if n == nil {
			continue
		}
		if f, err := n.Float64(); err != nil || math.IsInf(f, 0) {
			return fault.New(fault.InvalidArgument, "%s is not a number: %s", name, fault.Name(n.String()))
		}
	}
	return nil
}

// NoTools is the error of a config with tools.
func NoTools() error {
	return fault.New(fault.Unsupported, "tools are not supported in a call that generates text").
		WithHint("Give the tools to an agent and call aidb.agent_converse.")
}

// Present says whether a member is there and not null.
func Present(raw json.RawMessage) bool {
	return len(bytes.TrimSpace(raw)) > 0 && string(bytes.TrimSpace(raw)) != "null"
}
