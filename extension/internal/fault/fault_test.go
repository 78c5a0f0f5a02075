package fault

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestTable_EveryKindHasItsRow(t *testing.T) {
	t.Parallel()
	state := regexp.MustCompile(`^[0-9A-Z]{5}$`)
	names := map[string]bool{}
	for _, k := range Kinds() {
		require.Regexp(t, state, k.SQLState(), "kind %d", k)
		require.NotEqual(t, "00000", k.SQLState())
		require.NotEmpty(t, k.String())
		require.False(t, names[k.String()], k.String())
		names[k.String()] = true
		require.Equal(t, strings.HasPrefix(k.String(), "model_"), k.Model(), k.String())
	}
	require.Equal(t, "XX000", Kind(-1).SQLState())
	require.Equal(t, "XX000", Kind(999).SQLState())
}

func TestTable_OurClassIsForWhatCallersBranchOn(t *testing.T) {
	t.Parallel()
	got := map[string][]string{}
	for _, k := range Kinds() {
		if s := k.SQLState(); strings.HasPrefix(s, "IA") {
			got[s] = append(got[s], k.String())
		}
	}
	require.Equal(t, map[string][]string{
		"IA001": {"approval_required"},
		"IA002": {"policy_denied"},
		"IA003": {"timeout", "budget_spent"},
		"IA004": {"model_refused", "model_output"},
	}, got)
}

func TestError_Parts(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	e := Wrap(cause, NotFound, "model %s is gone", Name("m")).WithDetail("It was %d.", 1).WithHint("Make 100%% sure.").WithState("42P01")
	require.Equal(t, "model 'm' is gone", e.Error())
	require.Equal(t, "It was 1.", e.Detail)
	require.Equal(t, "Make 100% sure.", e.Hint)
	wrapped := fmt.Errorf("loading: %w", e)
	require.ErrorIs(t, wrapped, cause)
	require.Equal(t, NotFound, KindOf(wrapped))
	require.Equal(t, "42P01", SQLState(wrapped))
	require.True(t, Is(wrapped, Busy, NotFound))
	require.False(t, Is(wrapped, Busy))

	plain := New(Busy, "100%% busy")
	require.Equal(t, "100% busy", plain.Error())
	require.Equal(t, "55P03", SQLState(plain))
	plain.WithDetail("x")
	require.Empty(t, plain.Detail, "the With functions copy")
	require.Equal(t, "cause", (&Error{Err: cause}).Error())
	require.Equal(t, "XX000", SQLState(cause))
	require.Equal(t, Unclassified, KindOf(nil))
}

func TestEngine_IsRaisedAndTheRestIsARow(t *testing.T) {
	t.Parallel()
	require.False(t, Engine(nil))
	require.True(t, Engine(errors.New("x")))
	raised := map[Kind]bool{Unclassified: true, Canceled: true, Internal: true}
	for _, k := range Kinds() {
		require.Equal(t, raised[k], Engine(New(k, "x")), k.String())
	}
}

func TestKindOfState(t *testing.T) {
	t.Parallel()
	cases := map[string]Kind{
		"42501": Privilege, "42704": NotFound, "42P01": NotFound, "23505": AlreadyExists, "22023": InvalidArgument,
		"22P02": InvalidArgument, "42601": InvalidArgument, "55P03": Busy, "57014": Canceled, "57P01": Canceled, "57P03": Canceled,
		"0A000": Unsupported, "55000": WrongState, "25006": WrongState, "40001": WrongState, "54001": LimitExceeded,
		"P0001": ToolFailed, "IA002": ToolFailed, "53200": Internal, "58030": Internal, "XX000": Internal, "": Internal, "4": Internal,
	}
	for state, want := range cases {
		require.Equal(t, want, KindOfState(state), state)
	}
}

func TestName_CutsBetweenCharacters(t *testing.T) {
	t.Parallel()
	require.Equal(t, "'x'", Name("x"))
	for _, unit := range []string{"a", "é", "€", "🙂"} {
		n := Name(strings.Repeat(unit, 500))
		require.True(t, utf8.ValidString(n))
		require.LessOrEqual(t, len(n), maxName+len("''…"))
		require.True(t, strings.HasSuffix(n, "…'"))
	}
	require.Equal(t, "…", Cut("🙂", 3))
	require.Equal(t, "ab\uFFFD…", Cut("ab\xffcdef", 3))
}
