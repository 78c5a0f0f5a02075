package fakemodel_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	openai "github.com/sashabaranov/go-openai"
	"github.com/stretchr/testify/require"

	"aidb/tests/fakemodel"
)

// The fake is judged by a client that was not written for it.

func start(t *testing.T) (*fakemodel.Server, *openai.Client) {
	t.Helper()
	s, err := fakemodel.Start(fakemodel.Options{})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	config := openai.DefaultConfig("key")
	config.BaseURL = s.URL()
	return s, openai.NewClientWithConfig(config)
}

func complete(ctx context.Context, c *openai.Client, model, prompt string) (openai.ChatCompletionResponse, error) {
	return c.CreateChatCompletion(ctx, openai.ChatCompletionRequest{Model: model,
		Messages: []openai.ChatCompletionMessage{{Role: "user", Content: prompt}}})
}

func TestScript_ReplaysInOrderAndRepeatsTheLast(t *testing.T) {
	s, c := start(t)
	s.Script("m", fakemodel.Query("SELECT 1"), fakemodel.Say("done"))
	r, err := complete(t.Context(), c, "m", "go")
	require.NoError(t, err)
	require.Equal(t, "run_sql_query", r.Choices[0].Message.ToolCalls[0].Function.Name)
	require.JSONEq(t, `{"query": "SELECT 1"}`, r.Choices[0].Message.ToolCalls[0].Function.Arguments)
	require.EqualValues(t, "tool_calls", r.Choices[0].FinishReason)
	for range 2 {
		r, err = complete(t.Context(), c, "m", "go")
		require.NoError(t, err)
		require.Equal(t, "done", r.Choices[0].Message.Content)
	}
	require.Len(t, s.Requests("m"), 3)
	require.Equal(t, "go", s.Requests("m")[0].LastUser())
}

func TestUnknownModel_IsNotFound(t *testing.T) {
	_, c := start(t)
	_, err := complete(t.Context(), c, "nobody", "go")
	var e *openai.APIError
	require.ErrorAs(t, err, &e)
	require.Equal(t, 404, e.HTTPStatusCode)
}

func TestHangingRequest_IsSeenInFlightAndThenAbandoned(t *testing.T) {
	s, c := start(t)
	s.Script("slow", fakemodel.Reply{Hang: true})
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() { _, err := complete(ctx, c, "slow", "think"); failed <- err }()
	limit, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	require.NoError(t, s.WaitFor(limit, "the request", func() bool { return s.Holds("slow", "think") }))
	cancel()
	require.Error(t, <-failed)
	require.NoError(t, s.WaitFor(limit, "the end", func() bool { return s.InFlight("slow") == 0 && s.Abandoned("slow") == 1 }))
}

func TestOddReplies(t *testing.T) {
	s, c := start(t)
	post := func(model string) (*http.Response, []byte, error) {
		r, err := http.Post(s.URL()+"/chat/completions", "application/json", bytes.NewBufferString(`{"model":"`+model+`","messages":[]}`))
		if err != nil {
			return nil, nil, err
		}
		defer func() { _ = r.Body.Close() }()
		body, err := io.ReadAll(r.Body)
		return r, body, err
	}
	s.Script("close", fakemodel.Reply{Close: true})
	_, _, err := post("close")
	require.Error(t, err)
	s.Script("cut", fakemodel.Reply{Content: "never whole", CloseAfter: 20})
	_, _, err = post("cut")
	require.Error(t, err)
	s.Script("html", fakemodel.HTML("<html>log in</html>"))
	r, body, err := post("html")
	require.NoError(t, err)
	require.Equal(t, "<html>log in</html>", string(body))
	require.Contains(t, r.Header.Get("Content-Type"), "text/html")
	s.Script("big", fakemodel.Reply{Content: "a", Size: 5 << 20})
	_, body, err = post("big")
	require.NoError(t, err)
	require.Greater(t, len(body), 5<<20)
	s.Script("limit", fakemodel.Fail(429, "slow down"))
	_, err = complete(t.Context(), c, "limit", "x")
	require.ErrorContains(t, err, "slow down")
}

func TestListensOnLoopbackOnly(t *testing.T) {
	_, err := fakemodel.Start(fakemodel.Options{Addr: "0.0.0.0:0"})
	require.ErrorContains(t, err, "loopback")
}
