package egress

import (
	"net/http"
	"net/url"
	"strings"

	"aidb/extension/internal/fault"
)

// Proxy is the environment's HTTP_PROXY, HTTPS_PROXY and NO_PROXY. The settings come as values because Go inside
// the server sees no environment of its own.
type Proxy struct {
	HTTP  string
	HTTPS string
	// Except are the hosts that are reached directly, as in NO_PROXY: names (with their subdomains), suffixes,
	// addresses, ranges, or * for all.
	Except string
}

// Func returns a transport's Proxy function, nil when there is no proxy at all. Loopback is never proxied.
func (p Proxy) Func() (func(*http.Request) (*url.URL, error), error) {
	plain, err := proxyURL(p.HTTP)
	if err != nil {
		return nil, err
	}
	secure, err := proxyURL(p.HTTPS)
	if err != nil {
		return nil, err
	}
	if plain == nil && secure == nil {
		return nil, nil
	}
	except, all := exceptions(p.Except)
	if all {
		return nil, nil
	}
	return func(r *http.Request) (*url.URL, error) {
		host := r.URL.Hostname()
		if loopbackName(host) || (except != nil && except.Host(host)) {
			return nil, nil
		}
		if r.URL.Scheme == "http" {
			return plain, nil
		}
		return secure, nil
	}, nil
}

func proxyURL(text string) (*url.URL, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		// The text may hold a password: it is not shown.
		return nil, fault.New(fault.InvalidArgument, "proxy URL cannot be read")
	}
	switch u.Scheme {
	case "http", "https", "socks5", "socks5h":
		return u, nil
	}
	return nil, fault.New(fault.InvalidArgument, "proxy URL scheme %s is not supported", fault.Name(u.Scheme))
}

// exceptions reads NO_PROXY. Unlike the allow-list it is somebody else's format: a name stands for its subdomains
// as well, a port is ignored, and what cannot be read is skipped.
func exceptions(text string) (l *List, all bool) {
	l = &List{hosts: map[string]bool{}}
	for _, f := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' }) {
		if f == "*" {
			return nil, true
		}
		f = strings.TrimPrefix(f, "*")
		if host, port, ok := strings.Cut(f, ":"); ok && !strings.Contains(port, ":") {
			f = host
		}
		if l.add(f) == nil && !strings.HasPrefix(f, ".") {
			_ = l.add("." + f)
		}
	}
	return l, false
}
