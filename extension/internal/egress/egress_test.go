package egress

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"aidb/extension/internal/fault"
)

func TestList_MatchesHosts(t *testing.T) {
	t.Parallel()
	list, err := Parse("api.Example.com, .internal.example.net\n192.0.2.7 198.51.100.0/24,2001:db8::/32 ::ffff:203.0.113.0/120")
	require.NoError(t, err)
	for host, want := range map[string]bool{
		"api.example.com":            true,
		"API.EXAMPLE.COM":            true,
		"api.example.com.":           true,
		"example.com":                false,
		"x.api.example.com":          false,
		"api.example.com.evil.org":   false,
		"evilapi.example.com":        false,
		"a.internal.example.net":     true,
		"a.b.internal.example.net":   true,
		"internal.example.net":       false,
		"xinternal.example.net":      false,
		".internal.example.net":      false,
		"192.0.2.7":                  true,
		"192.0.2.8":                  false,
		"198.51.100.200":             true,
		"198.51.101.1":               false,
		"::ffff:192.0.2.7":           true,
		"[2001:db8::1]":              true,
		"2001:db9::1":                false,
		"203.0.113.9":                true,
		"198.51.100.200.nip.example": false,
		"":                           false,
	} {
		require.Equal(t, want, list.Host(host), "host %q", host)
	}
}

func TestList_WithoutEntriesIsNoList(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", " ", ",, \n"} {
		list, err := Parse(text)
		require.NoError(t, err)
		require.Nil(t, list)
		require.True(t, list.Host("anything.example"))
		require.False(t, list.Addr(netip.MustParseAddr("169.254.169.254")))
	}
}

func TestList_RefusesWhatItDoesNotUnderstand(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"https://api.example.com", "api.example.com:443", "*.example.com", "10.0.0.0/33", "a..b", ".", "a/b", "user@host"} {
		_, err := Parse("good.example " + text)
		require.True(t, fault.Is(err, fault.InvalidArgument), "%q gave %v", text, err)
		require.Contains(t, err.Error(), text)
	}
}

func TestPolicy_CheckURL(t *testing.T) {
	t.Parallel()
	list := func(s string) *List {
		l, err := Parse(s)
		require.NoError(t, err)
		return l
	}
	cases := []struct {
		name   string
		policy Policy
		url    string
		fails  string // words of the error, "" when allowed
	}{
		{"no list allows any host over TLS", Policy{}, "https://anything.example/v1", ""},
		{"no list, plain HTTP to a name", Policy{}, "http://anything.example/v1", "plain HTTP"},
		{"no list, plain HTTP to a private address", Policy{}, "http://10.0.0.1/v1", "plain HTTP"},
		{"plain HTTP to loopback", Policy{}, "http://127.0.0.1:8080/v1", ""},
		{"plain HTTP to loopback, IPv6", Policy{}, "http://[::1]:8080/v1", ""},
		{"plain HTTP to localhost", Policy{}, "http://LocalHost:8080/v1", ""},
		{"plain HTTP to a host that begins like localhost", Policy{}, "http://localhost.evil.example/v1", "plain HTTP"},
		{"plain HTTP allowed by setting", Policy{AllowInsecure: true}, "http://10.0.0.1/v1", ""},
		{"host on the list", Policy{List: list("api.example.com")}, "https://api.example.com/v1", ""},
		{"host not on the list", Policy{List: list("api.example.com")}, "https://other.example/v1", "aidb.egress_allowlist"},
		{"the error names the other setting", Policy{List: list("a.b"), Parameter: "edb.egress_allowlist"}, "https://c.d/", "edb.egress_allowlist"},
		{"loopback needs a list entry too", Policy{List: list("api.example.com")}, "http://127.0.0.1/v1", "aidb.egress_allowlist"},
		{"a range does not match a name", Policy{List: list("127.0.0.0/8")}, "http://localhost/v1", "aidb.egress_allowlist"},
		{"metadata service", Policy{}, "https://169.254.169.254/latest", "metadata"},
		{"metadata service, IPv4 in IPv6", Policy{}, "https://[::ffff:169.254.169.254]/latest", "metadata"},
		{"metadata service with insecure egress", Policy{AllowInsecure: true}, "http://169.254.169.254/latest", "metadata"},
		{"metadata service that is listed", Policy{AllowInsecure: true, List: list("169.254.169.254")}, "http://169.254.169.254/latest", ""},
		{"unspecified address", Policy{AllowInsecure: true}, "http://0.0.0.0/", "not allowed"},
		{"other scheme", Policy{}, "file:///etc/passwd", "no host"},
		{"other scheme with host", Policy{}, "gopher://example.com/", "scheme"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			u, err := url.Parse(c.url)
			require.NoError(t, err)
			err = c.policy.CheckURL(u)
			if c.fails == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.fails)
		})
	}
}

func TestPolicy_CheckAddr(t *testing.T) {
	t.Parallel()
	listed, err := Parse("169.254.0.0/16 trap.example")
	require.NoError(t, err)
	addr := netip.MustParseAddr
	require.NoError(t, Policy{}.CheckAddr("a.example", addr("93.184.216.34"), false))
	require.NoError(t, Policy{}.CheckAddr("a.example", addr("10.1.2.3"), false))
	require.NoError(t, Policy{}.CheckAddr("localhost", addr("127.0.0.1"), true))
	require.ErrorContains(t, Policy{}.CheckAddr("localhost", addr("192.0.2.1"), true), "resolves to 192.0.2.1")
	err = Policy{}.CheckAddr("trap.example", addr("169.254.169.254"), false)
	require.ErrorContains(t, err, "169.254.169.254")
	require.ErrorContains(t, err, "trap.example")
	require.True(t, fault.Is(err, fault.Privilege))
	require.Error(t, Policy{}.CheckAddr("trap.example", addr("fe80::1%eth0"), false))
	require.Error(t, Policy{}.CheckAddr("trap.example", addr("fd00:ec2::254"), false))
	require.NoError(t, Policy{List: listed}.CheckAddr("trap.example", addr("169.254.169.254"), false))

	// what a gateway makes of it counts
	for _, a := range []string{"64:ff9b::a9fe:a9fe", "64:ff9b:1::a9fe:a9fe", "2002:a9fe:a9fe::1", "::169.254.169.254"} {
		require.ErrorContains(t, Policy{}.CheckAddr("trap.example", addr(a), false), "link-local", a)
		require.NoError(t, Policy{List: listed}.CheckAddr("trap.example", addr(a), false), a)
	}
	public := Policy{PublicOnly: true}
	for _, a := range []string{"64:ff9b::10.0.0.1", "2002:a00:1::", "::ffff:10.0.0.1", "64:ff9b::127.0.0.1"} {
		require.ErrorContains(t, public.CheckAddr("inside.example", addr(a), false), "private", a)
	}
	for _, a := range []string{"64:ff9b::93.184.216.34", "2002:5db8:d822::1", "2001:db8::1"} {
		require.NoError(t, public.CheckAddr("a.example", addr(a), false), a)
	}
	require.NoError(t, public.CheckAddr("localhost", addr("::1"), true))
}

func client(p Policy) *http.Client { return NewGuard(p, 0).Client(&http.Transport{}) }

func TestGuard_ChecksEveryHop(t *testing.T) {
	t.Parallel()
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, _ = w.Write(append([]byte("got "), b...))
	}))
	defer target.Close()
	hop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/307":
			http.Redirect(w, r, target.URL, http.StatusTemporaryRedirect)
		case "/302":
			http.Redirect(w, r, target.URL, http.StatusFound)
		case "/metadata":
			http.Redirect(w, r, "https://169.254.169.254/latest?token=s3cret", http.StatusTemporaryRedirect)
		case "/plain":
			http.Redirect(w, r, "http://192.0.2.1/", http.StatusTemporaryRedirect)
		default:
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
		}
	}))
	defer hop.Close()
	post := func(path string) (string, error) {
		resp, err := client(Policy{}).Post(hop.URL+path, "text/plain", strings.NewReader("body"))
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		return string(b), err
	}
	got, err := post("/307")
	require.NoError(t, err)
	require.Equal(t, "got body", got)
	_, err = post("/302")
	require.ErrorContains(t, err, "would turn the POST request into a GET request")
	_, err = post("/metadata")
	require.ErrorContains(t, err, "metadata")
	var f *fault.Error
	require.True(t, errors.As(err, &f))
	require.Equal(t, fault.Privilege, f.Kind)
	require.NotContains(t, f.Message, "s3cret")
	_, err = post("/plain")
	require.ErrorContains(t, err, "plain HTTP")
	_, err = post("/loop")
	require.ErrorContains(t, err, "too many redirects")
}

func TestGuard_ChecksTheAddressWhenItDials(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) }))
	defer srv.Close()
	u, err := url.Parse(srv.URL)
	require.NoError(t, err)
	g := NewGuard(Policy{}, 0)
	conn, err := g.Dial(context.Background(), "tcp", "localhost:"+u.Port())
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	// A name cannot be made to resolve to a metadata address in a test, an address can be dialled as one.
	_, err = g.Dial(context.Background(), "tcp", "169.254.169.254:80")
	require.True(t, fault.Is(err, fault.Privilege), "%v", err)
}

func TestGuard_WrapRefusesBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	list, err := Parse("api.example.com")
	require.NoError(t, err)
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the server was reached") }))
	defer srv.Close()
	_, err = client(Policy{List: list, Parameter: "edb.egress_allowlist"}).Get(srv.URL)
	require.ErrorContains(t, err, "host '127.0.0.1' is not allowed by edb.egress_allowlist")
}

// The body of such an answer is the connection, which a read of does not come back from: no deadline ended a call that had one.
func TestGuard_AnswerThatSwitchesProtocols(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n")
		_, _ = io.Copy(io.Discard, conn) // until the client closes it
	}))
	defer srv.Close()
	_, err := client(Policy{}).Get(srv.URL) //nolint:bodyclose // there is none
	require.ErrorContains(t, err, "HTTP 101")
}

func TestProxy(t *testing.T) {
	t.Parallel()
	f, err := Proxy{}.Func()
	require.NoError(t, err)
	require.Nil(t, f)
	_, err = Proxy{HTTPS: "http://user:pass@"}.Func()
	require.ErrorContains(t, err, "proxy URL")
	require.NotContains(t, err.Error(), "pass")
	_, err = Proxy{HTTPS: "ftp://proxy"}.Func()
	require.Error(t, err)
	f, err = Proxy{HTTP: "plain.proxy:3128", HTTPS: "http://secure.proxy:3128", Except: "example.com, .corp,10.0.0.0/8,*.star,ported:8080"}.Func()
	require.NoError(t, err)
	for target, want := range map[string]string{
		"https://api.openai.com/v1":  "secure.proxy:3128",
		"http://api.openai.com/v1":   "plain.proxy:3128",
		"https://example.com":        "",
		"https://sub.example.com":    "",
		"https://notexample.com":     "secure.proxy:3128",
		"https://a.corp":             "",
		"https://a.star":             "",
		"https://10.2.3.4":           "",
		"https://ported":             "",
		"http://127.0.0.1:8080":      "",
		"http://localhost:8080/path": "",
	} {
		r, err := http.NewRequest(http.MethodGet, target, nil)
		require.NoError(t, err)
		u, err := f(r)
		require.NoError(t, err)
		got := ""
		if u != nil {
			got = u.Host
		}
		require.Equal(t, want, got, target)
	}
	f, err = Proxy{HTTPS: "http://secure.proxy", Except: "a, *"}.Func()
	require.NoError(t, err)
	require.Nil(t, f)
}
