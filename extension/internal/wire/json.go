package wire

import (
	"errors"
)

// A small JSON reader and writer, because encoding/json is wrong here in both directions: reading, one member of
// an unexpected type makes it refuse the whole reply, and it copies everything through maps; writing, it cannot
// be told what to leave out. The reader makes one pass without recursion on input it does not know, keeps strings
// as they stand in the body, and is lenient where being strict helps nobody (raw control characters, invented
// escapes, invalid UTF-8, a trailing comma, anything after the document). What is copied verbatim into another
// document goes through json.Valid first.

var (
	ErrTruncated = errors.New("the JSON text ends in the middle")
	errSyntax    = errors.New("the text is not JSON")
)

// Scanner is a position in a JSON text.
type Scanner struct {
	b []byte
	i int
}

// NewScanner returns a scanner at the beginning of a text.
func NewScanner(b []byte) *Scanner { return &Scanner{b: b} }

// Next steps over the byte that Peek saw.
func (s *Scanner) Next() { s.i++ }

// Pos is where the scanner stands.
func (s *Scanner) Pos() int { return s.i }

// Since is the text from a position to where the scanner stands.
func (s *Scanner) Since(pos int) []byte { return s.b[pos:s.i] }

// Whole is the text that is scanned.
func (s *Scanner) Whole() []byte { return s.b }

// Peek skips white space and returns the byte there, 0 at the end.
func (s *Scanner) Peek() byte {
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case ' ', '\t', '\r', '\n':
			s.i++
		default:
			return c
		}
	}
	return 0
}

func (s *Scanner) Fail() error {
	if s.i >= len(s.b) {
		return ErrTruncated
	}
	return errSyntax
}

// Str reads a string; the scanner stands at its quote.
func (s *Scanner) Str() (Text, error) {
	start := s.i + 1
	var flags uint8
	for i := start; i < len(s.b); i++ {
		f := class[s.b[i]]
		if f == 0 {
			continue
		}
		if f != 0xff {
			flags |= f
			continue
		}
		if s.b[i] == '"' {
			s.i = i + 1
			return Text{raw: s.b[start:i], flags: flags}, nil
		}
		i++
		if i == len(s.b) {
			break
		}
		switch s.b[i] {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			flags |= hasEscape
		case 'u':
			flags |= hasEscape | hasUnicode
		default:
			flags |= hasEscape | hasControl
		}
	}
	s.i = len(s.b)
	return Text{}, ErrTruncated
}

// StrIf reads a string; anything else is left out.
func (s *Scanner) StrIf(to *Text) error {
	if s.Peek() == '"' {
		t, err := s.Str()
		*to = t
		return err
	}
	_, err := s.Skip()
	return err
}

// Skip reads one value of any kind and returns its text. Brackets are counted, not matched: nothing is made of
// a value that is skipped, so that a nonsense inside one does no harm.
func (s *Scanner) Skip() ([]byte, error) {
	c := s.Peek()
	start := s.i
	switch c {
	case '"':
		_, err := s.Str()
		return s.b[start:s.i], err
	case '{', '[':
		depth := 0
		for s.i < len(s.b) {
			switch s.b[s.i] {
			case '"':
				if _, err := s.Str(); err != nil {
					return nil, err
				}
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
				if depth == 0 {
					s.i++
					return s.b[start:s.i], nil
				}
			}
			s.i++
		}
		return nil, ErrTruncated
	}
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ',', '}', ']', ' ', '\t', '\r', '\n', '"', '{', '[', ':':
			if s.i == start {
				return nil, errSyntax
			}
			return s.b[start:s.i], nil
		}
		s.i++
	}
	if s.i == start {
		return nil, ErrTruncated
	}
	return s.b[start:s.i], nil
}

// Object reads an object, calling member for each key; member reads the value. The scanner stands at the brace.
func (s *Scanner) Object(member func(key string) error) error {
	s.i++
	for {
		switch s.Peek() {
		case '}':
			s.i++
			return nil
		case ',':
			s.i++
			continue
		case '"':
		default:
			return s.Fail()
		}
		key, err := s.Str()
		if err != nil {
			return err
		}
		if s.Peek() != ':' {
			return s.Fail()
		}
		s.i++
		if s.Peek() == 0 {
			return s.Fail()
		}
		if err := member(key.String()); err != nil {
			return err
		}
	}
}

// Array reads an array, calling element at each value; element reads it. The scanner stands at the bracket.
func (s *Scanner) Array(element func() error) error {
	s.i++
	for {
		switch s.Peek() {
		case ']':
			s.i++
			return nil
		case ',':
			s.i++
			continue
		case 0:
			return s.Fail()
		}
		if err := element(); err != nil {
			return err
		}
	}
}
