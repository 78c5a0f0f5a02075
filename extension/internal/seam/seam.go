// Package seam is the Go side's view of the messages that cross between the backend's main thread and Go. It
// knows their format and nothing of what they mean; c_shim/bridge.h is the contract and explains the rules.
package seam

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
)

// Kinds of messages, as in bridge.h.
const (
	CmdConfig uint32 = 1
	CmdStart  uint32 = 2
	CmdCancel uint32 = 3

	RepRows  uint32 = 20
	RepTool  uint32 = 21
	RepOK    uint32 = 22
	RepError uint32 = 23

	ReqReady  uint32 = 40
	ReqQuery  uint32 = 41
	ReqTool   uint32 = 42
	ReqLock   uint32 = 43
	ReqSecret uint32 = 44
	ReqNotice uint32 = 45
	ReqResult uint32 = 46
	ReqFail   uint32 = 47
	ReqBegin  uint32 = 48
	ReqCommit uint32 = 49
	ReqScope  uint32 = 50
	ReqAdmit  uint32 = 60
	ReqLeave  uint32 = 61
	ReqPause  uint32 = 62
	ReqAudit  uint32 = 63
	ReqSpend  uint32 = 64
	ReqKeep   uint32 = 65
)

// Message is one message that has arrived. Body is a list of fields.
type Message struct {
	Kind uint32
	Run  uint64
	Seq  uint32
	Body []byte
}

// Writer builds the body of a message. The zero value is ready to use.
type Writer struct {
	buf   []byte
	count int32
}

func (w *Writer) head() {
	if len(w.buf) == 0 {
		w.buf = make([]byte, 4, 512)
	}
}

// Text adds a field.
func (w *Writer) Text(s string) {
	w.head()
	w.buf = binary.NativeEndian.AppendUint32(w.buf, uint32(len(s)))
	w.buf = append(w.buf, s...)
	w.count++
}

// Bytes adds a field.
func (w *Writer) Bytes(b []byte) {
	w.head()
	w.buf = binary.NativeEndian.AppendUint32(w.buf, uint32(len(b)))
	w.buf = append(w.buf, b...)
	w.count++
}

// Null adds a NULL field.
func (w *Writer) Null() {
	w.head()
	w.buf = binary.NativeEndian.AppendUint32(w.buf, ^uint32(0))
	w.count++
}

// Optional adds a field, NULL for nil.
func (w *Writer) Optional(s *string) {
	if s == nil {
		w.Null()
		return
	}
	w.Text(*s)
}

// OrNull adds a field, NULL for the empty string.
func (w *Writer) OrNull(s string) {
	if s == "" {
		w.Null()
		return
	}
	w.Text(s)
}

// Int adds a number.
func (w *Writer) Int(n int64) {
	var digits [20]byte
	w.Bytes(strconv.AppendInt(digits[:0], n, 10))
}

// Bool adds a truth value.
func (w *Writer) Bool(b bool) {
	if b {
		w.Text("t")
		return
	}
	w.Text("f")
}

// Body returns the finished body; the writer must not be used after that.
func (w *Writer) Body() []byte {
	w.head()
	binary.NativeEndian.PutUint32(w.buf, uint32(w.count))
	return w.buf
}

var errShort = errors.New("message is cut off")

// Reader reads the fields of a body in order. The first error sticks; Err tells it.
type Reader struct {
	buf  []byte
	left int32
	err  error
}

// NewReader returns a reader of the body.
func NewReader(body []byte) *Reader {
	if len(body) < 4 {
		return &Reader{err: errShort}
	}
	return &Reader{buf: body[4:], left: int32(binary.NativeEndian.Uint32(body))}
}

// Err returns the first error.
func (r *Reader) Err() error { return r.err }

// Left is the number of fields that were not read yet.
func (r *Reader) Left() int { return int(r.left) }

// Raw returns the next field without copying it, nil and false when it is NULL or an error has occurred.
func (r *Reader) Raw() ([]byte, bool) {
	if r.err != nil {
		return nil, false
	}
	if r.left <= 0 || len(r.buf) < 4 {
		r.err = errShort
		return nil, false
	}
	n := int32(binary.NativeEndian.Uint32(r.buf))
	r.buf = r.buf[4:]
	r.left--
	if n < 0 {
		return nil, false
	}
	if int(n) > len(r.buf) {
		r.err = errShort
		return nil, false
	}
	field := r.buf[:n:n]
	r.buf = r.buf[n:]
	return field, true
}

// Text returns the next field, "" for NULL.
func (r *Reader) Text() string {
	b, _ := r.Raw()
	return string(b)
}

// Optional returns the next field, nil for NULL.
func (r *Reader) Optional() *string {
	b, ok := r.Raw()
	if !ok {
		return nil
	}
	s := string(b)
	return &s
}

// Int returns the next field as a number, 0 for NULL.
func (r *Reader) Int() int64 {
	b, ok := r.Raw()
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("field is not a number: %w", err)
	}
	return n
}

// Bool returns the next field as a truth value.
func (r *Reader) Bool() bool {
	b, _ := r.Raw()
	return len(b) > 0 && b[0] == 't'
}
