package conversation

import "encoding/json"

// Answered is what a model_response holds: the reply as the loop took it.
type Answered struct {
	Contents  string
	ToolCalls []ToolCall
	Finish    string
	Model     string
	Usage     Usage
}

// ReadModelResponse reads what ModelResponsePayload wrote.
func ReadModelResponse(payload json.RawMessage) (Answered, error) {
	var p struct {
		Contents  *string `json:"contents"`
		ToolCalls []struct {
			ID        string `json:"id"`
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"tool_calls"`
		Finish string `json:"finish_reason"`
		Model  string `json:"model"`
		Usage  struct {
			Input     *int64 `json:"input"`
			Output    *int64 `json:"output"`
			Cached    *int64 `json:"cached"`
			Reasoning *int64 `json:"reasoning"`
		} `json:"usage"`
	}
	if err := json.Unmarshal(payload, &p); err != nil {
		return Answered{}, err
	}
	a := Answered{Finish: p.Finish, Model: p.Model, Usage: Usage(p.Usage)}
	if p.Contents != nil {
		a.Contents = *p.Contents
	}
	for _, c := range p.ToolCalls {
		a.ToolCalls = append(a.ToolCalls, ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
	}
	return a, nil
}

// ReadToolResponse reads the response payload of a tool_response: one of the two is set.
func ReadToolResponse(payload json.RawMessage) (contents, failure string, err error) {
	var p struct {
		Contents *string `json:"contents"`
		Error    *string `json:"error"`
	}
	if err := json.Unmarshal(payload, &p); err != nil {
		return "", "", err
	}
	if p.Error != nil {
		return "", *p.Error, nil
	}
	if p.Contents != nil {
		return *p.Contents, "", nil
	}
	return "", "", nil
}

// ReadCompaction reads the response payload of a compaction: Contents is the summary. failed: no model wrote it.
func ReadCompaction(payload json.RawMessage) (a Answered, failed bool, err error) {
	var p struct {
		Summary   string          `json:"summary"`
		Estimated json.RawMessage `json:"estimated"`
	}
	if err := json.Unmarshal(payload, &p); err != nil {
		return Answered{}, false, err
	}
	a, err = ReadModelResponse(payload)
	a.Contents = p.Summary
	return a, a.Usage == Usage{} && p.Estimated == nil, err
}

// ReadAction reads what OfAction wrote into a tool_response: "" when the call was no action.
func ReadAction(request json.RawMessage) string {
	var p struct {
		Action string `json:"action_id"`
	}
	if json.Unmarshal(request, &p) != nil {
		return ""
	}
	return p.Action
}

// ReadDelegated reads what Delegated wrote into a tool_response: nothing used where nothing is said.
func ReadDelegated(request json.RawMessage) (tokens, cost int64) {
	var p struct {
		Tokens int64       `json:"used_tokens"`
		Cost   json.Number `json:"used_cost"`
	}
	if json.Unmarshal(request, &p) != nil {
		return 0, 0
	}
	if money, err := p.Cost.Float64(); err == nil {
		cost, _ = Amount(money)
	}
	return p.Tokens, cost
}
