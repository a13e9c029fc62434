// Package addr has the addresses of links: for which kind of network one is, and what it says.
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

// The kinds.
const (
	KindTCP    Kind = iota
	KindMemory      // shared by the processes of one host
	KindVerbs
)

const (
	unixScheme  = "unix:"
	verbsScheme = "verbs:"
)

// Split tells for which kind of network an address is, and gives it in the form that the kind's
// transport takes: the path of a unix: address, others as they are. What has no known scheme is
// TCP's.
func Split(s string) (k Kind, rest string) {
	if path, ok := strings.CutPrefix(s, unixScheme); ok {
		return KindMemory, path
	}
	if strings.HasPrefix(s, verbsScheme) {
		return KindVerbs, s
	}
	return KindTCP, s
}

// WithPort adds the port to a host name or IP address, or to nothing, that has none. What has a
// colon and is no IP address stays as it is.
func WithPort(s string, port int) string {
	if net.ParseIP(s) != nil || !strings.Contains(s, ":") {
		return net.JoinHostPort(s, strconv.Itoa(port))
	}
	return s
}
