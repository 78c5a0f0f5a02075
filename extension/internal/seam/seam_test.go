package seam

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFields_ComeBackAsTheyWentIn(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ü", 100_000)
	var w Writer
	w.Text("a")
	w.Text("")
	w.Null()
	w.Int(-42)
	w.Bool(true)
	w.Bool(false)
	w.Text(long)
	w.OrNull("")
	w.Optional(nil)
	w.Bytes([]byte{0, 1, 2})

	r := NewReader(w.Body())
	require.Equal(t, 10, r.Left())
	require.Equal(t, "a", r.Text())
	empty := r.Optional()
	require.NotNil(t, empty)
	require.Empty(t, *empty)
	require.Nil(t, r.Optional())
	require.Equal(t, int64(-42), r.Int())
	require.True(t, r.Bool())
	require.False(t, r.Bool())
	require.Equal(t, long, r.Text())
	require.Nil(t, r.Optional())
	require.Nil(t, r.Optional())
	b, ok := r.Raw()
	require.True(t, ok)
	require.Equal(t, []byte{0, 1, 2}, b)
	require.NoError(t, r.Err())

	_, ok = r.Raw()
	require.False(t, ok)
	require.Error(t, r.Err(), "one field too many")
}

func TestFields_AnEmptyBodyHasNone(t *testing.T) {
	t.Parallel()
	var w Writer
	r := NewReader(w.Body())
	require.Zero(t, r.Left())
	require.NoError(t, r.Err())
}

func FuzzReader(f *testing.F) {
	var w Writer
	w.Text("x")
	w.Null()
	w.Int(7)
	f.Add(w.Body())
	f.Add([]byte{1, 0, 0, 0, 255, 255, 255, 127})
	f.Fuzz(func(t *testing.T, body []byte) {
		r := NewReader(body)
		for i := 0; i < 1000 && r.Err() == nil; i++ {
			r.Text()
		}
	})
}
