package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

// sent is what the server sends to one request: bytes for the connection, in pieces, and whether it then stays open.
type sent struct {
	pieces [][]byte
	reset  bool
	body   []byte // what is in them, for the oracle
}

// hostile are values that break readers which expect another one.
var hostile = []string{
	`null`, `true`, `0`, `-1`, `1e999`, `12.0`, `9007199254740993`, `""`, `"x"`, `"\u0000"`, `"\ud800"`, `"\udc00\ud800"`, `[]`, `{}`, `[[]]`, `[null]`,
	`{"a":{"b":[1,{"c":null}]}}`, `"<think>"`, `"` + "\xff\xfe" + `"`, `"\q"`, `"a` + "\n" + `b"`, `{"text":"t"}`, `"stop"`, `"length"`, `"tool_calls"`,
	`"error"`, `{"message":"no"}`, `NaN`, `'x'`, `99999999999999999999999`, `"` + strings.Repeat("long", 3000) + `"`, strings.Repeat("[", 3000) + strings.Repeat("]", 3000),
}

// damage changes a body in one of many ways; most results are no JSON any more.
func damage(r *rand.Rand, b []byte) []byte {
	b = bytes.Clone(b)
	at := func() int { return r.IntN(len(b) + 1) }
	switch r.IntN(9) {
	case 0:
		return b[:at()]
	case 1:
		return b[at():]
	case 2: // a byte
		if len(b) > 0 {
			b[r.IntN(len(b))] = byte(r.IntN(256))
		}
	case 3: // a piece goes
		i, j := at(), at()
		return append(b[:min(i, j):min(i, j)], b[max(i, j):]...)
	case 4: // a piece comes twice
		i, j := at(), at()
		piece := bytes.Clone(b[min(i, j):max(i, j)])
		return append(b[:max(i, j):max(i, j)], append(piece, b[max(i, j):]...)...)
	case 5: // something between
		i := at()
		return append(b[:i:i], append([]byte(hostile[r.IntN(len(hostile))]), b[i:]...)...)
	case 6:
		return append(b, b...)
	case 7:
		return append([]byte(" \r\n\xef\xbb\xbf: alive\n\n"), b...)
	}
	return append(b, hostile[r.IntN(len(hostile))]...)
}

// twist changes a JSON document's structure: a value becomes another, a member goes, moves or comes twice.
func twist(r *rand.Rand, doc []byte) []byte {
	var v any
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return damage(r, doc)
	}
	count := 0
	each(v, func() { count++ })
	target, n := r.IntN(max(1, count)), -1
	var b bytes.Buffer
	write(&b, v, func() (string, bool) {
		if n++; n != target {
			return "", false
		}
		return hostile[r.IntN(len(hostile))], true
	}, r.IntN(3) == 0)
	return b.Bytes()
}

func each(v any, f func()) {
	f()
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			each(e, f)
		}
	case map[string]any:
		for _, e := range v {
			each(e, f)
		}
	}
}

// write writes v; instead may give another text for each value. twice repeats the members of objects now and then.
func write(b *bytes.Buffer, v any, instead func() (string, bool), twice bool) {
	if text, ok := instead(); ok {
		b.WriteString(text)
		return
	}
	switch v := v.(type) {
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			write(b, e, instead, twice)
		}
		b.WriteByte(']')
	case map[string]any:
		b.WriteByte('{')
		comma := ""
		for k, e := range v {
			name, _ := json.Marshal(k)
			b.WriteString(comma + string(name) + ":")
			write(b, e, instead, twice)
			if comma = ","; twice {
				b.WriteString(comma + string(name) + ":" + hostile[len(k)%len(hostile)])
				twice = false
			}
		}
		b.WriteByte('}')
	default:
		text, _ := json.Marshal(v)
		b.Write(text)
	}
}

// wrap makes the bytes on the wire of a body: mostly proper HTTP, in all its forms, now and then not.
func wrap(r *rand.Rand, body []byte, kind string, code int) sent {
	if r.IntN(8) == 0 {
		code = []int{100, 201, 204, 206, 301, 307, 400, 401, 402, 403, 404, 408, 409, 413, 418, 422, 429, 451, 500, 502, 503, 504, 529, 599, 999}[r.IntN(25)]
	}
	if r.IntN(6) == 0 {
		kind = []string{"", "text/html", "text/event-stream", "application/json; charset=utf-16", "\x01"}[r.IntN(5)]
	}
	head := fmt.Sprintf("HTTP/1.1 %d X\r\nContent-Type: %s\r\n", code, kind)
	if r.IntN(6) == 0 {
		head += []string{
			"Retry-After: 0.001\r\n", "Retry-After: -1\r\n", "Retry-After: soon\r\n", "Retry-After: 99999999999999999999\r\n", "Content-Encoding: gzip\r\n",
			"Content-Encoding: br\r\n", "Location: /\r\n", "X-Ratelimit-Reset: 1\r\n", "Set-Cookie: a=" + strings.Repeat("b", 9000) + "\r\n", "X: " + strings.Repeat("y", 300<<10) + "\r\n",
		}[r.IntN(10)]
	}
	s := sent{body: body}
	var payload []byte
	switch r.IntN(5) {
	case 0: // until the connection closes
		head, payload = head+"Connection: close\r\n\r\n", body
	case 1, 2: // chunks
		head += "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
		for rest := body; len(rest) > 0; {
			n := min(len(rest), 1+r.IntN(1+len(rest)))
			payload = append(fmt.Appendf(payload, "%x\r\n", n), rest[:n]...)
			payload, rest = append(payload, "\r\n"...), rest[n:]
		}
		payload = append(payload, "0\r\n\r\n"...)
	default:
		n := len(body)
		if r.IntN(10) == 0 {
			n += r.IntN(9) - 4
		}
		head, payload = head+fmt.Sprintf("Content-Length: %d\r\nConnection: close\r\n\r\n", n), body
	}
	all := append([]byte(head), payload...)
	switch r.IntN(16) {
	case 0:
		all = damage(r, all) // not HTTP any more
	case 1:
		all, s.reset = all[:r.IntN(len(all)+1)], true
	}
	for step := 1 + r.IntN(1+len(all)); len(all) > 0; {
		n := min(step, len(all))
		s.pieces, all = append(s.pieces, all[:n]), all[n:]
	}
	return s
}
