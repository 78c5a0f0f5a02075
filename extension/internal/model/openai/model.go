package openai

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	goopenai "github.com/sashabaranov/go-openai"

	"aidb/extension/internal/agent"
	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
)

// Model is one model for one run; it implements agent.Model.
type Model struct {
	provider *Provider
	options  Options
	name     string
	config   *config
	endpoint *url.URL
	models   *url.URL
	auth     string
	scrub    scrubber
	client   *http.Client
	slots    chan struct{}

	mu   sync.Mutex
	kept []kept
}

// maxAdaptations bounds how often one request is spelled anew; see dialect.
const maxAdaptations = 3

// Complete implements agent.Model.
func (m *Model) Complete(ctx context.Context, r agent.Request) (agent.Reply, error) {
	release, err := m.acquire(ctx)
	if err != nil {
		return agent.Reply{}, err
	}
	defer release()
	return m.complete(ctx, m.config, r)
}

// acquire takes one of the model's slots, where their number is limited.
func (m *Model) acquire(ctx context.Context) (release func(), err error) {
	if m.slots == nil {
		return func() {}, nil
	}
	select {
	case m.slots <- struct{}{}:
		return func() { <-m.slots }, nil
	case <-ctx.Done():
		return nil, ended(ctx)
	}
}

// ended is the error for a context that is over.
func ended(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fault.Wrap(ctx.Err(), fault.Timeout, "timeout: the model did not answer before the deadline")
	}
	return fault.Wrap(ctx.Err(), fault.Canceled, "canceled while waiting for the model")
}

func (m *Model) complete(ctx context.Context, c *config, r agent.Request) (agent.Reply, error) {
	n := newNames(r)
	key := c.endpoint + " " + c.Model
	d := m.provider.dialect(key, c.start())
	first := d
	var w writer
	var body []byte
	var retried []conversation.Retry
	for tries, adapted := 1, 0; ; {
		if body == nil {
			w = writer{d: d, names: n, kept: m.keptSoFar()}
			body = w.body(c, r)
			if int64(len(body)) > m.options.MaxBodyBytes {
				return agent.Reply{}, fault.New(fault.ModelOverflow, "the conversation is too large to be sent: the request is above the limit of %s",
					bytesText(m.options.MaxBodyBytes))
			}
		}
		reply, f := m.try(ctx, body, n)
		if f == nil {
			if d != first {
				m.provider.learn(key, d)
			}
			reply.Retries = retried
			return reply, nil
		}
		if ctx.Err() != nil {
			return agent.Reply{}, ended(ctx)
		}
		if f.cause != nil {
			return agent.Reply{}, f.cause
		}
		if next, ok := d.adapt(f, w.sent); ok && adapted < maxAdaptations {
			d, body = next, nil
			adapted++
			continue
		}
		failed := f.fault(withoutSecrets(c.endpoint), tries, m.scrub.text)
		if !f.retry || tries > m.options.Retry.Tries {
			return agent.Reply{}, failed
		}
		wait, ok := m.options.Retry.delay(tries, f.wait, m.options.Random(), m.left(ctx))
		if !ok {
			return agent.Reply{}, tooLong(failed, wait)
		}
		if m.options.OnRetry != nil {
			m.options.OnRetry(ctx, RetryEvent{Model: m.name, Try: tries, Wait: wait, Err: failed})
		}
		retried = append(retried, conversation.Retry{Error: failed.Message, Wait: wait})
		if sleep(ctx, wait) != nil {
			return agent.Reply{}, ended(ctx)
		}
		tries++
	}
}

// tooLong says why a request that could be sent again is not.
func tooLong(failed *fault.Error, wait time.Duration) error {
	return failed.WithHint("The next try would be in %s, which is longer than this run may wait.", wait.Round(time.Millisecond))
}

// left is how long a wait may be.
func (m *Model) left(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return m.options.Retry.MaxWait + 1
	}
	return time.Until(deadline)
}

// try sends the request once. The library gets a request of its own with nothing in it: its checks of what a model
// of some name may be asked are out of date by nature, and it cannot leave members out, or in, as servers want it.
func (m *Model) try(ctx context.Context, body []byte, n *names) (agent.Reply, *failure) {
	x := m.exchange(m.endpoint)
	x.body, x.names = body, n
	client := goopenai.NewClientWithConfig(goopenai.ClientConfig{BaseURL: m.config.base, APIType: goopenai.APITypeOpenAI, HTTPClient: x})
	resp, err := client.CreateChatCompletion(ctx, goopenai.ChatCompletionRequest{})
	if err != nil {
		var f *failure
		if errors.As(err, &f) {
			return agent.Reply{}, f
		}
		return agent.Reply{}, transient("a reply that cannot be decoded: " + oneLine(err.Error()))
	}
	if len(resp.Choices) == 0 {
		return agent.Reply{}, transient("a reply without choices")
	}
	choice := &resp.Choices[0]
	reply := agent.Reply{Content: choice.Message.Content, Finish: string(choice.FinishReason), Model: fault.Cut(resp.Model, maxExcerpt), Usage: x.reply.usage}
	if calls := choice.Message.ToolCalls; len(calls) > 0 {
		reply.ToolCalls = make([]conversation.ToolCall, len(calls))
		for i := range calls {
			reply.ToolCalls[i] = conversation.ToolCall{ID: calls[i].ID, Name: calls[i].Function.Name, Arguments: calls[i].Function.Arguments}
		}
		m.keep(x.reply.keep)
	}
	if no := choice.Message.Refusal; no != "" && conversation.Empty(reply.Content, reply.ToolCalls) {
		return agent.Reply{}, &failure{kind: fault.ModelRefused, cause: fault.New(fault.ModelRefused, "the model refused to answer: %s", fault.Cut(oneLine(no), maxText))}
	}
	return reply, nil
}

func (m *Model) exchange(to *url.URL) *exchange {
	return &exchange{
		client: m.client, url: to, auth: m.auth, limit: m.options.MaxBodyBytes, timeout: m.options.RequestTimeout, scrub: m.scrub, now: m.options.Now,
	}
}

func (m *Model) keptSoFar() []kept {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kept
}

func (m *Model) keep(k kept) {
	if len(k.members) == 0 && k.calls == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	// A request that is being written reads the old slice.
	m.kept = append(slices.Clip(m.kept), k)
}

// noList are the answers of servers that have no list of models, or do not show it to every key.
var noList = []int{http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented}

// Validate finds out whether the server can be reached and accepts the credentials. It asks for the list of
// models, which costs nothing, and only where there is none for a reply of one token.
func (m *Model) Validate(ctx context.Context) error {
	release, err := m.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	where := withoutSecrets(m.config.models)
	for tries := 1; ; tries++ {
		f := m.list(ctx)
		switch {
		case f == nil:
			return nil
		case ctx.Err() != nil:
			return ended(ctx)
		case f.cause != nil:
			return f.cause
		case slices.Contains(noList, f.status):
			return m.ping(ctx)
		}
		failed := f.fault(where, tries, m.scrub.text)
		if !f.retry || tries > m.options.Retry.Tries {
			return failed
		}
		wait, ok := m.options.Retry.delay(tries, f.wait, m.options.Random(), m.left(ctx))
		if !ok {
			return tooLong(failed, wait)
		}
		if sleep(ctx, wait) != nil {
			return ended(ctx)
		}
	}
}

// list asks for the list of models, once.
func (m *Model) list(ctx context.Context) *failure {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, m.models.String(), nil)
	if err != nil {
		return &failure{cause: fault.Wrap(err, fault.InvalidArgument, "url %s cannot be used", fault.Name(withoutSecrets(m.config.models)))}
	}
	r.Header.Set("Accept", "application/json")
	_, header, body, f := m.exchange(m.models).send(r)
	if f != nil {
		return f
	}
	doc := trimLead(body)
	if len(doc) == 0 || (doc[0] != '{' && doc[0] != '[') {
		return notJSON(body, header.Get("Content-Type"))
	}
	a, err := parseAnswer(doc)
	if err == nil && a.failure != nil {
		return insideSuccess(a.failure)
	}
	return nil
}

// ping asks for one token. What the model says, and even that it says nothing, is good enough.
func (m *Model) ping(ctx context.Context) error {
	c := *m.config
	if c.MaxTokens == nil {
		c.MaxTokens = &maxTokens{Size: 1, Format: "legacy"}
	} else {
		c.MaxTokens = &maxTokens{Size: 1, Format: c.MaxTokens.Format}
	}
	_, err := m.complete(ctx, &c, agent.Request{Messages: []conversation.Message{{Role: conversation.User, Content: "ping"}}})
	if fault.Is(err, fault.ModelRefused) {
		return nil
	}
	return err
}

var _ agent.Model = (*Model)(nil)
