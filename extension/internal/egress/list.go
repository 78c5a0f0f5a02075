package egress

import (
	"net/netip"
	"strings"

	"aidb/extension/internal/fault"
)

// List is a parsed allow-list. The nil List allows everything; a List without entries cannot be made by Parse.
type List struct {
	text     string // as parsed, entries separated by one blank
	hosts    map[string]bool
	suffixes []string
	prefixes []netip.Prefix
}

// Parse reads a setting's text. Text without any entry gives nil, which is "no list". A text with an entry that
// is not understood is refused as a whole: leaving the entry out could allow what was meant to be kept out.
func Parse(text string) (*List, error) {
	fields := strings.FieldsFunc(text, func(r rune) bool {
		return r == ',' || r == ' ' || r == '\t' || r == '\n' || r == '\r'
	})
	if len(fields) == 0 {
		return nil, nil
	}
	l := &List{text: strings.Join(fields, " "), hosts: make(map[string]bool, len(fields))}
	for _, f := range fields {
		if err := l.add(f); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func (l *List) add(entry string) error {
	if strings.Contains(entry, "/") {
		p, err := netip.ParsePrefix(entry)
		if err != nil {
			return malformed(entry)
		}
		l.prefixes = append(l.prefixes, unmapPrefix(p))
		return nil
	}
	if a, ok := literal(entry); ok {
		l.prefixes = append(l.prefixes, netip.PrefixFrom(a, a.BitLen()))
		return nil
	}
	name := canonical(entry)
	suffix := strings.HasPrefix(name, ".")
	if !validName(strings.TrimPrefix(name, ".")) {
		return malformed(entry)
	}
	if suffix {
		l.suffixes = append(l.suffixes, name)
	} else {
		l.hosts[name] = true
	}
	return nil
}

func malformed(entry string) error {
	return fault.New(fault.InvalidArgument, "allow-list entry %s is not a host name, a suffix, an address or a range", fault.Name(entry)).
		WithHint("Entries look like api.example.com, .example.com, 192.0.2.7 or 192.0.2.0/24; no scheme, no port.")
}

// Host reports whether a URL's host is on the list.
func (l *List) Host(host string) bool {
	if l == nil {
		return true
	}
	if a, ok := literal(host); ok {
		return l.Addr(a)
	}
	name := canonical(host)
	if l.hosts[name] {
		return true
	}
	for _, s := range l.suffixes {
		if strings.HasSuffix(name, s) && len(name) > len(s) {
			return true
		}
	}
	return false
}

// Addr reports whether the list names the address, alone or in a range. The nil List names none.
func (l *List) Addr(a netip.Addr) bool {
	if l == nil {
		return false
	}
	a = a.Unmap().WithZone("")
	for _, p := range l.prefixes {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// canonical is the form in which names are compared: lower case, without the root's dot.
func canonical(host string) string {
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

// literal reads an address in the forms a URL's host can have. Old spellings of IPv4 (0x7f.1, 2130706433) are
// names here; should the resolver take them for addresses, the check at dial time sees what they meant.
func literal(host string) (netip.Addr, bool) {
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	a, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}, false
	}
	return a.Unmap().WithZone(""), true
}

func unmapPrefix(p netip.Prefix) netip.Prefix {
	if a := p.Addr(); a.Is4In6() && p.Bits() >= 96 {
		return netip.PrefixFrom(a.Unmap(), p.Bits()-96).Masked()
	}
	return p.Masked()
}

func validName(name string) bool {
	if name == "" || len(name) > 253 || strings.Contains(name, "..") {
		return false
	}
	for _, r := range name {
		if r <= ' ' || r == 0x7f || strings.ContainsRune(`:*?#@[]\<>"'%`, r) {
			return false
		}
	}
	return true
}
