package wire

import (
	"net/http"
	"strings"

	"aidb/extension/internal/fault"
)

// Classification goes by code, then status, then words. Codes are exact but few servers send them; the status is
// often all there is, and often wrong in its class (a full context as 500, a spent account as 429); words decide
// where both leave it open.

// codes are the error codes and types that mean one thing, whatever the status.
var codes = map[string]fault.Kind{
	"context_length_exceeded": fault.ModelOverflow, "context_window_exceeded": fault.ModelOverflow,
	"model_context_window_exceeded": fault.ModelOverflow, "tokens_limit_reached": fault.ModelOverflow,
	"exceed_context_size_error": fault.ModelOverflow, "prompt_too_long": fault.ModelOverflow, "request_too_large": fault.ModelOverflow,
	"contextwindowexceedederror": fault.ModelOverflow, "max_prompt_tokens_exceeded": fault.ModelOverflow,
	"model_max_prompt_tokens_exceeded": fault.ModelOverflow,

	"insufficient_quota": fault.ModelQuota, "billing_hard_limit_reached": fault.ModelQuota, "billing_not_active": fault.ModelQuota,
	"billing_error": fault.ModelQuota, "insufficient_balance": fault.ModelQuota, "insufficient_credits": fault.ModelQuota,
	"credit_balance_too_low": fault.ModelQuota, "insufficient_funds": fault.ModelQuota, "access_terminated": fault.ModelQuota,
	"exceeded_current_quota_error": fault.ModelQuota, "arrearage": fault.ModelQuota, "quota_exceeded": fault.ModelQuota,
	"account_deactivated": fault.ModelQuota, "budget_exceeded": fault.ModelQuota,

	"invalid_api_key": fault.ModelAuth, "authentication_error": fault.ModelAuth, "invalid_authentication_error": fault.ModelAuth,
	"incorrect_api_key_provided": fault.ModelAuth, "unauthorized": fault.ModelAuth, "unauthenticated": fault.ModelAuth,
	"invalidapikey": fault.ModelAuth, "api_key_invalid": fault.ModelAuth, "permission_denied": fault.ModelAuth,
	"permission_error": fault.ModelAuth, "permission_denied_error": fault.ModelAuth,

	"content_filter": fault.ModelRefused, "content_policy_violation": fault.ModelRefused, "responsibleaipolicyviolation": fault.ModelRefused,
	"data_inspection_failed": fault.ModelRefused, "content_filter responsibleaipolicyviolation": fault.ModelRefused,
	"moderation_blocked": fault.ModelRefused, "prompt_blocked": fault.ModelRefused,

	"rate_limit_exceeded": fault.ModelRateLimited, "rate_limit_error": fault.ModelRateLimited, "throttling_error": fault.ModelRateLimited,
	"throttlingexception": fault.ModelRateLimited, "too_many_requests": fault.ModelRateLimited, "resource_exhausted": fault.ModelRateLimited,
	"rate_limit_reached_error": fault.ModelRateLimited, "rate_limited": fault.ModelRateLimited,

	"overloaded_error": fault.ModelUnavailable, "engine_overloaded_error": fault.ModelUnavailable, "server_overloaded": fault.ModelUnavailable,
	"service_unavailable": fault.ModelUnavailable, "server_error": fault.ModelUnavailable, "internal_server_error": fault.ModelUnavailable,
	"unavailable": fault.ModelUnavailable,
}

// classify sets kind and retry from code, type, status and words.
func (f *Failure) classify(code, kind string) {
	w := f.Words
	// A spent account and a request that can never pass both come as rate limits, and as nothing else.
	if tooBigForever(w) {
		f.Kind = fault.ModelOverflow
		return
	}
	k, known := codes[code]
	if !known {
		k, known = codes[kind]
	}
	if known && k == fault.ModelUnavailable && f.Status >= 400 && f.Status < 500 && f.Status != 408 && f.Status != 409 && f.Status != 429 {
		known = false // "server_error" on a 400 says nothing
	}
	if !known {
		k = f.byStatus()
	}
	switch k {
	case fault.ModelRateLimited:
		if quotaWords(w) && f.wait == 0 {
			k = fault.ModelQuota
		}
	case fault.ModelUnavailable, fault.ModelRejected, fault.ModelProtocol:
		k = f.byWords(k, !known && kind == "invalid_request_error")
	case fault.ModelAuth:
		if f.Status != 401 && refusalWords(w) {
			k = fault.ModelRefused
		}
		if quotaWords(w) {
			k = fault.ModelQuota
		}
	}
	f.Kind = k
	f.Retry = k == fault.ModelRateLimited || k == fault.ModelUnavailable
}

func (f *Failure) byStatus() fault.Kind {
	switch s := f.Status; {
	case s == 401 || s == 403 || s == 407:
		return fault.ModelAuth
	case s == 402:
		return fault.ModelQuota
	case s == 413:
		return fault.ModelOverflow
	case s == 429:
		return fault.ModelRateLimited
	case s == 408 || s == 409 || s == 425 || s == 499:
		return fault.ModelUnavailable
	case s == 501 || s == 505:
		return fault.ModelRejected
	case s >= 500:
		return fault.ModelUnavailable
	}
	return fault.ModelRejected
}

// byWords looks through an unspecific status. The order is that of the consequences: a full context can be made
// smaller, a refusal is an answer, an account must be filled, a wait must be kept. ours says that the body calls it
// our mistake.
func (f *Failure) byWords(k fault.Kind, ours bool) fault.Kind {
	w := f.Words
	switch {
	case overflowWords(w):
		return fault.ModelOverflow
	case refusalWords(w):
		return fault.ModelRefused
	case quotaWords(w):
		return fault.ModelQuota
	case k == fault.ModelRejected && f.Status < 500 && AnyOf(w, "rate limit", "too many requests", "throttl"):
		return fault.ModelRateLimited
	case k == fault.ModelRejected && f.Status < 300 && AnyOf(w, "overloaded", "try again", "temporarily", "timed out", "timeout", "internal error", "unavailable", "bad gateway"):
		return fault.ModelUnavailable
	case k == fault.ModelRejected && f.Status < 500 && AnyOf(w, "api key", "api_key", "apikey") && AnyOf(w, "invalid", "incorrect", "not valid", "missing", "expired"):
		return fault.ModelAuth
	case k == fault.ModelUnavailable && f.Status >= 500 && (ours && f.Status != http.StatusServiceUnavailable || AnyOf(w, "unsupported value", "unsupported parameter", "unsupported_value", "unsupported_parameter")):
		// Gateways wrap a refusal of theirs, or of the server behind them, into a 500.
		return fault.ModelRejected
	}
	return k
}

// tooBigForever finds the rate limit that no wait satisfies: the request alone is larger than what a minute allows.
func tooBigForever(w string) bool {
	return strings.Contains(w, "request too large") && AnyOf(w, "must be reduced", "reduce your")
}

// overflowWords knows the wordings of a prompt that is too long. Everything about rates is out: "too many tokens"
// per minute is not a full context.
func overflowWords(w string) bool {
	if AnyOf(w, "per minute", "per day", "per second", "rate limit", "throttl", "quota", " tpm", "(tpm)") {
		return false
	}
	if AnyOf(w, "context_length_exceeded", "prompt is too long", "prompt too long", "prompt exceeds", "input is too long", "input too long",
		"message is too long", "conversation is too long", "request too large", "request body too large", "contextwindowexceeded",
		"maximum prompt length", "reduce the length of the", "reduce the length of your", "reduce the number of input", "reduce your prompt",
		"exceeds the available context", "context size has been exceeded", "range of input length", "model token limit",
		"prompt contains too many tokens", "input_tokens_limit") {
		return true
	}
	// Said of any text that is too long, a call's id among them.
	if strings.Contains(w, "string_above_max_length") {
		return strings.Contains(w, "content")
	}
	exceeds := AnyOf(w, "exceed", "too long", "too large", "longer than", "larger than", "greater than", "maximum", "must be <=", "over the limit", "too many")
	if exceeds && AnyOf(w, "context length", "context window", "context size", "context limit", "context_length", "context_window", "n_ctx",
		"maximum model length", "max_model_len", "maximum sequence length", "max context") {
		return true
	}
	// A limit on what is to be generated is a setting, not a long prompt.
	if AnyOf(w, "completion tokens", "max_completion_tokens", "max_tokens is too large", "max_tokens must", "'max_tokens'") {
		return false
	}
	return exceeds && strings.Contains(w, "token") &&
		AnyOf(w, "input token", "prompt token", "number of tokens", "token count", "tokens in the prompt", "message token", "total tokens", "token limit", "inputs` tokens", "tokens > ", "requested tokens", "too many tokens")
}

func quotaWords(w string) bool {
	return AnyOf(w, "insufficient_quota", "insufficient quota", "exceeded your current quota", "exceeded your quota", "check your plan and billing", "credit balance",
		"insufficient balance", "insufficient credit", "insufficient funds", "out of credits", "no credits", "more credits", "payment required", "billing hard limit",
		"spending limit", "budget has been exceeded", "exceeded budget", "account is not active", "overdue", "余额不足", "欠费")
}

func refusalWords(w string) bool {
	return AnyOf(w, "content_filter", "content filter", "content management policy", "content policy", "content_policy", "responsible ai", "responsibleai",
		"safety system", "moderation", "flagged", "inappropriate content", "data_inspection_failed", "prohibited content", "sensitive content")
}
