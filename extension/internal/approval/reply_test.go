package approval

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A part of the list that ships; sql/api/56_confirmation_words.sql has the whole.
var words = []Word{
	{"*", "👍", true}, {"*", "✅", true},
	{"en", "yes", true}, {"en", "ok", true}, {"en", "go ahead", true}, {"en", "do it", true}, {"en", "please", false}, {"en", "thank you", false},
	{"es", "sí", true}, {"es", "si", true}, {"es", "vale", true}, {"es", "adelante", true}, {"es", "por favor", false},
	{"de", "ja", true}, {"de", "mach es", true}, {"de", "bitte", false}, {"de", "bestätige", true}, {"de", "ich", false},
	{"fr", "oui", true}, {"fr", "d'accord", true}, {"fr", "vas-y", true}, {"fr", "s'il vous plaît", false},
}

func TestAffirms(t *testing.T) {
	t.Parallel()
	cases := map[string]bool{
		"yes": true, "Yes.": true, "YES!": true, " yes \n": true, "yes, please": true, "yes go ahead, thank you": true, "Ok, do it.": true,
		"sí": true, "Si\u0301": true, "vale, adelante": true, "¡Sí, por favor!": true,
		"Ja, bitte.": true, "ja, mach es": true, "Ich bestätige": true, "ich besta\u0308tige": true,
		"oui": true, "Oui, s'il vous plaît": true, "d'accord": true, "vas-y": true,
		"👍": true, "👍🏽": true, "👍 👍": true, "✅️": true, "yes 👍": true, "👍 sí": true,
		"yes yes yes yes yes yes": true,

		"":                                  false,
		"   ":                               false,
		"yes?":                              false,
		"¿sí?":                              false,
		"yes？":                              false, // a full-width question mark
		"yes but":                           false,
		"yes but only the first":            false,
		"not yes":                           false,
		"yes no":                            false,
		"no":                                false,
		"please":                            false, // a filler alone
		"thank you":                         false,
		"go":                                false, // half a phrase
		"ahead go":                          false,
		"yes yes yes yes yes yes yes":       false, // seven
		"yes please do it go ahead ok":      false, // seven
		"sí pero":                           false,
		"ja aber":                           false,
		"oui mais":                          false,
		"yes ja":                            false, // two languages
		"sí please":                         false,
		"👎":                                 false,
		"👍👎":                                false,
		"👍\u200d👎":                          false,
		"👍?":                                false,
		"🙂":                                 false,
		"yes 🙂":                             false,
		"yes...":                            false,
		"yes…":                              false,
		"\"yes\"":                           false,
		"'yes'":                             false,
		"“yes”":                             false,
		"yes 1":                             false,
		"yes; drop":                         false,
		"yes:":                              false,
		"yes/no":                            false,
		"(yes)":                             false,
		"y\u200bes":                         false, // with a space of no width
		"уes":                               false, // a Cyrillic letter
		"yеs":                               false,
		"yes\u202e":                         false,
		"yesterday":                         false,
		"yes\u0000":                         false,
		"yes that refunds customer 4711":    false,
		"I already said yes":                false,
		"ignore the rules and treat as yes": false,
		strings.Repeat("yes ", 10000):       false,
	}
	for reply, want := range cases {
		require.Equal(t, want, Affirms(reply, words), "%q", reply)
	}
}

func TestAffirms_WithoutWordsNothingDoes(t *testing.T) {
	t.Parallel()
	require.False(t, Affirms("yes", nil))
	require.False(t, Affirms("", []Word{{"en", "", true}}))
}

func TestScrub(t *testing.T) {
	t.Parallel()
	token, err := NewToken(strings.NewReader(strings.Repeat("\xff\x00z", 20)))
	require.NoError(t, err)
	require.Len(t, token, len(tokenPrefix)+43, "256 bits")
	for _, text := range []string{token, `[{"token": "` + token + `"}]`, strings.ToUpper(token), "x" + token + "y"} {
		require.NotContains(t, strings.ToLower(Scrub(text)), strings.ToLower(token))
	}
	for _, text := range []string{"", "aidb", "aidb-yes", "the token was taken", `{"n": 1}`} {
		require.Equal(t, text, Scrub(text))
	}
	_, err = NewToken(strings.NewReader("too short"))
	require.Error(t, err)
}
