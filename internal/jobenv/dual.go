package jobenv

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Dual is an address of a zipper node on the network of other clusters. Ranks of this cluster that
// are placed on that node accept links there.
type Dual struct {
	Cluster string // cluster whose ranks reach the address; empty for all other clusters
	Address string // host:port; port 0: any free one
}

const dualForm = "[CLUSTER@]HOST[:PORT], as in b@10.2.0.1; several with '+' between them"

// ParseDual parses [CLUSTER@]HOST[:PORT], several of them separated by '+' or ','.
func ParseDual(s string) (l []Dual, err error) {
	for _, part := range strings.FieldsFunc(s, func(r rune) bool { return r == '+' || r == ',' }) {
		d := Dual{Address: strings.TrimSpace(part)}
		if cluster, a, ok := strings.Cut(d.Address, "@"); ok {
			if d.Cluster, d.Address = cluster, a; cluster == "" {
				return nil, fmt.Errorf("%q: want %s", part, dualForm)
			}
		}
		host, port := strings.Trim(d.Address, "[]"), "0"
		if net.ParseIP(host) == nil && strings.Contains(d.Address, ":") {
			if host, port, err = net.SplitHostPort(d.Address); err != nil {
				return nil, fmt.Errorf("%q: want %s (a TCP address)", part, dualForm)
			}
		}
		n, err := strconv.Atoi(port)
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			return nil, fmt.Errorf("%q: name the node's address on the other cluster's network: it is the one that the other cluster connects to", part)
		}
		if err != nil || n < 0 || n > 65535 {
			return nil, fmt.Errorf("%q: want %s", part, dualForm)
		}
		d.Address = net.JoinHostPort(host, port)
		l = append(l, d)
	}
	return l, nil
}

// FormatDual is the inverse of ParseDual.
func FormatDual(l []Dual) string {
	var parts []string
	for _, d := range l {
		if d.Cluster != "" {
			parts = append(parts, d.Cluster+"@"+d.Address)
		} else {
			parts = append(parts, d.Address)
		}
	}
	return strings.Join(parts, "+")
}

// String returns the address as people write it, without a port that was not given.
func (d Dual) String() string {
	s := d.Address
	if host, ok := strings.CutSuffix(s, ":0"); ok {
		s = strings.Trim(host, "[]")
	}
	if d.Cluster != "" {
		return d.Cluster + "@" + s
	}
	return s
}

// CheckDual checks the addresses of one cluster against the job.
func CheckDual(l []Dual, cluster string, layout []Cluster) error {
	for _, d := range l {
		switch {
		case d.Cluster == cluster:
			return fmt.Errorf("%v is for the cluster itself: name the other cluster, whose ranks reach that address", d)
		case d.Cluster != "" && !slices.ContainsFunc(layout, func(c Cluster) bool { return c.Name == d.Cluster }):
			return fmt.Errorf("%v is for cluster %q, which the job does not have", d, d.Cluster)
		}
	}
	return nil
}

// DirectAllow has the addresses to which processes may open direct links, in addition to those of
// their forwarders.
type DirectAllow struct {
	Hosts    []string // addresses and names
	Networks []netip.Prefix
}

// ParseDirectAllow parses addresses, host names and networks (CIDR) separated by ',' or '+'.
func ParseDirectAllow(s string) (d DirectAllow, err error) {
	for _, part := range strings.FieldsFunc(s, func(r rune) bool { return r == '+' || r == ',' }) {
		part = strings.TrimSpace(part)
		p, err := netip.ParsePrefix(part)
		_, notIP := netip.ParseAddr(part)
		switch {
		case err == nil:
			d.Networks = append(d.Networks, p)
		case part == "" || strings.ContainsAny(part, "/@ ") || notIP != nil && strings.Contains(part, ":"):
			return DirectAllow{}, fmt.Errorf("%q: want addresses without port, host names or networks, "+
				"as in 10.2.0.7,10.3.0.0/24", part)
		default:
			d.Hosts = append(d.Hosts, part)
		}
	}
	return d, nil
}

// Reached returns the addresses that ranks of a cluster must be allowed (ParseDirectAllow) to open
// direct links to these addresses of another cluster. It returns "" if none of them is for the
// cluster.
func Reached(l []Dual, cluster string) string {
	var hosts []string
	for _, d := range l {
		if d.Cluster == "" || d.Cluster == cluster {
			host, _, _ := net.SplitHostPort(d.Address) // ParseDual has written it
			hosts = append(hosts, host)
		}
	}
	return strings.Join(hosts, ",")
}
