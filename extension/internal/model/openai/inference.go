package openai

import (
	"bytes"
	"encoding/json"
	"slices"
	"sort"
	"strings"

	"aidb/extension/internal/fault"
)

// inferenceKeys are the members of aidb.inference_config, the settings of one call.
var inferenceKeys = []string{
	"system_prompt", "temperature", "max_tokens", "top_p", "seed", "repeat_penalty", "repeat_last_n", "thinking", "extra_args",
}

// WithInference returns a model's config with the settings of one call laid over it; a null, or a member that is
// not there, leaves the config's own. response_format is passed on to the server as it is. Tools are not: a
// caller who wants them wants an agent.
func WithInference(config, inference json.RawMessage) (json.RawMessage, error) {
	if len(bytes.TrimSpace(inference)) == 0 || string(bytes.TrimSpace(inference)) == "null" {
		return config, nil
	}
	var base, over map[string]json.RawMessage
	if len(bytes.TrimSpace(config)) > 0 && json.Unmarshal(config, &base) != nil {
		return nil, fault.New(fault.InvalidArgument, "config is not a JSON object")
	}
	if json.Unmarshal(inference, &over) != nil {
		return nil, fault.New(fault.InvalidArgument, "inference_config is not a JSON object")
	}
	if base == nil {
		base = map[string]json.RawMessage{}
	}
	names := make([]string, 0, len(over))
	for name := range over {
		names = append(names, name)
	}
	sort.Strings(names)
	extra := map[string]json.RawMessage{}
	for _, name := range names {
		value := over[name]
		switch {
		case string(bytes.TrimSpace(value)) == "null":
		case name == "extra_args":
			if json.Unmarshal(value, &extra) != nil {
				return nil, fault.New(fault.InvalidArgument, "extra_args is not a JSON object")
			}
		case slices.Contains(inferenceKeys, name):
			base[name] = value
		case name == "response_format":
			extra[name] = value
		case name == "tools" || name == "tool_choice":
			return nil, fault.New(fault.Unsupported, "%s is not supported in a call that generates text", fault.Name(name)).
				WithHint("Give the tools to an agent and call aidb.agent_converse.")
		default:
			return nil, fault.New(fault.InvalidArgument, "inference_config has an unexpected member %s", fault.Name(name)).
				WithHint("The members are %s.", strings.Join(inferenceKeys, ", "))
		}
	}
	if len(extra) > 0 {
		all := map[string]json.RawMessage{}
		if own, has := base["extra_args"]; has && json.Unmarshal(own, &all) != nil {
			return nil, fault.New(fault.InvalidArgument, "extra_args is not a JSON object")
		}
		if all == nil {
			all = map[string]json.RawMessage{}
		}
		for name, value := range extra {
			all[name] = value
		}
		raw, err := json.Marshal(all)
		if err != nil {
			return nil, fault.Wrap(err, fault.InvalidArgument, "extra_args cannot be written")
		}
		base["extra_args"] = raw
	}
	return json.Marshal(base)
}
