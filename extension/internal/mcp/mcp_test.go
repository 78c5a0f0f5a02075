package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"aidb/extension/internal/egress"
	"aidb/extension/internal/fault"
)

var longAgo = time.Unix(0, 0)

func TestDefine(t *testing.T) {
	t.Parallel()
	object := map[string]any{"type": "object"}
	for _, c := range []struct {
		name    string
		tool    sdk.Tool
		problem string
		want    Definition
	}{
		{"as it is", sdk.Tool{Name: "a.b-c_9", Description: "Adds.", InputSchema: object}, "", Definition{Description: "Adds.", Schema: json.RawMessage(`{"type":"object"}`)}},
		{"what it returns", sdk.Tool{Name: "a", OutputSchema: map[string]any{"type": "object", "title": "x\x00"}}, "", Definition{Schema: json.RawMessage(`{"type":"object"}`), Output: json.RawMessage(`{"title":"x","type":"object"}`)}},
		{"too much about it", sdk.Tool{Name: "a", OutputSchema: map[string]any{"x": strings.Repeat("s", maxSchema)}}, "", Definition{Schema: json.RawMessage(`{"type":"object"}`)}},
		{"no schema", sdk.Tool{Name: "a"}, "", Definition{Schema: json.RawMessage(`{"type":"object"}`)}},
		{"the title stands in", sdk.Tool{Name: "a", Title: "T", InputSchema: object}, "", Definition{Description: "T", Schema: json.RawMessage(`{"type":"object"}`)}},
		{"what nobody sees", sdk.Tool{Name: "a", Description: "A\u200b\u202ed\x00d\U000E0041s.\nNow", InputSchema: object}, "", Definition{Description: "Adds.\nNow", Schema: json.RawMessage(`{"type":"object"}`)}},
		{"a NUL in the schema", sdk.Tool{Name: "a", InputSchema: map[string]any{"description": "x\x00"}}, "", Definition{Schema: json.RawMessage(`{"description":"x"}`)}},
		{"no name", sdk.Tool{}, "its name", Definition{}},
		{"a space", sdk.Tool{Name: "a b"}, "its name", Definition{}},
		{"not ASCII", sdk.Tool{Name: "ä"}, "its name", Definition{}},
		{"the longest name", sdk.Tool{Name: strings.Repeat("n", 128)}, "", Definition{Schema: json.RawMessage(`{"type":"object"}`)}},
		{"a longer one", sdk.Tool{Name: strings.Repeat("n", 129)}, "its name", Definition{}},
		{"a schema that is none", sdk.Tool{Name: "a", InputSchema: "x"}, "is not an object", Definition{}},
		{"of a text", sdk.Tool{Name: "a", InputSchema: map[string]any{"type": "string"}}, "does not describe an object", Definition{}},
		{"too long", sdk.Tool{Name: "a", InputSchema: map[string]any{"x": strings.Repeat("s", maxSchema)}}, "too long", Definition{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d, problem := define(&c.tool)
			if c.problem != "" {
				require.Contains(t, problem, c.problem)
				return
			}
			require.Empty(t, problem)
			require.Equal(t, c.want.Description, d.Description)
			require.Equal(t, string(c.want.Schema), string(d.Schema))
		})
	}
	d, _ := define(&sdk.Tool{Name: "a", Description: strings.Repeat("é", maxDescription)})
	require.LessOrEqual(t, len(d.Description), maxDescription+4)
	require.True(t, strings.HasSuffix(d.Description, "…"))
}

// The pin is of everything that a model could be shown, as it was sent: also of what is taken out before it is shown.
func TestDefine_PinsAllOfIt(t *testing.T) {
	t.Parallel()
	base := func() sdk.Tool {
		return sdk.Tool{Name: "a", Title: "t", Description: "d", InputSchema: map[string]any{"type": "object", "b": 1, "a": 2}, OutputSchema: map[string]any{"x": 1}}
	}
	one := base()
	first, _ := define(&one)
	same := base()
	same.InputSchema = map[string]any{"a": 2, "b": 1, "type": "object"}
	same.Annotations = &sdk.ToolAnnotations{ReadOnlyHint: true} // a word of the server that nobody goes by
	again, _ := define(&same)
	require.Equal(t, first.Hash, again.Hash, "the order of members is no change")
	for name, change := range map[string]func(*sdk.Tool){
		"name": func(t *sdk.Tool) { t.Name = "b" }, "title": func(t *sdk.Tool) { t.Title = "x" }, "description": func(t *sdk.Tool) { t.Description = "D" },
		"something invisible": func(t *sdk.Tool) { t.Description = "d\u200b" }, "schema": func(t *sdk.Tool) { t.InputSchema = map[string]any{"type": "object"} },
		"output": func(t *sdk.Tool) { t.OutputSchema = nil },
	} {
		changed := base()
		change(&changed)
		other, _ := define(&changed)
		require.NotEqual(t, first.Hash, other.Hash, name)
	}
}

func TestParseHeaders(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]map[string]string{
		"": nil, " ": nil, `{}`: {}, `{"Authorization": "Bearer x"}`: {"Authorization": "Bearer x"}, `{"X-A": "a\tb"}`: {"X-A": "a\tb"},
	} {
		got, err := ParseHeaders(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	many := map[string]string{}
	for i := range maxHeaders + 1 {
		many["X-"+strings.Repeat("a", i+1)] = "x"
	}
	tooMany, err := json.Marshal(many)
	require.NoError(t, err)
	for _, text := range []string{
		`[]`, `{"a": 1}`, `{"a"`, `{"Host": "x"}`, `{"content-length": "1"}`, `{"mcp-session-id": "x"}`, `{"Mcp-Anything": "x"}`, `{"a b": "x"}`, `{"": "x"}`,
		`{"ä": "x"}`, `{"X": "secret\n"}`, `{"X": "\u0000"}`, `{"X": "` + strings.Repeat("x", maxHeader+1) + `"}`, string(tooMany),
	} {
		_, err := ParseHeaders(text)
		require.Error(t, err, text)
		require.True(t, fault.Is(err, fault.InvalidArgument))
		require.NotContains(t, err.Error(), "secret")
	}
}

func TestResult(t *testing.T) {
	t.Parallel()
	text := func(s string) sdk.Content { return &sdk.TextContent{Text: s} }
	size := int64(7)
	for _, c := range []struct {
		name       string
		r          sdk.CallToolResult
		text, json string
	}{
		{"nothing", sdk.CallToolResult{}, "", `{"content":[]}`},
		{"texts", sdk.CallToolResult{Content: []sdk.Content{text("a\x00"), text("b")}}, "a\nb", `{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`},
		{"an image", sdk.CallToolResult{Content: []sdk.Content{&sdk.ImageContent{Data: []byte("abc"), MIMEType: "image/png"}}}, "[image image/png 3 bytes]",
			`{"content":[{"type":"image","mimeType":"image/png","data":"YWJj","size":3}]}`},
		{"a sound", sdk.CallToolResult{Content: []sdk.Content{&sdk.AudioContent{Data: []byte("abc"), MIMEType: "audio/wav"}}}, "[audio audio/wav 3 bytes]",
			`{"content":[{"type":"audio","mimeType":"audio/wav","data":"YWJj","size":3}]}`},
		{"a link", sdk.CallToolResult{Content: []sdk.Content{&sdk.ResourceLink{URI: "file:///x", Name: "x", Description: "a link", Size: &size}}}, "[resource link x file:///x 7 bytes] a link",
			`{"content":[{"type":"resource_link","uri":"file:///x","name":"x","description":"a link","size":7}]}`},
		{"a resource", sdk.CallToolResult{Content: []sdk.Content{&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "u", Text: "in"}}}}, "[resource u]\nin",
			`{"content":[{"type":"resource","uri":"u","text":"in"}]}`},
		{"an empty one", sdk.CallToolResult{Content: []sdk.Content{&sdk.EmbeddedResource{}}}, "[resource]", `{"content":[{"type":"resource"}]}`},
		{"a kind of tomorrow", sdk.CallToolResult{Content: []sdk.Content{nil}}, "[content of a kind that is not known]", `{"content":[{"type":"other","text":"content of a kind that is not known"}]}`},
		{"an object that the text repeats", sdk.CallToolResult{Content: []sdk.Content{text(`{"n": 9007199254740993}`)}, StructuredContent: map[string]any{"n": 9007199254740993.0}},
			`{"n":9007199254740993}`, `{"content":[],"structuredContent":{"n":9007199254740993}}`},
		{"an object beside another text", sdk.CallToolResult{Content: []sdk.Content{text("so")}, StructuredContent: map[string]any{"n": 1}},
			"so\n{\"n\":1}", `{"content":[{"type":"text","text":"so"}],"structuredContent":{"n":1}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newResult(&c.r)
			require.Equal(t, c.text, r.Text(1000))
			require.JSONEq(t, c.json, string(r.JSON(1000)))
		})
	}
	require.True(t, newResult(&sdk.CallToolResult{IsError: true}).Failed)
}

// What is beyond the limit is left out, and each place where it is says so.
func TestResult_IsBounded(t *testing.T) {
	t.Parallel()
	long := newResult(&sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: strings.Repeat("é", 1000)}, &sdk.ImageContent{Data: make([]byte, 3000)}}})
	shown := long.Text(100)
	require.Contains(t, shown, "[truncated: the result has ")
	require.Less(t, len(shown), 200)
	var out struct {
		Content   []struct{ Truncated bool }
		Truncated bool
	}
	for limit := int64(0); limit < 3000; limit += 97 {
		text := long.JSON(limit)
		require.Less(t, int64(len(text)), limit+400)
		require.NoError(t, json.Unmarshal(text, &out))
		require.True(t, out.Truncated)
	}
	structured := newResult(&sdk.CallToolResult{StructuredContent: map[string]any{"x": strings.Repeat("x", 500)}})
	require.JSONEq(t, `{"content":[],"truncated":true}`, string(structured.JSON(100)))
	require.Contains(t, string(structured.JSON(1000)), "xxx")
}

func TestLine(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a b c", line(" a\n\tb\x00  \u200bc\u202e ", 100))
	require.LessOrEqual(t, len(line(strings.Repeat("é", 1000), 100)), 104)
	require.Equal(t, "x\u200dy", visible("x\u200dy"), "a joiner is a part of words")
}

// What a server says is shown without the secrets that it was sent.
func TestScrub(t *testing.T) {
	t.Parallel()
	s := &Server{Headers: map[string]string{"Authorization": "Bearer abcdef", "X-Pin": "123"}}
	require.Equal(t, "no *** or *** but 123", s.scrub("no abcdef\nor Bearer abcdef but 123"))
}

func TestFailure(t *testing.T) {
	t.Parallel()
	srv := &Server{Name: "s"}
	late, cancel := context.WithDeadline(context.Background(), longAgo)
	defer cancel()
	for _, c := range []struct {
		name    string
		ctx     context.Context
		mark    func(*mark)
		err     error
		outcome Outcome
		kind    fault.Kind
		lost    bool
	}{
		{"refused by our own check", nil, nil, fault.New(fault.Privilege, "x"), NeverSent, fault.Privilege, false},
		{"no connection", nil, func(m *mark) { m.network(&url.Error{Err: errors.New("refused")}) }, errors.New("x"), NeverSent, fault.ServerUnavailable, false},
		{"an error of the protocol", nil, func(m *mark) { m.sent.Store(true) }, &jsonrpc.Error{Code: -32000, Message: "no"}, Answered, fault.ToolFailed, false},
		{"an unknown session", nil, func(m *mark) { m.sent.Store(true); m.status.Store(404) }, errors.New("x"), Answered, fault.ServerProtocol, true},
		{"headers that do not do", nil, func(m *mark) { m.sent.Store(true); m.status.Store(401) }, errors.New("x"), Answered, fault.ServerAuth, false},
		{"too large", nil, func(m *mark) { m.sent.Store(true); m.tooLarge.Store(true) }, errors.New("x"), Answered, fault.LimitExceeded, false},
		{"too deep", nil, func(m *mark) { m.sent.Store(true); m.tooDeep.Store(true) }, errors.New("x"), Answered, fault.ServerProtocol, false},
		{"late before it left", late, nil, context.DeadlineExceeded, NeverSent, fault.ServerUnavailable, false},
		{"late after it left", late, func(m *mark) { m.sent.Store(true) }, context.DeadlineExceeded, Unknown, fault.OutcomeUnknown, false},
		{"a failed server", nil, func(m *mark) { m.sent.Store(true); m.status.Store(500) }, errors.New("x"), Unknown, fault.OutcomeUnknown, false},
		{"nonsense", nil, func(m *mark) { m.sent.Store(true); m.status.Store(200) }, errors.New("x"), Unknown, fault.OutcomeUnknown, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := &mark{}
			if c.mark != nil {
				c.mark(m)
			}
			ctx := c.ctx
			if ctx == nil {
				ctx = context.Background()
			}
			f := m.failure(ctx, srv, call, c.err)
			require.Equal(t, c.outcome, f.Outcome)
			require.Equal(t, c.kind, fault.KindOf(f))
			require.Equal(t, c.lost, f.lost)
			require.Contains(t, f.Error(), "'s'")
		})
	}
}

// An answer is read within its bounds, whole or as a stream, and one byte more is too much.
func TestBody_Bounds(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", maxNesting)
	for _, c := range []struct {
		name, body, kind string
		status           int
		limit            int64
		large, deep      bool
		read             int
	}{
		{"at the limit", "12345", "application/json", 200, 5, false, false, 5},
		{"beyond it", "123456", "application/json", 200, 5, true, false, 5},
		{"an error is cut silently", "123456", "text/plain", 500, 5, false, false, 5},
		{"nested as deep as may be", deep, "application/json", 200, 1000, false, false, len(deep)},
		{"deeper", deep + "[", "application/json", 200, 1000, false, true, 0},
		{"brackets in a text", `"` + deep + `[[["`, "application/json", 200, 1000, false, false, len(deep) + 5},
		{"an escaped quote", `"\"` + deep + `["`, "application/json", 200, 1000, false, false, len(deep) + 5},
		{"closed ones", strings.Repeat("[]", 500), "application/json", 200, 5000, false, false, 1000},
		{"events of that size, many of them", strings.Repeat("data: 1\n\n", 100), "text/event-stream", 200, 20, false, false, 900},
		{"one event too large", "data: " + strings.Repeat("x", 50) + "\n\n", "text/event-stream; charset=utf-8", 200, 20, true, false, 0},
		{"a deep event", "data: " + deep + "[\n\n", "text/event-stream", 200, 1000, false, true, 0},
		{"deep lines that are no data", ": " + deep + "[\n\n", "text/event-stream", 200, 1000, false, false, len(deep) + 5},
		{"each event begins anew", "data: " + deep + "\r\n\r\ndata: " + deep + "\r\n\r\n", "text/event-stream", 200, 1000, false, false, 2*len(deep) + 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := &mark{}
			resp := &http.Response{StatusCode: c.status, Header: http.Header{"Content-Type": {c.kind}}, Body: io.NopCloser(strings.NewReader(c.body))}
			got, err := io.ReadAll((&carrier{limit: c.limit}).bounded(resp, m, func() {}, false))
			require.Equal(t, c.large, m.tooLarge.Load())
			require.Equal(t, c.deep, m.tooDeep.Load())
			require.Equal(t, c.large || c.deep, err != nil)
			require.Len(t, got, c.read)
		})
	}
}

// Two uses share a session only if nothing of them differs.
func TestServer_Key(t *testing.T) {
	t.Parallel()
	base := func() *Server {
		return &Server{Name: "n", URL: "u", Transport: SSE, User: "1:ap", Headers: map[string]string{"A": "1", "B": "2"}}
	}
	require.Equal(t, base().key(), base().key())
	for name, change := range map[string]func(*Server){
		"name": func(s *Server) { s.Name = "m" }, "url": func(s *Server) { s.URL = "v" }, "transport": func(s *Server) { s.Transport = StreamableHTTP },
		"user": func(s *Server) { s.User = "2:ap" }, "value": func(s *Server) { s.Headers["A"] = "3" }, "fewer": func(s *Server) { delete(s.Headers, "B") },
		"moved": func(s *Server) { s.Headers = map[string]string{"A": "12", "B": ""} },
	} {
		s := base()
		change(s)
		require.NotEqual(t, base().key(), s.key(), name)
	}
}

// A server's address is on the public network, or is listed, or is this machine: never a link-local one.
func TestOpen_ChecksTheAddress(t *testing.T) {
	t.Parallel()
	for address, why := range map[string]string{
		"https://169.254.169.254/mcp": "link-local", "http://example.com/mcp": "plain HTTP", "https://10.0.0.1/mcp": "private", "https://[fe80::1]/": "link-local",
		"ftp://example.com/": "scheme", "https://user:password@example.com/": "",
	} {
		_, err := open(t.Context(), &Server{Name: "s", URL: address}, Options{Egress: egress.Policy{PublicOnly: true}}, &http.Transport{}, false)
		require.Error(t, err, address)
		var f *Failure
		require.ErrorAs(t, err, &f, address)
		require.Equal(t, NeverSent, f.Outcome, address)
		require.Contains(t, err.Error(), why, address)
	}
}
