package approval

import (
	"strings"
	"unicode"
)

// Word is an entry of aidb.confirmation_words: a word or phrase in small letters. Language "*" goes with every other.
type Word struct {
	Language string
	Text     string
	Yes      bool // false: a filler, which may stand beside a yes
}

// anyLanguage is the language of signs.
const anyLanguage = "*"

// maxWords is how many words a yes may have.
const maxWords = 6

// Affirms reads a reply. It is a yes only if it has one to six words, all of them are words of one language, and one of
// them is a yes. There is no list of words that mean no, or perhaps: whatever is not known cancels. So do question marks,
// quotation marks, digits, dots that trail off, and every sign that is not in the list.
//
// It is code that reads it, never a model: a text that persuades a model persuades nothing here.
func Affirms(reply string, words []Word) bool {
	tokens, ok := split(reply)
	if !ok || len(tokens) == 0 || len(tokens) > maxWords {
		return false
	}
	languages := map[string]bool{}
	for _, w := range words {
		languages[w.Language] = true
	}
	for language := range languages {
		if affirmsIn(language, tokens, words) {
			return true
		}
	}
	return false
}

// affirmsIn covers the tokens with phrases of one language, trying every way: a phrase may begin with another one.
func affirmsIn(language string, tokens []string, words []Word) bool {
	// reach[i] says that the first i tokens are covered: 1 without a yes among them, 2 with one
	reach := make([]int, len(tokens)+1)
	reach[0] = 1
	for i := range tokens {
		if reach[i] == 0 {
			continue
		}
		for _, w := range words {
			if w.Language != language && w.Language != anyLanguage {
				continue
			}
			phrase, ok := split(w.Text)
			if !ok || len(phrase) == 0 || !begins(tokens[i:], phrase) {
				continue
			}
			got := reach[i]
			if w.Yes {
				got = 2
			}
			reach[i+len(phrase)] = max(reach[i+len(phrase)], got)
		}
	}
	return reach[len(tokens)] == 2
}

func begins(tokens, phrase []string) bool {
	if len(phrase) > len(tokens) {
		return false
	}
	for i := range phrase {
		if tokens[i] != phrase[i] {
			return false
		}
	}
	return true
}

// maxReply is longer than any six words.
const maxReply = 200

// split cuts a text into words, in small letters. Signs that are no punctuation are words of their own, so that a thumb
// beside another thumb is two. It fails for what no plain yes has in it.
func split(text string) ([]string, bool) {
	if len(text) > maxReply {
		return nil, false
	}
	var tokens []string
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			tokens = append(tokens, word.String())
			word.Reset()
		}
	}
	dots := 0
	for _, r := range compose(strings.ToLower(text)) {
		if r == '.' {
			if dots++; dots > 1 {
				return nil, false // trailing off is hesitation
			}
			end()
			continue
		}
		dots = 0
		switch {
		case r == '\u200d' || r == unicode.ReplacementChar:
			return nil, false // glues signs to others: 👍 with something else is not 👍
		case r == '\ufe0f' || (r >= '\U0001F3FB' && r <= '\U0001F3FF'):
			// how a sign is drawn: its colour
		case unicode.IsLetter(r) || r == '\'' || r == '’' || r == '-':
			word.WriteRune(r)
		case unicode.IsSpace(r) || r == ',' || r == '!' || r == '¡':
			end()
		case unicode.IsSymbol(r):
			end()
			tokens = append(tokens, string(r))
		default:
			return nil, false
		}
	}
	end()
	return tokens, true
}

// compose joins the accents of the languages above to their letters: some keyboards send them apart.
func compose(s string) string {
	return composer.Replace(s)
}

var composer = strings.NewReplacer(
	"a\u0301", "á", "e\u0301", "é", "i\u0301", "í", "o\u0301", "ó", "u\u0301", "ú", "n\u0303", "ñ",
	"a\u0308", "ä", "o\u0308", "ö", "u\u0308", "ü", "a\u0302", "â", "e\u0302", "ê", "i\u0302", "î", "u\u0302", "û", "o\u0302", "ô",
	"c\u0327", "ç", "a\u0300", "à", "e\u0300", "è", "u\u0300", "ù")
