package spi

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCopyText(t *testing.T) {
	t.Parallel()
	var same, c CopyText
	same.Text("a\tb")
	same.Null()
	c.Plain("1")
	c.OrNull("")
	c.Text("back\\slash\r\n")
	c.Columns(&same)
	c.EndRow()
	c.Columns(&same)
	c.Raw([]byte("\x00n\x00ul"))
	c.Columns(&CopyText{})
	c.Text("")
	c.EndRow()
	require.Equal(t, 2, c.Rows())
	require.Equal(t, strings.Join([]string{`1`, `\N`, `back\\slash\r\n`, `a\tb`, `\N`}, "\t")+"\n"+
		strings.Join([]string{`a\tb`, `\N`, `nul`, ``}, "\t")+"\n", string(c.Bytes()))
	require.Equal(t, len(c.Bytes()), c.Len())
}
