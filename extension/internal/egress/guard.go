package egress

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"aidb/extension/internal/fault"
)

// ErrDenied is in the chain of every refusal: a host or address that the settings do not allow.
var ErrDenied = errors.New("egress is not allowed")

// DefaultParameter is the setting that error texts name when the policy does not say which one it was read from.
const DefaultParameter = "aidb.egress_allowlist"

// Policy is what the settings say. The zero Policy: no list, TLS everywhere but on loopback.
type Policy struct {
	// List is the allow-list, nil for none.
	List *List
	// Parameter is the setting that List was read from.
	Parameter string
	// AllowInsecure permits plain HTTP to any allowed host (aidb.allow_insecure_egress).
	AllowInsecure bool
	// PublicOnly refuses private addresses, too, unless the list names them, and loopback to all names but its own.
	PublicOnly bool
}

// Equal reports whether two policies allow the same.
func (p Policy) Equal(q Policy) bool {
	if (p.List == nil) != (q.List == nil) || (p.List != nil && p.List.text != q.List.text) {
		return false
	}
	return p.parameter() == q.parameter() && p.AllowInsecure == q.AllowInsecure && p.PublicOnly == q.PublicOnly
}

func (p Policy) parameter() string {
	if p.Parameter == "" {
		return DefaultParameter
	}
	return p.Parameter
}

// CheckURL says whether a request may be sent to the URL, as far as that can be told without resolving its host.
func (p Policy) CheckURL(u *url.URL) error {
	host := u.Hostname()
	if host == "" {
		return fault.New(fault.InvalidArgument, "URL has no host")
	}
	switch strings.ToLower(u.Scheme) {
	case "https":
	case "http":
		if !p.AllowInsecure && !loopbackName(host) {
			return fault.Wrap(ErrDenied, fault.Privilege, "plain HTTP to host %s is not allowed", fault.Name(host)).
				WithHint("Use an https URL, or let an administrator set aidb.allow_insecure_egress.")
		}
	default:
		return fault.New(fault.InvalidArgument, "URL scheme %s is not supported", fault.Name(u.Scheme)).
			WithHint("Use https, or http for a server on this machine.")
	}
	if !p.List.Host(host) {
		return p.denied(host)
	}
	if a, ok := literal(host); ok {
		return p.checkAddr(host, a)
	}
	return nil
}

// CheckAddr says whether a connection for host may be made to the address that it resolved to. Plain says that
// the connection carries no TLS.
func (p Policy) CheckAddr(host string, a netip.Addr, plain bool) error {
	if plain && !p.AllowInsecure && !a.Unmap().IsLoopback() {
		return fault.Wrap(ErrDenied, fault.Privilege, "plain HTTP to host %s is not allowed: it resolves to %s", fault.Name(host), a).
			WithHint("Use an https URL, or let an administrator set aidb.allow_insecure_egress.")
	}
	return p.checkAddr(host, a)
}

func (p Policy) checkAddr(host string, a netip.Addr) error {
	a = a.Unmap().WithZone("")
	end := carried(a)
	inside := p.PublicOnly && (private(end) || end.IsLoopback() && !loopbackName(host))
	if !inside && !reserved(end) || p.List.Addr(a) || p.List.Addr(end) {
		return nil
	}
	what := "address " + fault.Name(a.String())
	if _, ok := literal(host); !ok {
		what = "address " + fault.Name(a.String()) + " of host " + fault.Name(host)
	}
	if inside && !reserved(end) {
		return fault.Wrap(ErrDenied, fault.Privilege, "%s is not allowed: it is private", what).
			WithHint("An administrator can allow it by naming the address in %s.", p.parameter())
	}
	return fault.Wrap(ErrDenied, fault.Privilege, "%s is not allowed: it is link-local, unspecified, multicast or a metadata service", what).
		WithHint("An administrator can allow it by naming the address in %s.", p.parameter())
}

func (p Policy) denied(host string) error {
	return fault.Wrap(ErrDenied, fault.Privilege, "host %s is not allowed by %s", fault.Name(host), p.parameter()).
		WithHint("An administrator can add it to %s.", p.parameter())
}

// The metadata services that are not link-local.
var metadata = []netip.Addr{
	netip.MustParseAddr("100.100.100.200"),
	netip.MustParseAddr("192.0.0.192"),
	netip.MustParseAddr("168.63.129.16"),
	netip.MustParseAddr("fd00:ec2::254"),
	netip.MustParseAddr("fd20:ce::254"),
}

// The networks whose addresses carry an IPv4 address to a gateway, and where in them it stands: NAT64 (RFC 6052, RFC 8215),
// 6to4 (RFC 3056), and the compatible addresses of old (RFC 4291).
var gateways = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12},
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12},
	{netip.MustParsePrefix("2002::/16"), 2},
	{netip.MustParsePrefix("::/96"), 12},
}

// carried is where a connection to the address ends: the IPv4 address that a gateway finds in it, or the address itself.
func carried(a netip.Addr) netip.Addr {
	if a == netip.IPv6Loopback() {
		return a
	}
	for _, g := range gateways {
		if g.prefix.Contains(a) {
			b := a.As16()
			return netip.AddrFrom4([4]byte(b[g.at : g.at+4]))
		}
	}
	return a
}

// The addresses that carriers share among their customers count as private.
var shared = netip.MustParsePrefix("100.64.0.0/10")

func private(a netip.Addr) bool { return a.IsPrivate() || shared.Contains(a) }

func reserved(a netip.Addr) bool {
	if a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified() {
		return true
	}
	for _, m := range metadata {
		if a == m {
			return true
		}
	}
	return false
}

// loopbackName says whether a host means this machine by its very name. What the name resolves to is checked
// again when the connection is made.
func loopbackName(host string) bool {
	if a, ok := literal(host); ok {
		return a.IsLoopback()
	}
	name := canonical(host)
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

// Guard applies a policy to an HTTP client: Dial belongs into the transport, Wrap around it, Redirect into the client.
type Guard struct {
	policy  Policy
	dialer  net.Dialer
	proxies map[string]bool
}

// Through says which proxies requests go through: those are the administrator's, and their addresses may be private.
func (g *Guard) Through(p Proxy) {
	g.proxies = map[string]bool{}
	for _, text := range []string{p.HTTP, p.HTTPS} {
		if u, err := proxyURL(text); err == nil && u != nil {
			g.proxies[canonical(u.Hostname())] = true
		}
	}
}

// NewGuard returns a guard. A connection attempt ends after timeout (0: ten seconds).
func NewGuard(p Policy, timeout time.Duration) *Guard {
	if timeout <= 0 {
		timeout = 10 * time.Second
	}
	return &Guard{policy: p, dialer: net.Dialer{Timeout: timeout, KeepAlive: 30 * time.Second}}
}

// Policy returns the guard's policy.
func (g *Guard) Policy() Policy { return g.policy }

// Dial connects to host:port after checking each address that the host resolves to, right before the socket
// connects to it. The transport does not tell what the connection is for, so that clear text is recognised by
// the request's mark (see Wrap); without one the connection counts as TLS.
func (g *Guard) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	plain, _ := ctx.Value(plainKey{}).(string)
	policy := g.policy
	policy.PublicOnly = policy.PublicOnly && !g.proxies[canonical(host)]
	d := g.dialer
	d.ControlContext = func(_ context.Context, _, addr string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(addr)
		if err != nil {
			return fault.Wrap(err, fault.Internal, "address %s cannot be read", fault.Name(addr))
		}
		return policy.CheckAddr(host, ap.Addr(), plain != "" && canonical(plain) == canonical(host))
	}
	return d.DialContext(ctx, network, address)
}

// plainKey marks the context of a request that goes out without TLS; the value is the URL's host. A transport
// may dial a proxy for it instead, and the mark must not judge the proxy.
type plainKey struct{}

// Wrap returns a transport that checks the URL of each request, redirected ones included, before base sends it.
func (g *Guard) Wrap(base http.RoundTripper) http.RoundTripper { return guarded{g, base} }

type guarded struct {
	guard *Guard
	base  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := t.guard.policy.CheckURL(r.URL); err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	if r.URL.Scheme == "http" {
		r = r.WithContext(context.WithValue(r.Context(), plainKey{}, r.URL.Hostname()))
	}
	resp, err := t.base.RoundTrip(r)
	if err == nil && resp.StatusCode == http.StatusSwitchingProtocols {
		// Its body is the connection itself, which neither a deadline nor a cancel ends.
		_ = resp.Body.Close()
		return nil, errSwitched
	}
	return resp, err
}

var errSwitched = errors.New("the server switched to another protocol, which nobody asked for (HTTP 101)")

// CloseIdleConnections lets http.Client.CloseIdleConnections through.
func (t guarded) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// maxRedirects bounds a chain; an API that moves more than this is misconfigured.
const maxRedirects = 4

// Redirect is an http.Client's CheckRedirect.
func (g *Guard) Redirect(next *http.Request, via []*http.Request) error {
	first, last := via[0], via[len(via)-1]
	to := (&url.URL{Scheme: next.URL.Scheme, Host: next.URL.Host, Path: next.URL.Path}).String()
	switch {
	case len(via) > maxRedirects:
		return fault.Wrap(ErrDenied, fault.Privilege, "too many redirects, the last one to %s", fault.Name(to))
	case next.Method != first.Method:
		return fault.Wrap(ErrDenied, fault.Privilege, "redirect to %s would turn the %s request into a %s request", fault.Name(to), first.Method, next.Method).
			WithHint("Use the final address as the URL.")
	case last.URL.Scheme == "https" && next.URL.Scheme != "https":
		return fault.Wrap(ErrDenied, fault.Privilege, "redirect from https to %s is not allowed", fault.Name(to))
	}
	if err := g.policy.CheckURL(next.URL); err != nil {
		return fault.Wrap(err, fault.KindOf(err), "redirect refused: %s", err)
	}
	return nil
}

// Client returns a client whose every request passes the guard. It takes over the transport.
func (g *Guard) Client(t *http.Transport) *http.Client {
	t.DialContext = g.Dial
	return &http.Client{Transport: g.Wrap(t), CheckRedirect: g.Redirect}
}
