package redact

import (
	"regexp"
	"strings"
	"sync"
)

// A text is gone through once. Where a hint stands in it, the forms are tried that begin with this hint, there and nowhere else, so that
// text without secrets costs next to nothing and any text a bounded time: no form that can fail reads far ahead.

// form is one structure of a secret; what is replaced keeps what template says of it. Where the text is JSON it stays JSON: no
// pattern matches beyond the end of a string, or ends in the middle of an escape.
type form struct {
	// pattern is compiled when it is needed: half a hundred of them would be a third of the first call of a session, and most
	// sessions never meet a hint.
	pattern  func() *regexp.Regexp
	template string
	// notAfter are the bytes that may not stand before it, see the classes below.
	notAfter func(byte) bool
	// plain forms match beyond quotation marks, so they are not for JSON.
	plain bool
	// random: the last group is a secret only when it looks like no word.
	random bool
}

func (f form) in(s string) string { return f.pattern().ReplaceAllString(s, f.template) }

const (
	// word is what the name of a secret ends with.
	word = `(?:password|passwd|passphrase|passcode|pwd|(?:secret|api|access|account|private)[_-]?key|(?:access|auth|refresh|bearer|id|session|security)[_-]?token|secret)`
	// inner is what a JSON string holds.
	inner = `(?:[^"\\]|\\.)*`
	// quoted is what stands between the apostrophes of a statement, within a JSON string.
	quoted = `'(?:[^'"\\]|\\.|'')*'`
	// mixed looks like no word: letters and digits.
	mixed = `(?:[A-Za-z_-]{1,100}[0-9]|[0-9]{1,100}[A-Za-z])[A-Za-z0-9._~+/=-]{6,}`
)

// inStrings are members of JSON that stands in a JSON string, at any depth, from the names on; values are those that are no text.
func inStrings(names, values string) [][2]string {
	return [][2]string{
		{names + `\\"\s*:\s*\\")(?:[^"\\]|\\\\(?:\\["\\]|[^"\\]))*`, `${1}` + Mark},
		{names + `\\{2,}"\s*:\s*\\{2,}")[^"\\]*`, `${1}` + Mark},
		{names + `\\+"\s*:\s*)(?:` + values + `)`, `${1}\"` + Mark + `\"`},
	}
}

var structure = sync.OnceValue(func() *structures {
	all := &structures{}
	key := func(pattern string) *form {
		return &form{pattern: at(`(?s:` + pattern + `)`), template: Mark, notAfter: wordByte}
	}
	keeps := func(pattern, template string) *form {
		return &form{pattern: at(`(?is:` + pattern + `)`), template: template}
	}

	all.add("-----begin", key(`-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----(?:[^-"\\]|\\.|-[^-"\\])*(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----)?`))
	// Keys that say themselves whose they are.
	all.add("sk- sk_ rk_ rk- pk_ pk-", key(`(?:sk|rk|pk)[-_][A-Za-z0-9][A-Za-z0-9_-]{15,}`))
	all.add("ghp_ gho_ ghu_ ghs_ ghr_", key(`gh[pousr]_[A-Za-z0-9]{20,}`))
	all.add("github_pat_", key(`github_pat_[A-Za-z0-9_]{20,}`))
	all.add("glpat-", key(`glpat-[A-Za-z0-9_-]{16,}`))
	all.add("akia asia", key(`A[KS]IA[0-9A-Z]{16}\b`))
	all.add("aiza", key(`AIza[0-9A-Za-z_-]{30,}`))
	all.add("xox", key(`xox[abeoprs]-[0-9A-Za-z-]{10,}`))
	all.add("hf_", key(`hf_[A-Za-z0-9]{20,}`))
	all.add("gsk_ xai- pplx- nvapi- tvly- lsv2_ npm_ r8_ dop_v1_ whsec_ ya29.",
		key(`(?:gsk_|xai-|pplx-|nvapi-|tvly-|lsv2_|npm_|r8_|dop_v1_|whsec_|ya29\.)[A-Za-z0-9_-]{16,}`))
	all.add("sg.", key(`SG\.[A-Za-z0-9_-]{16,100}\.[A-Za-z0-9_-]{16,}`))
	jwt := key(`eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`)
	jwt.notAfter = tokenByte
	all.add("eyj", jwt)
	all.add("md5", key(`md5[0-9a-f]{32}\b`))
	all.add("scram-sha-256$", keeps(`SCRAM-SHA-256\$[0-9]+:[A-Za-z0-9+/=]+(?:\$[A-Za-z0-9+/=:]+)?`, Mark))
	all.add("hooks.slack.com", keeps(`(hooks\.slack\.com/(?:services|workflows)/)[A-Za-z0-9/_-]+`, `${1}`+Mark))
	// Headers.
	scheme := keeps(`((?:bearer|basic)[ :]+)([A-Za-z0-9._~+/=-]{8,})`, `${1}`+Mark)
	scheme.notAfter, scheme.random = wordByte, true
	all.add("bearer basic", scheme)
	all.add("authorization",
		keeps(`(authorization["']?\s*[:=]\s*["']?(?:token|key|apikey|digest|negotiate|aws4[a-z0-9-]*)\s+)[^\r\n"'\\]+`, `${1}`+Mark),
		keeps(`(authorization"\s*:\s*)"(?:[^"\\]|\\.)+"`, `${1}"`+Mark+`"`))
	all.add("cookie",
		keeps(`(cookie\s*:\s*)[^\s"'\\=]{1,200}=[^\r\n"\\]+`, `${1}`+Mark),
		keeps(`(cookie"\s*:\s*)"(?:[^"\\]|\\.)+"`, `${1}"`+Mark+`"`))
	header := keeps(`(x-[a-z-]{0,60}(?:key|token|secret)\s*:\s*)[^\s"'\\,;]+`, `${1}`+Mark)
	header.notAfter = wordByte
	all.add("x-", header)
	all.add("curl", keeps(`(curl\b[^\n"\\]{0,300}?\s(?:-u|--user)[ =]+[^\s:'"\\]{1,100}:)[^\s'"\\]+`, `${1}`+Mark))
	// The password in an address, and what opens the door in its query.
	all.add("://", keeps(`(://[^\s/:@"'\\]*):[^\s/@"'\\]+@`, `${1}:`+Mark+`@`))
	all.add("?key= &key= ?token= &token= ?sig= &sig= ?signature= &signature= -signature=", keeps(`([?&-][a-z]+=)[^\s&"'\\<>\[]{6,}`, `${1}`+Mark))
	// CREATE ROLE … PASSWORD '…'
	wide := keeps(`((?:password|identified\s+by)\s+)(?:e|u&)?'(?:[^']|'')*'?`, `${1}'`+Mark+`'`)
	wide.plain = true
	all.add("password identified",
		keeps(`((?:password|identified\s+by)\s+)(?:e|u&)?`+quoted, `${1}'`+Mark+`'`), wide,
		keeps(`((?:password|identified\s+by)\s+)\$[a-z_]*\$(?:[^$"\\]|\\.)*\$[a-z_]*\$`, `${1}'`+Mark+`'`))
	named := []*form{
		// A member of a JSON object: text or a number. A name in one member and its value in the next.
		keeps(`(`+word+`"\s*:\s*)"`+inner+`"?`, `${1}"`+Mark+`"`),
		keeps(`(`+word+`"\s*:\s*)-?[0-9][0-9.e+-]*`, `${1}"`+Mark+`"`),
		keeps(`(`+word+`"\s*,\s*"value"\s*:\s*)"`+inner+`"`, `${1}"`+Mark+`"`),
		// The ways of other languages.
		keeps(`(`+word+`'\s*:\s*)'(?:[^'"\\]|\\.)*'`, `${1}'`+Mark+`'`),
		keeps(`(`+word+`>)[^<"\\]{1,400}</`, `${1}`+Mark+`</`),
		// name=value, as in connection strings and environments; name: value, where the value looks like no word of a sentence.
		keeps(`(`+word+`\s*=\s*)(?:'(?:[^'"\\]|\\.)*'?|[^\s"'\\,;&]+)`, `${1}`+Mark),
		keeps(`(`+word+`\s*=\s*)"[^\s"\\,:}\]][^"\\]*"`, `${1}"`+Mark+`"`),
		keeps(`(`+word+`\s*=\s*\\")[^"\\]+`, `${1}`+Mark),
		keeps(`(`+word+`\s*:\s*)[^\s"'\\,;]{0,200}[0-9][^\s"'\\,;]*`, `${1}`+Mark),
	}
	for _, p := range inStrings(`(`+word, `-?[0-9][0-9.e+-]*`) {
		named = append(named, keeps(p[0], p[1]))
	}
	gate := at(`(?i:` + word + `)(?:\s{8}|\s*[\\"'>=:])`)
	all.addBehind(gate, "passw passphrase passcode pwd secret api_key api-key apikey access account_key account-key accountkey private_key private-key "+
		"privatekey auth_token auth-token authtoken refresh bearer id_token session_token session-token sessiontoken security_token security-token", named...)
	loose := keeps(`(token\s*[:=]\s*)`+mixed, `${1}`+Mark)
	loose.notAfter = wordByte
	all.add("token", loose, keeps(`(token"\s*:\s*)"[^\s"\\]{8,}"`, `${1}"`+Mark+`"`))
	return all
})

// at is a pattern that matches at the beginning only.
func at(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^` + pattern) })
}

func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// tokenByte is what tokens are made of.
func tokenByte(c byte) bool { return c == '-' || wordByte(c) }

// looksRandom says that a text is no word of a sentence: it has digits, or capitals further on.
func looksRandom(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= '0' && c <= '9' || c == '=' || c == '_' || i > 0 && c >= 'A' && c <= 'Z' {
			return true
		}
	}
	return false
}

// structures are all forms, by the hints that they begin with.
type structures struct {
	// table has the hints by their first byte, in both cases.
	table [256][]hint
	// pairs has a bit for the first two bytes of every hint, in both cases: most of a text is passed over by it.
	pairs [1 << 16 / 64]uint64
}

// hint is what a structure begins with, in lower case.
type hint struct {
	text  string
	forms []*form
	// gate is a look at the next gateBytes bytes that most texts do not pass; nil: there is none.
	gate func() *regexp.Regexp
}

const gateBytes = 64

// add adds forms under hints, which is a list with blanks between.
func (a *structures) add(hints string, forms ...*form) { a.addBehind(nil, hints, forms...) }

func (a *structures) addBehind(gate func() *regexp.Regexp, hints string, forms ...*form) {
	for _, text := range strings.Fields(hints) {
		h := hint{text: text, forms: forms, gate: gate}
		upper := strings.ToUpper(text[:2])
		a.table[text[0]] = append(a.table[text[0]], h)
		if upper[0] != text[0] {
			a.table[upper[0]] = append(a.table[upper[0]], h)
		}
		for _, first := range [...]byte{text[0], upper[0]} {
			for _, second := range [...]byte{text[1], upper[1]} {
				pair := uint(first)<<8 | uint(second)
				a.pairs[pair/64] |= 1 << (pair % 64)
			}
		}
	}
}

// structured takes out what has the structure of a secret. Text without comes back as it is.
func structured(s string) string {
	all := structure()
	var out []byte
	from, isJSON, known := 0, false, false
	for i := 0; i+1 < len(s); i++ {
		if pair := uint(s[i])<<8 | uint(s[i+1]); all.pairs[pair/64]&(1<<(pair%64)) == 0 {
			continue
		}
		hints := all.table[s[i]]
	next:
		for n := range hints {
			h := &hints[n]
			if len(s)-i < len(h.text) || !strings.EqualFold(s[i:i+len(h.text)], h.text) {
				continue
			}
			if h.gate != nil && !h.gate().MatchString(s[i:min(len(s), i+gateBytes)]) {
				continue
			}
			if !known {
				lead := strings.TrimLeft(s, " \t\r\n")
				isJSON, known = lead != "" && strings.IndexByte(`{["`, lead[0]) >= 0, true
			}
			for _, f := range h.forms {
				if f.plain && isJSON || f.notAfter != nil && i > 0 && f.notAfter(s[i-1]) {
					continue
				}
				m := f.pattern().FindStringSubmatchIndex(s[i:])
				if m == nil || f.random && !looksRandom(s[i+m[len(m)-2]:i+m[len(m)-1]]) {
					continue
				}
				out = append(out, s[from:i]...)
				out = f.pattern().ExpandString(out, f.template, s[i:], m)
				from = i + m[1]
				i = from - 1
				break next
			}
		}
	}
	if from == 0 {
		return s
	}
	return string(append(out, s[from:]...))
}
