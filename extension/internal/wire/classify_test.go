package wire

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"aidb/extension/internal/fault"
)

// wrapped puts a message into the standard error body.
func wrapped(message, code string) string {
	return string(append(AppendString([]byte(`{"error":{"message":`), message), `,"type":"invalid_request_error","param":null,"code":`+code+`}}`...))
}

func TestClassify_Overflow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		text   string
	}{
		"OpenAI":                 {400, "This model's maximum context length is 8192 tokens. However, your messages resulted in 8298 tokens. Please reduce the length of the messages."},
		"OpenAI, newer":          {400, "Your input exceeds the context window of this model. Please adjust your input and try again."},
		"Z.ai":                   {400, "Prompt exceeds max length"},
		"Anthropic":              {400, "prompt is too long: 213462 tokens > 200000 maximum"},
		"Anthropic with limit":   {400, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again"},
		"Bedrock":                {400, "ValidationException: Input is too long for requested model."},
		"Gemini":                 {400, "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)."},
		"xAI":                    {400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens."},
		"Groq":                   {400, "Please reduce the length of the messages or completion."},
		"OpenRouter":             {400, "This endpoint's maximum context length is 262144 tokens. However, you requested about 300000 tokens"},
		"Copilot":                {400, "prompt token count of 150000 exceeds the limit of 128000"},
		"GitHub models":          {413, "Request body too large for gpt-4o model. Max size: 8000 tokens."},
		"llama.cpp":              {400, "the request exceeds the available context size. try increasing the context size or enable context shift"},
		"llama.cpp as 500":       {500, "context size has been exceeded."},
		"llama-cpp-python":       {400, "Requested tokens (5000) exceed context window of 4096"},
		"LM Studio":              {400, "The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length"},
		"MiniMax":                {400, "invalid params, context window exceeds limit"},
		"Kimi":                   {400, "Invalid request: Your request exceeded model token limit: 131072"},
		"Mistral":                {400, "Prompt contains 70000 tokens and 0 draft tokens, too large for model with 32768 maximum context length"},
		"Ollama":                 {400, "prompt too long; exceeded max context length by 100918 tokens"},
		"vLLM":                   {400, "This model's maximum context length is 262144 tokens. However, you requested 0 output tokens and your prompt contains at least 262145 input tokens."},
		"vLLM, other":            {400, "The decoder prompt (length 5000) is longer than the maximum model length of 4096."},
		"SGLang":                 {400, "The input (5000 tokens) is longer than the model's context length (4096 tokens)."},
		"TGI":                    {422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 512 `max_new_tokens`"},
		"DashScope":              {400, "Range of input length should be [1, 30720]"},
		"Cohere":                 {400, "too many tokens: the total number of tokens in the prompt exceeds the limit of 4081"},
		"LiteLLM":                {400, "litellm.ContextWindowExceededError: AzureException - too long"},
		"watsonx":                {400, "the number of input tokens 5000 cannot exceed the total tokens limit 4096 for this model"},
		"a rate nobody can meet": {429, "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 44000. The input or output tokens must be reduced in order to run successfully."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := answered(c.status, http.Header{}, []byte(wrapped(c.text, "null")), time.Now())
			require.Equal(t, fault.ModelOverflow, f.Kind)
			require.False(t, f.Retry)
			require.Contains(t, f.Fault("http://x/v1", 1, scrubber{}.Text).Message, "context")
		})
	}
	for _, body := range []string{wrapped("whatever", `"context_length_exceeded"`), `{"error":{"type":"exceed_context_size_error","message":"x","n_ctx":4096}}`} {
		require.Equal(t, fault.ModelOverflow, answered(400, http.Header{}, []byte(body), time.Now()).Kind)
	}
}

func TestClassify_Others(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		body   string
		kind   fault.Kind
		retry  bool
		text   string
	}{
		"key":                       {401, wrapped("Incorrect API key provided: sk-a***b.", `"invalid_api_key"`), fault.ModelAuth, false, "Incorrect API key"},
		"key as text":               {401, `{"error":"invalid token"}`, fault.ModelAuth, false, "invalid token"},
		"key without body":          {401, "", fault.ModelAuth, false, "Unauthorized"},
		"key as 400":                {400, wrapped("API key not valid. Please pass a valid API key.", "null"), fault.ModelAuth, false, "API key not valid"},
		"forbidden":                 {403, wrapped("Country, region, or territory not supported", `"unsupported_country_region_territory"`), fault.ModelAuth, false, "Country"},
		"forbidden by moderation":   {403, `{"error":{"code":403,"message":"Your chosen model requires moderation and your input was flagged","metadata":{"reasons":["violence"]}}}`, fault.ModelRefused, false, "violence"},
		"quota":                     {429, wrapped("You exceeded your current quota, please check your plan and billing details.", `"insufficient_quota"`), fault.ModelQuota, false, "quota"},
		"quota by words":            {429, wrapped("You exceeded your current quota, please check your plan and billing details.", "null"), fault.ModelQuota, false, "quota"},
		"credit":                    {402, `{"error":{"message":"This request requires more credits","code":402}}`, fault.ModelQuota, false, "credits"},
		"credit as 400":             {400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API."}}`, fault.ModelQuota, false, "credit balance"},
		"quota of a minute":         {429, `{"error":{"code":429,"message":"You exceeded your current quota. Please retry in 23.4s.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"x","retryDelay":"23s"}]}}`, fault.ModelRateLimited, true, "retry in"},
		"rate":                      {429, wrapped("Rate limit reached for requests", `"rate_limit_exceeded"`), fault.ModelRateLimited, true, "Rate limit"},
		"rate about tokens":         {429, wrapped("ThrottlingException: Too many tokens, please wait before trying again.", "null"), fault.ModelRateLimited, true, "Too many tokens"},
		"rate without body":         {429, "", fault.ModelRateLimited, true, "Too Many Requests"},
		"rate as 400":               {400, wrapped("Too many requests, slow down", "null"), fault.ModelRateLimited, true, "slow down"},
		"server":                    {500, wrapped("The server had an error while processing your request.", `"server_error"`), fault.ModelUnavailable, true, "server had an error"},
		"gateway page":              {502, "<html><head><title>502 Bad Gateway</title></head><body><center><h1>502 Bad Gateway</h1></center></body></html>", fault.ModelUnavailable, true, "502 Bad Gateway"},
		"gateway text":              {503, "no healthy upstream", fault.ModelUnavailable, true, "no healthy upstream"},
		"gateway time":              {504, "", fault.ModelUnavailable, true, "Gateway Timeout"},
		"between gateways":          {524, "error code: 524", fault.ModelUnavailable, true, "524"},
		"overloaded":                {529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, fault.ModelUnavailable, true, "Overloaded"},
		"overloaded as 429":         {429, `{"error":{"type":"engine_overloaded_error","message":"The engine is currently overloaded"}}`, fault.ModelUnavailable, true, "overloaded"},
		"request time":              {408, wrapped("Operation was timeout", "null"), fault.ModelUnavailable, true, "timeout"},
		"conflict":                  {409, wrapped("conflict", "null"), fault.ModelUnavailable, true, "conflict"},
		"not there":                 {404, "404 page not found\n", fault.ModelRejected, false, "404 page not found"},
		"no such model":             {404, wrapped("The model `x` does not exist", `"model_not_found"`), fault.ModelRejected, false, "does not exist"},
		"no such model, server_err": {400, `{"error":{"message":"bad","type":"server_error"}}`, fault.ModelRejected, false, "bad"},
		"not implemented":           {501, "", fault.ModelRejected, false, "Not Implemented"},
		"bad request":               {400, wrapped("Unsupported value", `"unsupported_value"`), fault.ModelRejected, false, "Unsupported value"},
		"bad request as 500":        {500, `{"error":{"message":"Unsupported value: 'temperature'","type":"invalid_request_error","param":"temperature","code":"unsupported_value"}}`, fault.ModelRejected, false, "temperature"},
		"not ready, and our fault":  {503, wrapped("Loading model", "null"), fault.ModelUnavailable, true, "Loading"},
		"a limit on the reply":      {400, wrapped("max_tokens is too large: 100000. This model supports at most 4096 completion tokens", "null"), fault.ModelRejected, false, "too large"},
		"an id that is too long":    {400, wrapped("Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40", `"string_above_max_length"`), fault.ModelRejected, false, "string too long"},
		"filter":                    {400, `{"error":{"message":"The response was filtered","code":"content_filter","innererror":{"code":"ResponsibleAIPolicyViolation"}}}`, fault.ModelRefused, false, "filtered"},
		"filter by words":           {400, wrapped("Your prompt was rejected by our safety system", "null"), fault.ModelRefused, false, "safety"},
		"validator's list":          {422, `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","parallel_tool_calls"],"msg":"Extra inputs are not permitted","input":false}]},"type":"invalid_request_error"}`, fault.ModelRejected, false, "body.parallel_tool_calls: Extra inputs"},
		"validator's list, plain":   {422, `{"detail":[{"loc":["body","messages",0,"role"],"msg":"field required"}]}`, fault.ModelRejected, false, "body.messages.0.role: field required"},
		"list of messages":          {400, `{"error":{"message":["a","b"]}}`, fault.ModelRejected, false, "a; b"},
		"list of errors":            {400, `{"errors":[{"message":"first"},{"message":"second"}]}`, fault.ModelRejected, false, "first"},
		"upstream's words":          {400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":\"tools not allowed\"}"}}}`, fault.ModelRejected, false, "tools not allowed"},
		"problem document":          {400, `{"type":"about:blank","title":"Bad Request","status":400,"detail":"no tools here"}`, fault.ModelRejected, false, "no tools here"},
		"just a string":             {400, `"no"`, fault.ModelRejected, false, "no"},
		"an object nobody knows":    {400, `{"x":{"y":1}}`, fault.ModelRejected, false, `{"x":{"y":1}}`},
		"cut":                       {500, `{"error":{"message":"trunca`, fault.ModelUnavailable, true, "trunca"},
		"nested for ever":           {400, strings.Repeat(`{"error":`, 9000) + "1" + strings.Repeat("}", 9000), fault.ModelRejected, false, ""},
		"not UTF-8":                 {400, "a\xff\x00b\u2028c", fault.ModelRejected, false, "a\uFFFDb c"},
		"redirect refused":          {301, "", fault.ModelRejected, false, "Moved"},
		"no status known":           {599, "", fault.ModelUnavailable, true, "no reason given"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := answered(c.status, http.Header{}, []byte(c.body), time.Now())
			require.Equal(t, c.kind, f.Kind, f.Text)
			require.Equal(t, c.retry, f.Retry, f.Text)
			require.Contains(t, f.Text, c.text)
			e := f.Fault("http://x/v1/chat/completions", 2, scrubber{}.Text)
			require.Contains(t, e.Message, "http://x/v1/chat/completions")
			require.Contains(t, e.Message, "(tried 2 times)")
			require.NotContains(t, e.Message, "\n")
			require.LessOrEqual(t, len(e.Message), 1400)
		})
	}
}

func TestAnswered_SaysWhatToDo(t *testing.T) {
	t.Parallel()
	f := answered(400, http.Header{"X-Request-Id": {"req_1"}}, []byte(`{"error":{"message":"no","param":"temperature"}}`), time.Now())
	e := f.Fault("http://x", 1, scrubber{}.Text)
	require.Equal(t, `The server's name for the request is "req_1".`, e.Detail)
	require.Contains(t, e.Hint, `"temperature"`)
	require.Contains(t, answered(404, http.Header{}, nil, time.Now()).Fault("http://x", 1, scrubber{}.Text).Hint, "url")
	require.Contains(t, answered(401, http.Header{}, nil, time.Now()).Fault("http://x", 1, scrubber{}.Text).Hint, "credentials")
	require.False(t, answered(500, http.Header{"X-Should-Retry": {"false"}}, nil, time.Now()).Retry)
	require.Contains(t, answered(400, http.Header{}, nil, time.Now()).Text, "context length")
}

func TestWaits(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		header http.Header
		body   string
		want   time.Duration
	}{
		"seconds":                {http.Header{"Retry-After": {"2"}}, "", 2 * time.Second},
		"fraction":               {http.Header{"Retry-After": {"0.5"}}, "", 500 * time.Millisecond},
		"date":                   {http.Header{"Retry-After": {"Sun, 01 Mar 2026 12:00:03 GMT"}}, "", 3 * time.Second},
		"date gone by":           {http.Header{"Retry-After": {"Sun, 01 Mar 2026 11:00:00 GMT"}}, "", 0},
		"zero":                   {http.Header{"Retry-After": {"0"}}, "", 0},
		"negative":               {http.Header{"Retry-After": {"-5"}}, "", 0},
		"nonsense":               {http.Header{"Retry-After": {"soon"}}, "", 0},
		"milliseconds":           {http.Header{"Retry-After-Ms": {"250"}, "Retry-After": {"9"}}, "", 250 * time.Millisecond},
		"text":                   {http.Header{}, "Rate limit reached: Limit 15000, Used 11972, Requested 4351. Please try again in 350ms.", 350 * time.Millisecond},
		"text, minutes":          {http.Header{}, "Please try again in 7m12.5s. Visit us", 7*time.Minute + 12500*time.Millisecond},
		"text, seconds":          {http.Header{}, "Please retry in 23.5s.", 23500 * time.Millisecond},
		"text, words":            {http.Header{}, "Please wait 30 seconds before trying again", 30 * time.Second},
		"text, after":            {http.Header{}, "retry after 2 minutes", 2 * time.Minute},
		"text without a number":  {http.Header{}, "please try again later (request id 2025)", 0},
		"text without a unit":    {http.Header{}, "please try again in 5", 0},
		"the header wins":        {http.Header{"Retry-After": {"1"}}, "try again in 9s", time.Second},
		"reset of what is spent": {http.Header{"X-Ratelimit-Remaining-Tokens": {"0"}, "X-Ratelimit-Reset-Tokens": {"350ms"}, "X-Ratelimit-Reset-Requests": {"6m0s"}}, "", 350 * time.Millisecond},
		"reset of what is not":   {http.Header{"X-Ratelimit-Reset-Requests": {"6m0s"}}, "", 0},
		"reset as a moment":      {http.Header{"X-Ratelimit-Reset": {"1772366404"}}, "", 4 * time.Second},
		"reset in milliseconds":  {http.Header{"X-Ratelimit-Reset": {"1772366400700"}}, "", 700 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, answered(429, c.header, []byte(wrapped(c.body, "null")), now).wait)
		})
	}
	inBody := answered(429, http.Header{}, []byte(`{"error":{"code":429,"message":"x","details":[{"retryDelay":"1.5s"}]}}`), now)
	require.Equal(t, 1500*time.Millisecond, inBody.wait)
}

func TestRetry_Delay(t *testing.T) {
	t.Parallel()
	r := Retry{}.withDefaults()
	require.Equal(t, 3, r.Tries)
	for n, want := range []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second} {
		d, ok := r.delay(n+1, 0, 0, time.Hour)
		require.True(t, ok)
		require.Equal(t, want, d)
	}
	d, _ := r.delay(1, 0, 0.999, time.Hour)
	require.InDelta(t, 500*time.Millisecond, d, float64(time.Millisecond))
	d, ok := r.delay(60, 0, 0.999, time.Hour)
	require.True(t, ok)
	require.LessOrEqual(t, d, 20*time.Second)
	d, ok = r.delay(1, 90*time.Second, 0, time.Hour)
	require.True(t, ok)
	require.Equal(t, 90*time.Second, d)
	_, ok = r.delay(1, 90*time.Second, 0, time.Minute)
	require.False(t, ok)
	require.Negative(t, Retry{Tries: -1}.withDefaults().Tries)
}

func TestScrubber(t *testing.T) {
	t.Parallel()
	key := Credentials{APIKey: `sk-"sec/ret"-0001`}
	_, h, err := key.Header("")
	require.NoError(t, err)
	s := newscrubber(key, h)
	for _, in := range []string{
		`invalid token 'Bearer sk-"sec/ret"-0001'`, `sk-\"sec/ret\"-0001`, `sk-"sec\/ret"-0001`, `sk-%22sec%2Fret%22-0001`,
	} {
		require.NotContains(t, s.Text(in), "ret", in)
		require.NotContains(t, string(s.body([]byte(in), minInError)), "0001", in)
	}
	basic := Credentials{BasicAuth: "user:passw0rd"}
	_, h, err = basic.Header("")
	require.NoError(t, err)
	require.Equal(t, "Basic dXNlcjpwYXNzdzByZA==", h)
	s = newscrubber(basic, h)
	require.NotContains(t, s.Text("dXNlcjpwYXNzdzByZA== user:passw0rd passw0rd"), "passw0rd")
	require.NotContains(t, s.Text("got dXNlcjpwYXNzdzByZA=="), "dXN")
	require.Equal(t, "someone else's Bearer [redacted] here", newscrubber(Credentials{}, "").Text("someone else's Bearer abcdefgh.ijk here"))
	// A local server's non-key is a word.
	word := newscrubber(Credentials{APIKey: "ollama"}, "Bearer ollama")
	require.Equal(t, "ollama is a llama", string(word.body([]byte("ollama is a llama"), minInReply)))
}
