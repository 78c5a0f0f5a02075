package safego

import (
	"errors"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/extension/internal/fault"
)

func TestGroup_WaitsForAll(t *testing.T) {
	t.Parallel()
	var g Group
	var n atomic.Int32
	for range 50 {
		Go(&g, "worker", func() { n.Add(1) })
	}
	require.NoError(t, g.Wait())
	require.EqualValues(t, 50, n.Load())
}

func TestGroup_HandsPanicToOwner(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		f    func()
		text string
	}{
		{"text", func() { panic("boom") }, "boom"},
		{"error", func() { panic(errors.New("bang")) }, "bang"},
		{"runtime error", func() { var m map[string]int; m["x"] = 1 }, "nil map"},
		{"exit of the goroutine", func() { runtime.Goexit() }, "ended itself"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var g Group
			Go(&g, "test", c.f)
			Go(&g, "other", func() {})
			err := g.Wait()
			require.ErrorContains(t, err, "internal error in test: ")
			require.ErrorContains(t, err, c.text)
			require.Equal(t, fault.Internal, fault.KindOf(err))
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestCall_ReturnsNilWithoutPanic(t *testing.T) {
	t.Parallel()
	require.NoError(t, Call("x", func() {}))
}
