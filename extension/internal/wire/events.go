package wire

import "bytes"

var byteOrderMark = []byte("\xef\xbb\xbf")

// Lines hands out the lines of a body, see Answer.Lines.
type Lines func(each func(line []byte) (enough bool, f *Failure)) *Failure

// LinesOf are the lines of a text.
func LinesOf(b []byte) Lines {
	return func(each func([]byte) (bool, *Failure)) *Failure {
		for len(b) > 0 {
			var line []byte
			line, b = cutLine(b)
			if enough, f := each(line); enough || f != nil {
				return f
			}
		}
		return nil
	}
}

// AsData are lines that are an event each, without the name of a field before it.
func AsData(lines Lines) Lines {
	return func(each func([]byte) (bool, *Failure)) *Failure {
		return lines(func(line []byte) (bool, *Failure) {
			return each(append([]byte("data:"), line...))
		})
	}
}

// Events reads server-sent events and hands each one's name and data, which is JSON, out as it arrives. done says that the
// stream told its end, or that each had enough.
func Events(lines Lines, each func(name string, data []byte) (enough bool, f *Failure)) (done bool, f *Failure) {
	var pending []byte
	name, first := "", true
	hand := func(data []byte) (bool, *Failure) {
		enough, f := each(name, data)
		name, pending = "", nil
		done = done || enough
		return enough, f
	}
	f = lines(func(line []byte) (bool, *Failure) {
		if first {
			line, first = bytes.TrimPrefix(line, byteOrderMark), false
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case string(field) == "event":
			name = string(value)
			return false, nil
		case len(line) == 0 && pending != nil:
			if !whole(pending) {
				return false, Transient("a stream with an event that ends in the middle")
			}
			return hand(pending)
		case string(field) != "data" || len(value) == 0:
			return false, nil
		case string(value) == "[DONE]":
			done = true
			return true, nil
		case pending != nil:
			pending = append(pending, value...)
			return false, nil
		case !whole(value):
			// The rules say that lines up to an empty one belong together; servers forget the empty line more often
			// than they break an event into lines, so that a line which is JSON by itself is an event.
			pending = bytes.Clone(value)
			return false, nil
		}
		return hand(value)
	})
	switch {
	case f != nil || pending == nil || done:
	case whole(pending):
		_, f = hand(pending)
	default:
		f = Transient("a stream that ends in the middle")
	}
	return done, f
}

// whole says whether the text does not end in the middle of a value.
func whole(b []byte) bool {
	s := NewScanner(b)
	_, err := s.Skip()
	return err != ErrTruncated
}
