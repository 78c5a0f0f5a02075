package openai

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

	"aidb/extension/internal/fault"
)

// exchange is one try of one request. To the library's client it is the HTTP client: it sends the body that we
// wrote instead of the library's own, and hands back the reply in the one shape that the library decodes. All
// that goes wrong leaves as a *failure, with the headers and the body that the library would have dropped.
type exchange struct {
	client  *http.Client
	url     *url.URL
	auth    string
	body    []byte
	limit   int64
	timeout time.Duration
	names   *names
	scrub   scrubber
	now     func() time.Time

	reply normal
}

// maxErrorBody is how much of an error's body is read.
const maxErrorBody = 1 << 20

// Do implements the library's HTTPDoer.
func (x *exchange) Do(r *http.Request) (*http.Response, error) {
	r.URL, r.Host = x.url, ""
	r.Body = io.NopCloser(bytes.NewReader(x.body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(x.body)), nil }
	r.ContentLength = int64(len(x.body))
	status, header, body, f := x.send(r)
	if f != nil {
		return nil, f
	}
	reply, f := normalize(body, header.Get("Content-Type"), x.names)
	if f != nil {
		if f.id == "" {
			f.id = requestID(header)
		}
		return nil, f
	}
	x.reply = reply
	return &http.Response{
		StatusCode: status, Header: header, Body: io.NopCloser(bytes.NewReader(reply.body)), ContentLength: int64(len(reply.body)), Request: r,
	}, nil
}

// send makes the request and reads the whole response, within the limits of size and time. A response with an
// error status is a failure.
func (x *exchange) send(r *http.Request) (int, http.Header, []byte, *failure) {
	ctx := r.Context()
	if x.timeout > 0 {
		limited, cancel := context.WithTimeout(ctx, x.timeout)
		defer cancel()
		r = r.WithContext(limited)
	}
	if x.auth != "" {
		r.Header.Set("Authorization", x.auth)
	}
	r.Header.Set("User-Agent", "aidb")
	resp, err := x.client.Do(r)
	if err != nil {
		return 0, nil, nil, x.network(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if enc := resp.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return 0, nil, nil, &failure{kind: fault.ModelProtocol, status: resp.StatusCode, text: "content encoding " + fault.Cut(oneLine(enc), 60) + ", which nobody asked for"}
	}
	if resp.StatusCode < 200 || resp.StatusCode >= 300 {
		// A body that cannot be read to its end still says more than none.
		body, _ := io.ReadAll(io.LimitReader(resp.Body, min(maxErrorBody, x.limit)))
		return 0, nil, nil, answered(resp.StatusCode, resp.Header, x.scrub.body(body, minInError), x.now())
	}
	body, err := readAll(resp.Body, resp.ContentLength, x.limit)
	if err != nil {
		return 0, nil, nil, x.network(err)
	}
	if int64(len(body)) > x.limit {
		return 0, nil, nil, tooLarge(x.limit)
	}
	return resp.StatusCode, resp.Header, x.scrub.body(body, minInReply), nil
}

// readAll reads at most one byte more than the limit. The length that the server announces saves growing the
// buffer, as far as it is plausible.
func readAll(r io.Reader, announced, limit int64) ([]byte, error) {
	var b bytes.Buffer
	if announced > 0 {
		b.Grow(int(min(announced, limit, 1<<20)) + bytes.MinRead)
	}
	_, err := b.ReadFrom(io.LimitReader(r, limit+1))
	return b.Bytes(), err
}

func requestID(h http.Header) string {
	for _, k := range []string{"X-Request-Id", "Request-Id", "Apim-Request-Id", "Cf-Ray"} {
		if id := oneLine(h.Get(k)); id != "" {
			return id
		}
	}
	return ""
}

// network makes a failure of an error below HTTP.
func (x *exchange) network(err error) *failure {
	var refused *fault.Error
	if errors.As(err, &refused) {
		return &failure{cause: refused, kind: refused.Kind, text: refused.Message}
	}
	f := &failure{kind: fault.ModelUnavailable, retry: true}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // without the method and the URL, which the error text has already
	}
	f.text = oneLine(err.Error())
	var dns *net.DNSError
	var untrusted *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var record tls.RecordHeaderError
	var timeout net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		f.text = "timeout"
		if x.timeout > 0 {
			f.text = fmt.Sprintf("timeout: no complete answer within %s", x.timeout)
		}
	case errors.As(err, &timeout) && timeout.Timeout():
		f.text = "timeout: " + f.text
	case errors.As(err, &dns):
		f.text = "host name cannot be resolved: " + oneLine(dns.Err)
		f.retry = !dns.IsNotFound
	case errors.As(err, &untrusted), errors.As(err, &unknown):
		f.text, f.retry = "the server's certificate is not trusted: "+f.text, false
	case errors.As(err, &record), strings.Contains(f.text, "server gave HTTP response to HTTPS client"):
		f.text, f.retry = "the server does not speak TLS: "+f.text, false
	case errors.Is(err, io.ErrUnexpectedEOF):
		f.text = "the connection broke in the middle of the answer"
	case errors.Is(err, io.EOF):
		f.text = "the server closed the connection without an answer"
	}
	return f
}
