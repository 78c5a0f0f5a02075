package conversation

// A reader for the payloads of the log. A long conversation has hundreds of them, read at the start of every call; by
// reflection that would cost more than all the rest that a call does in Go. What the server gives is valid JSON (the
// columns are jsonb), so the reader only has to find its way; text that is not valid makes it stop, not guess.

import "encoding/json"

// object calls f for each member of a JSON object, with the name's and the value's JSON. It returns false when the
// text is no object, or is cut off.
func object(b []byte, f func(name, value []byte) bool) bool {
	return walk(b, '{', '}', f)
}

// elements calls f for each element of a JSON array.
func elements(b []byte, f func(value []byte) bool) bool {
	return walk(b, '[', ']', func(_, value []byte) bool { return f(value) })
}

func walk(b []byte, open, end byte, f func(name, value []byte) bool) bool {
	i := space(b, 0)
	if i >= len(b) || b[i] != open {
		return false
	}
	i = space(b, i+1)
	for first := true; ; first = false {
		if i >= len(b) {
			return false
		}
		if b[i] == end {
			return first && space(b, i+1) == len(b)
		}
		var name []byte
		if open == '{' {
			from := i
			if b[i] != '"' {
				return false
			}
			if i = skip(b, i); i < 0 {
				return false
			}
			name = b[from:i]
			if i = space(b, i); i >= len(b) || b[i] != ':' {
				return false
			}
			i = space(b, i+1)
		}
		from := i
		if i = skip(b, i); i < 0 {
			return false
		}
		if !f(name, b[from:i]) {
			return false
		}
		if i = space(b, i); i >= len(b) {
			return false
		}
		if b[i] == end {
			return space(b, i+1) == len(b)
		}
		if b[i] != ',' {
			return false
		}
		i = space(b, i+1)
	}
}

// skip returns where the value that begins at i ends, -1 when it does not.
func skip(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			if i >= len(b) {
				return -1
			}
			i++
		case '{', '[':
			depth++
			i++
		case '}', ']':
			if depth == 0 {
				return -1
			}
			depth--
			i++
		case ',', ':', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return -1
			}
			i++
			continue
		default:
			for i < len(b) && !delimiter(b[i]) {
				i++
			}
		}
		if depth == 0 {
			return i
		}
	}
	return -1
}

func delimiter(c byte) bool {
	switch c {
	case ',', ':', ']', '}', '[', '{', '"', ' ', '\t', '\n', '\r':
		return true
	}
	return false
}

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// text reads a JSON string; a null is the empty text.
func text(v []byte) (string, bool) {
	if string(v) == "null" {
		return "", true
	}
	if len(v) < 2 || v[0] != '"' {
		return "", false
	}
	for _, c := range v[1 : len(v)-1] {
		if c == '\\' || c < ' ' {
			var s string
			err := json.Unmarshal(v, &s)
			return s, err == nil
		}
	}
	return string(v[1 : len(v)-1]), true
}
