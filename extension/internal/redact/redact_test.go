package redact

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestText_SecretsByStructure(t *testing.T) {
	t.Parallel()
	r, err := New(Rules{})
	require.NoError(t, err)
	for in, want := range map[string]string{
		"key sk-proj-0123456789abcdefABCDEF, ok":                                      "key [redacted], ok",
		`{"api_key": "abc", "name": "x"}`:                                             `{"api_key": "[redacted]", "name": "x"}`,
		`{"Password":"a\"b\\c","n":1}`:                                                `{"Password":"[redacted]","n":1}`,
		`{"q": "{\"client_secret\": \"xyz\", \"a\": 1}"}`:                             `{"q": "{\"client_secret\": \"[redacted]\", \"a\": 1}"}`,
		"host=db user=u password=hunter2 dbname=x":                                    "host=db user=u password=[redacted] dbname=x",
		"host=db password='hun ter2' dbname=x":                                        "host=db password=[redacted] dbname=x",
		"postgres://u:hunter2@db/x":                                                   "postgres://u:[redacted]@db/x",
		"ALTER ROLE x PASSWORD 'hunter2' VALID UNTIL 'infinity'":                      "ALTER ROLE x PASSWORD '[redacted]' VALID UNTIL 'infinity'",
		"Authorization: Bearer abcdef0123456789":                                      "Authorization: Bearer [redacted]",
		"AWS_SECRET_ACCESS_KEY=abc/def+1":                                             "AWS_SECRET_ACCESS_KEY=[redacted]",
		"AKIAIOSFODNN7EXAMPLE":                                                        "[redacted]",
		"ghp_0123456789abcdefghij0123456789abcdef":                                    "[redacted]",
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcDEF_-":                               "[redacted]",
		"-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----\n": "[redacted]\n",
		"-----BEGIN PRIVATE KEY-----\nMIIEcut":                                        "[redacted]",
		"password: hunter2!":                                                          "password: [redacted]",
	} {
		got := r.Text(in)
		require.Equal(t, want, got, in)
		require.Equal(t, got, r.Text(got), "once is enough")
		if json.Valid([]byte(in)) {
			require.True(t, json.Valid([]byte(got)), got)
		}
	}
}

func TestText_LeavesTheRestAsItIs(t *testing.T) {
	t.Parallel()
	r, err := New(Rules{})
	require.NoError(t, err)
	for _, s := range []string{
		"", "fine", "Please enter your password: it is needed.", "SELECT password FROM users", "the secret of success", "task-force", "risk-averse-investors-of-today",
		`{"token": 12, "passwords": 3}`, "https://example.com/a:b@c", "access denied", "basic facts", "How do I reset my password?",
		`{"password": null}`, "a::text", strings.Repeat("x", 1<<16),
	} {
		require.Equal(t, s, r.Text(s))
	}
	require.Equal(t, "sk-0123456789abcdef012345", (*Redactor)(nil).Text("sk-0123456789abcdef012345"))
}

func TestText_RegisteredColumnsAndPatterns(t *testing.T) {
	t.Parallel()
	r, err := New(Rules{Columns: []string{"ssn", `odd "name"`, "iban"}, Patterns: []string{`\bCASE-[0-9]+`}})
	require.NoError(t, err)
	for in, want := range map[string]string{
		`[{"ssn": "12-34", "n": 1}, {"SSN":77,"n":2}]`: `[{"ssn": "[redacted]", "n": 1}, {"SSN":"[redacted]","n":2}]`,
		`[{"ssn": {"a": ["x", "}"]}, "n": 1}]`:         `[{"ssn": "[redacted]", "n": 1}]`,
		`{"odd \"name\"": true, "iban": null}`:         `{"odd \"name\"": "[redacted]", "iban": null}`,
		`{"ssn": "cut off`:                             `{"ssn": "[redacted]"`,
		`{"a": {"ssn": {"iban": "x"}, "b": 2}}`:        `{"a": {"ssn": "[redacted]", "b": 2}}`,
		"see CASE-123 and CASE-9":                      "see [redacted] and [redacted]",
		`{"ssn":`:                                      `{"ssn":`,
	} {
		require.Equal(t, want, r.Text(in), in)
	}
}

func TestPattern_Refused(t *testing.T) {
	t.Parallel()
	for _, p := range []string{"", "(", "a*", strings.Repeat("a", 1001), `(?=x)y`} {
		_, err := Pattern(p)
		require.Error(t, err, p)
		_, err = New(Rules{Patterns: []string{p}})
		require.Error(t, err, p)
	}
	_, err := New(Rules{Columns: make([]string, 201)})
	require.Error(t, err)
}

func FuzzText(f *testing.F) {
	f.Add(`{"password": "a\"b", "ssn": [1, {"x": "}"}]}`)
	f.Add(`postgres://u:p@h password=x sk-0123456789abcdef0123`)
	r, err := New(Rules{Columns: []string{"ssn"}})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, s string) {
		got := r.Text(s)
		if json.Valid([]byte(s)) {
			require.True(t, json.Valid([]byte(got)), "%s became %s", s, got)
		}
	})
}

func BenchmarkText(b *testing.B) {
	r, err := New(Rules{})
	require.NoError(b, err)
	text := strings.Repeat(`{"customer": "bela", "sum": 42.00, "status": "open", "comment": "parcel is late"}, `, 100)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		r.Text(text)
	}
}
