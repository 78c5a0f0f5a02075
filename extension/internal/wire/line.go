package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"aidb/extension/internal/conversation"
	"aidb/extension/internal/fault"
)

// Line is the way to one model's server, for one run.
type Line struct {
	options  Options
	Client   *http.Client
	where    string // the URL as it is shown
	authName string
	auth     string
	scrub    scrubber
	gate     Gate
	limits   Limits
	key      string
}

// MaxBodyBytes bounds what is sent and what is read.
func (l *Line) MaxBodyBytes() int64 { return l.options.MaxBodyBytes }

// TooLarge is the error for a request that is above the limit.
func (l *Line) TooLarge() error {
	return fault.New(fault.ModelOverflow, "the conversation is too large to be sent: the request is above the limit of %s",
		bytesText(l.options.MaxBodyBytes))
}

// Attempt sends a request once. used is the number of tokens that the server counted, 0 when it did not say.
type Attempt func(ctx context.Context) (used int64, f *Failure)

// Do sends a request until it is answered, refused for good, or the run has no time left. tokens is about how many the
// request has. adapt may change what the next attempt sends after a refusal, and says whether it did; nil: never.
func (l *Line) Do(ctx context.Context, tokens int64, try Attempt, adapt func(*Failure) bool) ([]conversation.Retry, error) {
	var retried []conversation.Retry
	for tries := 1; ; {
		f, err := l.once(ctx, tokens, try)
		switch {
		case err != nil:
			return retried, err
		case f == nil:
			return retried, nil
		case ctx.Err() != nil:
			return retried, ended(ctx)
		case f.Cause != nil:
			return retried, f.Cause
		case adapt != nil && adapt(f):
			continue
		}
		failed := f.Fault(l.where, tries, l.scrub.Text)
		if !f.Retry || tries > l.options.Retry.Tries {
			return retried, failed
		}
		wait, ok := l.options.Retry.delay(tries, f.wait, l.options.Random(), l.left(ctx))
		if !ok {
			return retried, tooLong(failed, wait)
		}
		retried = append(retried, conversation.Retry{Error: failed.Message, Wait: wait})
		if sleep(ctx, wait) != nil {
			return retried, ended(ctx)
		}
		tries++
	}
}

// once makes an attempt in its turn, where the model's limits make requests wait for one.
func (l *Line) once(ctx context.Context, tokens int64, try Attempt) (*Failure, error) {
	if l.gate == nil {
		_, f := try(ctx)
		return f, nil
	}
	leave, err := l.gate.Enter(ctx, l.key, l.limits, tokens)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ended(ctx)
		}
		return nil, err
	}
	used, f := try(ctx)
	leave(used)
	if f != nil && f.Kind == fault.ModelRateLimited && f.wait > 0 {
		// What the server told one it told all.
		l.gate.Pause(l.key, min(f.wait, maxPause))
	}
	return f, nil
}

// maxPause bounds how long one answer of a server can keep others from asking.
const maxPause = 10 * time.Minute

// ended is the error for a context that is over.
func ended(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fault.Wrap(ctx.Err(), fault.Timeout, "timeout: the model did not answer before the deadline")
	}
	return fault.Wrap(ctx.Err(), fault.Canceled, "canceled while waiting for the model")
}

// tooLong says why a request that could be sent again is not.
func tooLong(failed *fault.Error, wait time.Duration) error {
	return failed.WithHint("The next try would be in %s, which is longer than this run may wait.", wait.Round(time.Millisecond))
}

// left is how long a wait may be.
func (l *Line) left(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return l.options.Retry.MaxWait + 1
	}
	return time.Until(deadline)
}

// Post makes a request with a JSON body; more are headers, name after name and value. Exchange says the rest.
func (l *Line) Post(ctx context.Context, to string, body []byte, read func(*Answer) *Failure, more ...string) *Failure {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return &Failure{Cause: fault.Wrap(err, fault.InvalidArgument, "url %s cannot be used", fault.Name(WithoutSecrets(to)))}
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(more); i += 2 {
		r.Header.Set(more[i], more[i+1])
	}
	return l.Exchange(r, read)
}

// Get makes a request that is to be answered with JSON, of which nothing is read but whether it is an error.
func (l *Line) Get(ctx context.Context, from string, headers ...string) *Failure {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return &Failure{Cause: fault.Wrap(err, fault.InvalidArgument, "url %s cannot be used", fault.Name(WithoutSecrets(from)))}
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return l.Exchange(r, func(a *Answer) *Failure {
		body, f := a.All()
		if f != nil {
			return f
		}
		doc := TrimLead(body)
		if len(doc) == 0 || (doc[0] != '{' && doc[0] != '[') {
			return NotJSON(body, a.Header().Get("Content-Type"))
		}
		return nil
	})
}

// Exchange makes a request, once, within the limit of time. A response with an error status is a failure; read gets any
// other, and the connection is closed when it returns before the end of the body.
func (l *Line) Exchange(r *http.Request, read func(*Answer) *Failure) *Failure {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	if l.options.RequestTimeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, l.options.RequestTimeout)
		defer cancel()
	}
	r = r.WithContext(ctx)
	if l.auth != "" {
		r.Header.Set(l.authName, l.auth)
	}
	if r.Header.Get("Accept") == "" {
		r.Header.Set("Accept", "application/json")
	}
	r.Header.Set("User-Agent", "aidb")
	resp, err := l.Client.Do(r)
	if err != nil {
		return l.network(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if enc := resp.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return &Failure{Kind: fault.ModelProtocol, Status: resp.StatusCode, Text: "content encoding " + fault.Cut(OneLine(enc), 60) + ", which nobody asked for"}
	}
	if resp.StatusCode < 200 || resp.StatusCode >= 300 {
		// A body that cannot be read to its end still says more than none.
		body, _ := io.ReadAll(io.LimitReader(resp.Body, min(maxErrorBody, l.options.MaxBodyBytes)))
		return answered(resp.StatusCode, resp.Header, l.scrub.body(body, minInError), l.options.Now())
	}
	f := read(&Answer{line: l, resp: resp})
	if f != nil && f.id == "" {
		f.id = requestID(resp.Header)
	}
	return f
}

// maxErrorBody is how much of an error's body is read.
const maxErrorBody = 1 << 20

func requestID(h http.Header) string {
	for _, k := range []string{"X-Request-Id", "Request-Id", "Apim-Request-Id", "Cf-Ray"} {
		if id := OneLine(h.Get(k)); id != "" {
			return id
		}
	}
	return ""
}

// network makes a failure of an error below HTTP.
func (l *Line) network(err error) *Failure {
	var refused *fault.Error
	if errors.As(err, &refused) {
		return &Failure{Cause: refused, Kind: refused.Kind, Text: refused.Message}
	}
	f := &Failure{Kind: fault.ModelUnavailable, Retry: true}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // without the method and the URL, which the error text has already
	}
	f.Text = OneLine(err.Error())
	var dns *net.DNSError
	var untrusted *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var record tls.RecordHeaderError
	var timeout net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		f.Text = "timeout"
		if l.options.RequestTimeout > 0 {
			f.Text = fmt.Sprintf("timeout: no complete answer within %s", l.options.RequestTimeout)
		}
	case errors.As(err, &timeout) && timeout.Timeout():
		f.Text = "timeout: " + f.Text
	case errors.As(err, &dns):
		f.Text = "host name cannot be resolved: " + OneLine(dns.Err)
		f.Retry = !dns.IsNotFound
	case errors.As(err, &untrusted), errors.As(err, &unknown):
		f.Text, f.Retry = "the server's certificate is not trusted: "+f.Text, false
	case errors.As(err, &record), strings.Contains(f.Text, "server gave HTTP response to HTTPS client"):
		f.Text, f.Retry = "the server does not speak TLS: "+f.Text, false
	case errors.Is(err, io.ErrUnexpectedEOF):
		f.Text = "the connection broke in the middle of the answer"
	case errors.Is(err, io.EOF):
		f.Text = "the server closed the connection without an answer"
	}
	return f
}
