package openai

import (
	"aidb/extension/internal/wire"
	"bytes"
	"io"
	"net/http"
	"net/url"
)

// exchange is one try of one request. To the library's client it is the HTTP client: it sends the body that we
// wrote instead of the library's own, and hands back the reply in the one shape that the library decodes. All
// that goes wrong leaves as a *failure, with the headers and the body that the library would have dropped.
type exchange struct {
	line  *wire.Line
	url   string
	body  []byte
	names *wire.Names
	// most is how many bytes of an answer are read before the connection is closed, 0 for all.
	most int64

	reply normal
}

// Do implements the library's HTTPDoer.
func (x *exchange) Do(r *http.Request) (*http.Response, error) {
	to, err := url.Parse(x.url)
	if err != nil {
		return nil, err
	}
	r.URL, r.Host = to, ""
	r.Body = io.NopCloser(bytes.NewReader(x.body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(x.body)), nil }
	r.ContentLength = int64(len(x.body))
	var made *http.Response
	f := x.line.Exchange(r, func(a *wire.Answer) *wire.Failure {
		reply, f := x.read(a)
		if f != nil {
			return f
		}
		x.reply = reply
		made = &http.Response{
			StatusCode: a.Status(), Header: a.Header(), Body: io.NopCloser(bytes.NewReader(reply.body)),
			ContentLength: int64(len(reply.body)), Request: r,
		}
		return nil
	})
	if f != nil {
		return nil, f
	}
	return made, nil
}

// read reads the reply, whole or as the stream that some servers send unasked.
func (x *exchange) read(a *wire.Answer) (normal, *wire.Failure) {
	if a.IsStream() {
		total, f := foldStream(a.Lines, x.most)
		if f != nil {
			return normal{}, f
		}
		return total.reply(nil, x.names)
	}
	body, f := a.All()
	if f != nil {
		return normal{}, f
	}
	return normalize(body, a.Header().Get("Content-Type"), x.names)
}
