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
		"key sk-proj-0123456789abcdefABCDEF, ok":                                                      "key [redacted], ok",
		`{"api_key": "abc", "name": "x"}`:                                                             `{"api_key": "[redacted]", "name": "x"}`,
		`{"Password":"a\"b\\c","n":1}`:                                                                `{"Password":"[redacted]","n":1}`,
		`{"q": "{\"client_secret\": \"xyz\", \"a\": 1}"}`:                                             `{"q": "{\"client_secret\": \"[redacted]\", \"a\": 1}"}`,
		"host=db user=u password=hunter2 dbname=x":                                                    "host=db user=u password=[redacted] dbname=x",
		"host=db password='hun ter2' dbname=x":                                                        "host=db password=[redacted] dbname=x",
		"postgres://u:hunter2@db/x":                                                                   "postgres://u:[redacted]@db/x",
		"ALTER ROLE x PASSWORD 'hunter2' VALID UNTIL 'infinity'":                                      "ALTER ROLE x PASSWORD '[redacted]' VALID UNTIL 'infinity'",
		"Authorization: Bearer abcdef0123456789":                                                      "Authorization: Bearer [redacted]",
		"AWS_SECRET_ACCESS_KEY=abc/def+1":                                                             "AWS_SECRET_ACCESS_KEY=[redacted]",
		"AKIAIOSFODNN7EXAMPLE":                                                                        "[redacted]",
		"ghp_0123456789abcdefghij0123456789abcdef":                                                    "[redacted]",
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcDEF_-":                                               "[redacted]",
		"-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----\n":                 "[redacted]\n",
		"-----BEGIN PRIVATE KEY-----\nMIIEcut":                                                        "[redacted]",
		"-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMII\n-----END EC PRIVATE KEY-----": "[redacted]",
		"-----BEGIN PGP PRIVATE KEY BLOCK-----\nMII\n-----END PGP PRIVATE KEY BLOCK-----":             "[redacted]",
		`{"a":"-----BEGIN PRIVATE KEY-----MII\"x","b":1}`:                                             `{"a":"[redacted]","b":1}`,
		`{"q":"{\"password\":\"a\\\"b\\\\\",\"n\":1}"}`:                                               `{"q":"{\"password\":\"[redacted]\",\"n\":1}"}`,
		`{"q":"{\"p\":\"{\\\"password\\\":\\\"abc\\\"}\"}"}`:                                          `{"q":"{\"p\":\"{\\\"password\\\":\\\"[redacted]\\\"}\"}"}`,
		`{"password": 12345678}`:                                                                      `{"password": "[redacted]"}`,
		`{"dbPassword":"abc","PGPASSWORD":"abc"}`:                                                     `{"dbPassword":"[redacted]","PGPASSWORD":"[redacted]"}`,
		`{"token":"abc-12345"}`:                                                                       `{"token":"[redacted]"}`,
		`{"Authorization":"abc","cookie":"a=b"}`:                                                      `{"Authorization":"[redacted]","cookie":"[redacted]"}`,
		`[{"name":"password","value":"abc"}]`:                                                         `[{"name":"password","value":"[redacted]"}]`,
		`{'password': 'abc'}`:                                                                         `{'password': '[redacted]'}`,
		"<password>abc</password>":                                                                    "<password>[redacted]</password>",
		"PGPASSWORD=abc psql":                                                                         "PGPASSWORD=[redacted] psql",
		"AccountName=x;AccountKey=abc==;EndpointSuffix=y":                                             "AccountName=x;AccountKey=[redacted];EndpointSuffix=y",
		`password = "abc def"`:                                                                        `password = "[redacted]"`,
		"https://h/x?key=abcdef&a=1&X-Amz-Signature=0123456789":                                       "https://h/x?key=[redacted]&a=1&X-Amz-Signature=[redacted]",
		"https://hooks.slack.com/services/T0/B0/abc":                                                  "https://hooks.slack.com/services/[redacted]",
		"Cookie: a=b; c=d":                                                                            "Cookie: [redacted]",
		"x-api-key: abc":                                                                              "x-api-key: [redacted]",
		"Authorization: Token abc":                                                                    "Authorization: Token [redacted]",
		"curl -u me:abc https://h":                                                                    "curl -u me:[redacted] https://h",
		"gsk_0123456789abcdef0123 xai-0123456789abcdef0123":                                           "[redacted] [redacted]",
		"ALTER ROLE x ENCRYPTED PASSWORD E'a' VALID UNTIL 'infinity'":                                 "ALTER ROLE x ENCRYPTED PASSWORD '[redacted]' VALID UNTIL 'infinity'",
		`ALTER ROLE x PASSWORD 'a"b' VALID`:                                                           `ALTER ROLE x PASSWORD '[redacted]' VALID`,
		"ALTER ROLE x PASSWORD $$abc$$":                                                               "ALTER ROLE x PASSWORD '[redacted]'",
		"SCRAM-SHA-256$4096:c2FsdA==$c3RvcmVk:c2VydmVy":                                               "[redacted]",
		"md50123456789abcdef0123456789abcdef":                                                         "[redacted]",
		"token: abc12345678":                                                                          "token: [redacted]",
		"password: hunter2!":                                                                          "password: [redacted]",
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
		`{"password": null}`, "a::text", "ssh://git@host/x", "monkey: 12", "max_tokens: 4096", "token: 4096", "The token is a word.", `{"key": "status", "value": "open"}`,
		"tokens=120", "a Basic understanding", "bearer certificates", "primary key (id)", "public_key_id=7", `{"password": {"type": "string"}}`, "Authorization: required", `{"a":"the password '","b":[1]}`, `{"a":"password=","b":"c"}`, strings.Repeat("x", 1<<16),
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
		`{"q": "{\"ssn\": \"12\", \"iban\": 7}"}`:      `{"q": "{\"ssn\": \"[redacted]\", \"iban\": \"[redacted]\"}"}`,
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
	f.Add(`{"a":"the password '","b":[{"c":"password='"}],"d":"'"}`)
	f.Add(`{"q":"{\"password\":\"a\\\"b\",\"ssn\":1}","k":"-----BEGIN PRIVATE KEY-----a\"b","password=":"x","Authorization":"Token x"}`)
	r, err := New(Rules{Columns: []string{"ssn"}})
	require.NoError(f, err)
	f.Add("Bearer abcdefgh1 Basic aHVudGVy token=abc12345678 https://h?key=abcdef curl -u a:b x-key: a cookie: a=b")
	f.Fuzz(func(t *testing.T, s string) {
		got := r.Text(s)
		if json.Valid([]byte(s)) {
			require.True(t, json.Valid([]byte(got)), "%s became %s", s, got)
		}
	})
}

// BenchmarkText_Suspicious is a large result in which one word has to be looked at.
func BenchmarkText_Suspicious(b *testing.B) {
	r, err := New(Rules{})
	require.NoError(b, err)
	text := strings.Repeat(`{"key": "bela", "sum": 42.00, "status": "open", "comment": "access is late, secret token"}, `, 2500)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		r.Text(text)
	}
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

// Patterns are compiled when they are needed, so a wrong one would be met in the middle of a call.
func TestStructure_HasNoWrongPattern(t *testing.T) {
	t.Parallel()
	compiled := 0
	for _, hints := range structure().table {
		for _, h := range hints {
			if h.gate != nil {
				require.NotPanics(t, func() { h.gate() }, h.text)
			}
			for _, f := range h.forms {
				require.NotPanics(t, func() { f.pattern() }, h.text)
				compiled++
			}
		}
	}
	require.Greater(t, compiled, 50)
}
