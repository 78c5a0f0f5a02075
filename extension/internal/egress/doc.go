// Package egress decides which hosts the server process may talk to. Every outbound connection of aidb (models,
// MCP servers, telemetry) goes through a Guard, because whoever registers a model or a server chooses the URL,
// and the server's network position is not his: without a guard a URL could reach the cloud's metadata service,
// or carry a secret over the wire in clear text.
//
// Three checks, since none of them alone is enough:
//
//	URL       before each request and each hop of a redirect: scheme, and the host against the allow-list
//	address   when the socket is about to connect: what the name resolved to at that moment, so that a name
//	          which answers differently the second time gains nothing
//	redirect  a request that carries a body is never turned into another one, and never leaves TLS
//
// The allow-list is the setting aidb.egress_allowlist (or edb.egress_allowlist where the former is unset). Its
// entries are separated by commas or white space:
//
//	api.example.com   that host, in any case
//	.example.com      its subdomains, not example.com itself
//	192.0.2.7         an address, when the URL holds an address
//	192.0.2.0/24      a range, likewise; names are not resolved to be matched
//
// Without a list every host is allowed over TLS. Plain HTTP is for loopback only, unless AllowInsecure is set.
// Link-local addresses and the metadata services of the clouds are refused unless the list names the address.
package egress
