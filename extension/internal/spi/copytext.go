package spi

// CopyText is rows in the text format of COPY. The zero value is ready to use.
type CopyText struct {
	buf     []byte
	columns int // of the row in hand
	rows    int
}

// Rows is the number of finished rows.
func (c *CopyText) Rows() int { return c.rows }

// Len is the number of bytes so far.
func (c *CopyText) Len() int { return len(c.buf) }

// Bytes returns the rows.
func (c *CopyText) Bytes() []byte { return c.buf }

func (c *CopyText) next() {
	if c.columns > 0 {
		c.buf = append(c.buf, '\t')
	}
	c.columns++
}

// Null adds a NULL to the row.
func (c *CopyText) Null() {
	c.next()
	c.buf = append(c.buf, '\\', 'N')
}

// Text adds a value.
func (c *CopyText) Text(s string) {
	c.next()
	c.buf = appendCopyText(c.buf, s)
}

// Raw adds a value that is bytes already.
func (c *CopyText) Raw(b []byte) {
	c.next()
	c.buf = appendCopyText(c.buf, b)
}

// Plain adds a value that holds nothing to escape, such as a number or an id.
func (c *CopyText) Plain(s string) {
	c.next()
	c.buf = append(c.buf, s...)
}

// OrNull adds a value, NULL for the empty text.
func (c *CopyText) OrNull(s string) {
	if s == "" {
		c.Null()
		return
	}
	c.Text(s)
}

// Columns adds the values of another row, which is not finished.
func (c *CopyText) Columns(other *CopyText) {
	if other.columns == 0 {
		return
	}
	c.next()
	c.buf = append(c.buf, other.buf...)
	c.columns += other.columns - 1
}

// EndRow finishes the row.
func (c *CopyText) EndRow() {
	c.buf = append(c.buf, '\n')
	c.columns = 0
	c.rows++
}

// appendCopyText escapes what separates values and rows, and the character that escapes.
func appendCopyText[T string | []byte](to []byte, s T) []byte {
	from := 0
	for i := range len(s) {
		var letter byte
		switch s[i] {
		case '\\':
			letter = '\\'
		case '\n':
			letter = 'n'
		case '\t':
			letter = 't'
		case '\r':
			letter = 'r'
		case 0: // PostgreSQL's text has none
			to = append(to, s[from:i]...)
			from = i + 1
			continue
		default:
			continue
		}
		to = append(append(to, s[from:i]...), '\\', letter)
		from = i + 1
	}
	return append(to, s[from:]...)
}
