package wire

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
)

// Answer is a successful response whose body has not been read yet.
type Answer struct {
	line *Line
	resp *http.Response

	lines *bufio.Reader
	left  int64
	read  int64
}

// Status is the response's.
func (a *Answer) Status() int { return a.resp.StatusCode }

// Header is the response's.
func (a *Answer) Header() http.Header { return a.resp.Header }

// All reads the whole body, within the limit. What is a secret in it is taken out.
func (a *Answer) All() ([]byte, *Failure) {
	limit := a.line.options.MaxBodyBytes
	var from io.Reader = a.resp.Body
	if a.lines != nil {
		from = a.lines
	}
	body, err := readAll(from, a.resp.ContentLength, limit-a.read)
	if err != nil {
		return nil, a.line.network(err)
	}
	if int64(len(body)) > limit-a.read {
		return nil, tooLarge(limit)
	}
	return a.line.scrub.body(body, minInReply), nil
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

// IsStream looks at the beginning of the body: is it a stream of events? It waits for it.
func (a *Answer) IsStream() bool {
	a.begin()
	for n := 1; n <= maxLead; n++ {
		head, err := a.lines.Peek(n)
		lead := TrimLead(head)
		if len(lead) >= len("retry:") || err != nil {
			return LooksLikeStream(lead)
		}
		if len(lead) > 0 && (lead[0] == '{' || lead[0] == '[') {
			return false
		}
	}
	return false
}

// maxLead bounds what may stand before a stream: comments and empty lines.
const maxLead = 4096

func (a *Answer) begin() {
	if a.lines == nil {
		a.lines = bufio.NewReaderSize(&sticky{from: a.resp.Body}, maxLead)
	}
}

// sticky keeps an error: who looked at the beginning is not who reads the rest.
type sticky struct {
	from io.Reader
	err  error
}

// Read implements io.Reader.
func (s *sticky) Read(b []byte) (n int, err error) {
	if s.err != nil {
		return 0, s.err
	}
	n, s.err = s.from.Read(b)
	return n, s.err
}

// Lines hands the lines of the body to each as they arrive, without what ends them, until there are no more or each says
// that it has enough: nothing is read, or paid for, beyond that. The bytes are each's to keep.
func (a *Answer) Lines(each func(line []byte) (enough bool, f *Failure)) *Failure {
	a.begin()
	limit := a.line.options.MaxBodyBytes
	for {
		var b []byte
		for {
			piece, err := a.lines.ReadSlice('\n')
			a.read += int64(len(piece))
			b = append(b, piece...)
			if a.read > limit {
				return tooLarge(limit)
			}
			if err == bufio.ErrBufferFull {
				continue
			}
			if err != nil && err != io.EOF {
				return a.line.network(err)
			}
			if err == io.EOF && len(b) == 0 {
				return nil
			}
			break
		}
		b = a.line.scrub.body(bytes.TrimSuffix(b, []byte("\n")), minInReply)
		for rest := b; ; {
			var line []byte
			line, rest = cutLine(rest)
			if enough, f := each(line); enough || f != nil {
				return f
			}
			if len(rest) == 0 {
				break
			}
		}
	}
}

// LooksLikeStream reports whether a body is a stream of server-sent events.
func LooksLikeStream(b []byte) bool {
	for _, field := range []string{"data:", "event:", "id:", "retry:"} {
		if bytes.HasPrefix(b, []byte(field)) {
			return true
		}
	}
	return false
}

// cutLine splits off the first line, whichever way it ends.
func cutLine(b []byte) (line, rest []byte) {
	i := bytes.IndexAny(b, "\r\n")
	if i < 0 {
		return b, nil
	}
	if b[i] == '\r' && i+1 < len(b) && b[i+1] == '\n' {
		return b[:i], b[i+2:]
	}
	return b[:i], b[i+1:]
}
