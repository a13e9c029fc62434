// Package addr parses the addresses of links: the kind of network, and the data for it.
//
//	HOST:PORT                     TCP
//	unix:/PATH                    shared memory of one host; the path is of a unix socket
//	verbs:HOST:PORT[?OPTIONS]     InfiniBand or RoCE (Verbs)
//
// Nothing is resolved, looked up or opened. All functions are safe for concurrent use.
package addr

import (
	"net"
	"strconv"
	"strings"
)

// Kind is a kind of network.
type Kind int

// These are the kinds.
const (
	KindTCP    Kind = iota
	KindMemory      // shared memory between processes of one host
	KindVerbs
)

const (
	unixScheme  = "unix:"
	verbsScheme = "verbs:"
)

// Split returns the kind of network of an address, and the address in the form of that kind's
// transport: the path of a unix: address, other addresses unchanged. An address without a known
// scheme is TCP's.
func Split(s string) (k Kind, rest string) {
	if path, ok := strings.CutPrefix(s, unixScheme); ok {
		return KindMemory, path
	}
	if strings.HasPrefix(s, verbsScheme) {
		return KindVerbs, s
	}
	return KindTCP, s
}

// WithPort adds the port to a host name, an IP address or "" that has none. A string with a colon
// that is not an IP address is unchanged.
func WithPort(s string, port int) string {
	if net.ParseIP(s) != nil || !strings.Contains(s, ":") {
		return net.JoinHostPort(s, strconv.Itoa(port))
	}
	return s
}
