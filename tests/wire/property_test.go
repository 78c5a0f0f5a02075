package wire

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"aidb/tests/servertest"
)

// rawServer answers each request with bytes as they are.
type rawServer struct {
	listener net.Listener
	mu       sync.Mutex
	next     func(*http.Request) sent
	bodies   []byte // all that was sent since the last plan
}

func startRaw(t testing.TB) *rawServer {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &rawServer{listener: l}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(c)
		}
	}()
	return s
}

func (s *rawServer) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	request, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, request.Body)
	s.mu.Lock()
	answer := s.next(request)
	s.bodies = append(append(s.bodies, answer.body...), '\n')
	s.mu.Unlock()
	for _, piece := range answer.pieces {
		if _, err := c.Write(piece); err != nil {
			return
		}
	}
	if tcp, ok := c.(*net.TCPConn); ok && answer.reset {
		_ = tcp.SetLinger(0)
	}
}

// plan sets what the next requests get and forgets what was sent.
func (s *rawServer) plan(next func(*http.Request) sent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next, s.bodies = next, nil
}

func (s *rawServer) sentBodies() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.bodies)
}

// wellFormed are the replies that are mutated: answers, calls, streams and errors of each provider.
var wellFormed = map[string][]string{
	"openai_completions": {
		`{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Done."},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}`,
		`{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"id":"a","type":"function","function":{"name":"order_total","arguments":"{\"order_id\":<n>}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}`,
		`{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"","tool_calls":[{"id":"a","type":"function","function":{"name":"order_total","arguments":{"order_id":<n>}}},{"id":"b","function":{"name":"save_note","arguments":"{\"text\":\"w<n>\"}"}}]},"finish_reason":"tool_calls"}]}`,
		`{"choices":[{"message":{"content":"<tool_call>{\"name\":\"order_total\",\"arguments\":{\"order_id\":<n>}}</tool_call>"},"finish_reason":"stop"}]}`,
		`data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"Do"},"finish_reason":null}]}` + "\n\n" + `data: {"choices":[{"index":0,"delta":{"content":"ne"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n",
		`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"order_total","arguments":"{\"order_id\":<n>}"}}]}}]}` + "\n\n" + `data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n",
		`{"error":{"message":"Rate limit reached, try again in 1ms","type":"rate_limit_error","param":null,"code":"rate_limit_exceeded"}}`,
	},
	"anthropic_messages": {
		`{"id":"x","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Done."}],"stop_reason":"end_turn","usage":{"input_tokens":5,"output_tokens":2}}`,
		`{"content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"a","name":"order_total","input":{"order_id":<n>}}],"stop_reason":"tool_use"}`,
		`{"content":[{"type":"text","text":"so"},{"type":"tool_use","id":"a","name":"save_note","input":{"text":"w<n>"}},{"type":"tool_use","id":"b","name":"order_total","input":{"order_id":<n>}}],"stop_reason":"tool_use"}`,
		"event: message_start\ndata: " + `{"type":"message_start","message":{"content":[],"usage":{"input_tokens":1}}}` +
			"\n\nevent: content_block_start\ndata: " + `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` +
			"\n\nevent: content_block_delta\ndata: " + `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Done."}}` +
			"\n\nevent: message_stop\ndata: " + `{"type":"message_stop"}` + "\n\n",
		"event: content_block_start\ndata: " + `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"order_total","input":{}}}` +
			"\n\nevent: content_block_delta\ndata: " + `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"order_id\":<n>}"}}` +
			"\n\nevent: message_delta\ndata: " + `{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":3}}` + "\n\n",
		`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`,
	},
	"openai_responses": {
		`{"id":"x","status":"completed","model":"m","output":[{"type":"message","content":[{"type":"output_text","text":"Done."}]}],"usage":{"input_tokens":5,"output_tokens":2}}`,
		`{"status":"completed","output":[{"type":"reasoning","id":"r","encrypted_content":"e"},{"type":"function_call","call_id":"a","name":"order_total","arguments":"{\"order_id\":<n>}"}]}`,
		`{"output":[{"type":"function_call","call_id":"a","name":"save_note","arguments":"{\"text\":\"w<n>\"}"},{"type":"function_call","call_id":"b","name":"order_total","arguments":"{\"order_id\":<n>}"}]}`,
		"event: response.output_text.delta\ndata: " + `{"type":"response.output_text.delta","delta":"Do"}` + "\n\nevent: response.completed\ndata: " +
			`{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Done."}]}]}}` + "\n\n",
		"event: response.output_item.done\ndata: " + `{"type":"response.output_item.done","item":{"type":"function_call","call_id":"a","name":"order_total","arguments":"{\"order_id\":<n>}"}}` +
			"\n\nevent: response.completed\ndata: " + `{"type":"response.completed","response":{"status":"completed","output":[]}}` + "\n\n",
		`{"error":{"message":"slow down, try again in 1ms","code":"rate_limit_exceeded"}}`,
	},
}

// TestAnyReply_IsAnAnswerOrAClearError sends what no server should: the same each time, so that what fails is what was
// changed. AIDB_WIRE_SEED=random sends other things, a number repeats one failure; AIDB_WIRE_RUNS sets how often.
func TestAnyReply_IsAnAnswerOrAClearError(t *testing.T) {
	runs := number("AIDB_WIRE_RUNS", 120)
	for provider := range wellFormed {
		t.Run(provider, func(t *testing.T) {
			first := uint64(212925671626285600)
			if os.Getenv("AIDB_WIRE_SEED") == "random" {
				first = rand.Uint64()
			}
			if fixed := number("AIDB_WIRE_SEED", 0); fixed > 0 {
				first, runs = uint64(fixed), 1
			}
			mangled(t, provider, first>>1, runs)
		})
	}
}

func number(variable string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return otherwise
}

func mangled(t *testing.T, provider string, first uint64, runs int) {
	raw := startRaw(t)
	user := caller(t, map[string]string{
		"aidb.model_retries": "1", "aidb.model_retry_delay": "1ms", "aidb.model_timeout": "2s", "client_min_messages": "error",
	})
	conn, name := user.Conn, "mangled "+provider
	sqlTool(t, conn, "order_total", "The total of an order.", json.RawMessage(`{"properties":{"order_id":{"type":"integer"}},"required":["order_id"]}`), "SELECT '41.50' AS total WHERE true<used>")
	defer servertest.Exec(t, conn, "SELECT aidb.delete_tool('order_total')")
	sqlTool(t, conn, "save_note", "Keeps a text.", json.RawMessage(`{"properties":{"text":{"type":"string"}},"required":["text"]}`), "SELECT 'saved' AS note WHERE true<used>")
	defer servertest.Exec(t, conn, "SELECT aidb.delete_tool('save_note')")
	servertest.Exec(t, conn, `SELECT aidb.create_model($1, $2, $3::jsonb, validate => false)`, name, provider,
		map[string]any{"model": "m", "url": "http://" + raw.listener.Addr().String() + "/v1"})
	servertest.Exec(t, conn, `SELECT * FROM aidb.create_agent($1, 'Answer briefly.', $1, tools => '{order_total,save_note}', timeout => 30, max_iterations => 6)`, name)
	backend := servertest.Value(t, conn, "SELECT pg_backend_pid()")
	answers, toolRuns := 0, 0
	defer func() { t.Logf("%d runs: %d answers, %d tool runs", runs, answers, toolRuns) }()
	for i := range runs {
		seed := first + uint64(i)
		raw.plan(plan(provider, seed))
		complain := fmt.Sprintf("AIDB_WIRE_SEED=%d", seed)
		var r *ran
		require.NotPanics(t, func() { r = user.ask(seeded{t, complain}, name, "Go.") }, complain)
		require.Equal(t, backend, servertest.Value(t, conn, "SELECT pg_backend_pid()"), complain)
		if r.failed() {
			require.True(t, utf8.ValidString(r.Error) && len(r.Error) < 4000 && len(r.Error) > 10, "%s: %q", complain, r.Error)
			require.NotContains(t, r.Error, "the aidb runtime failed", complain)
		}
		if !r.failed() {
			answers++
		}
		toolRuns += len(r.tools())
		for _, c := range r.tools() {
			require.NoError(t, given(c, raw.sentBodies()), "%s: %s %s was not asked for in\n%s", complain, c.Name, c.Raw, raw.sentBodies())
		}
	}
}

// seeded puts the seed beside what fails.
type seeded struct {
	testing.TB
	seed string
}

func (s seeded) Errorf(format string, args ...any) {
	s.Helper()
	s.TB.Errorf(s.seed+": "+format, args...)
}

// plan is a sequence of replies, the same for the same seed.
func plan(provider string, seed uint64) func(*http.Request) sent {
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // it must be repeatable
	requests := 0
	return func(*http.Request) sent {
		requests++
		bases := wellFormed[provider]
		body := []byte(strings.ReplaceAll(bases[r.IntN(len(bases))], "<n>", strconv.Itoa(100000+r.IntN(900000))))
		if requests > 4 {
			body = []byte(bases[0])
		}
		kind := "application/json"
		if strings.HasPrefix(string(body), "data:") || strings.HasPrefix(string(body), "event:") {
			kind = "text/event-stream"
		}
		for range r.IntN(3) {
			if r.IntN(2) == 0 {
				body = twist(r, body)
			} else {
				body = damage(r, body)
			}
		}
		return wrap(r, body, kind, 200)
	}
}

var words = regexp.MustCompile(`[0-9]+|[A-Za-z]{2,}`)

// given tells whether what a tool was run with stands in what was sent: every number and word of it, whole.
func given(c call, body string) error {
	var arguments map[string]any
	if json.Unmarshal([]byte(c.Raw), &arguments) != nil {
		return fmt.Errorf("the arguments are no object")
	}
	for _, v := range arguments {
		text, isText := v.(string)
		if !isText {
			b, _ := json.Marshal(v)
			text = string(b)
		}
		for _, w := range words.FindAllString(text, -1) {
			if w[0] > '9' && strings.Contains(body, w) {
				continue
			}
			if ok, _ := regexp.MatchString(`(^|[^0-9])`+regexp.QuoteMeta(w)+`([^0-9]|$)`, body); !ok {
				return fmt.Errorf("%q was not sent", w)
			}
		}
	}
	return nil
}
