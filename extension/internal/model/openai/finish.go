package openai

import (
	"strings"

	"aidb/extension/internal/agent"
)

// finishWords are the finish reasons of other vendors in the words of this protocol, lower case.
var finishWords = map[string]string{
	"": agent.FinishStop, "stop": agent.FinishStop, "eos": agent.FinishStop, "eos_token": agent.FinishStop, "end": agent.FinishStop,
	"end_turn": agent.FinishStop, "stop_sequence": agent.FinishStop, "complete": agent.FinishStop, "completed": agent.FinishStop,
	"finished": agent.FinishStop, "finish_reason_stop": agent.FinishStop, "null": agent.FinishStop,
	"length": agent.FinishLength, "max_tokens": agent.FinishLength, "max_output_tokens": agent.FinishLength,
	"max_new_tokens": agent.FinishLength, "model_length": agent.FinishLength, "finish_reason_max_tokens": agent.FinishLength,
	"incomplete": agent.FinishLength, "token_limit": agent.FinishLength,
	"tool_calls": agent.FinishToolCalls, "tool_call": agent.FinishToolCalls, "tool_use": agent.FinishToolCalls,
	"function_call": agent.FinishToolCalls, "function_calls": agent.FinishToolCalls,
	"content_filter": agent.FinishContentFilter, "content_filtered": agent.FinishContentFilter, "safety": agent.FinishContentFilter,
	"recitation": agent.FinishContentFilter, "blocklist": agent.FinishContentFilter, "prohibited_content": agent.FinishContentFilter,
	"spii": agent.FinishContentFilter, "sensitive": agent.FinishContentFilter, "refusal": agent.FinishContentFilter,
	"image_safety": agent.FinishContentFilter, "guardrail_intervened": agent.FinishContentFilter, "blocked": agent.FinishContentFilter,
}

// finishOther is every finish reason that says nothing about what to do with the reply.
const finishOther = "other"

// finishOf judges by the calls that are there, not by what the reason says about them; only a cut or filtered
// reply stays one.
func finishOf(word string, calls int) string {
	f, known := finishWords[strings.ToLower(strings.TrimSpace(word))]
	switch {
	case f == agent.FinishLength || f == agent.FinishContentFilter:
		return f
	case calls > 0:
		return agent.FinishToolCalls
	case known:
		return agent.FinishStop
	}
	return finishOther
}
