package spec

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/internal/transport/addr"
)

// Zipper describes a forwarder.
type Zipper struct {
	// Address is HOST:PORT as the clusters reach the forwarder.
	Address string
	// Per has other addresses on some networks, because a zipper node has a different one on each.
	Per map[string]string
	// Networks are the networks that the forwarder is on: clusters', or without ranks. If there are
	// none, it is on those on which it has an address, which are all clusters' if Address is not
	// empty.
	Networks []string
	// HostKey is the key that the forwarder must have (jobenv.Zipper); an empty string means any.
	HostKey string
	// Dials are those of its networks, without ranks, on which it does not listen.
	Dials []string
}

// AddressFor returns the forwarder's address on a network, as the ranks or forwarders there reach
// it. It is empty if the forwarder is not on that network, or does not listen there.
func (z Zipper) AddressFor(network string) string {
	if len(z.Networks) > 0 && !slices.Contains(z.Networks, network) || slices.Contains(z.Dials, network) {
		return ""
	}
	if a := z.Per[network]; a != "" {
		return a
	}
	return z.Address
}

// On tells whether the forwarder is on a network without ranks.
func (z Zipper) On(network string) bool {
	return z.Per[network] != "" || slices.Contains(z.Networks, network) || slices.Contains(z.Dials, network)
}

// ParseZipper reads HOST[:PORT], HOST[:PORT]=a,b or a@HOST[:PORT]+b@HOST[:PORT]; see
// jobenv.ParseZipper.
func ParseZipper(s string) (Zipper, error) {
	plain, net, err := jobenv.ParseZipper(s)
	if err != nil {
		return Zipper{}, err
	}
	if len(net.Ports) == 0 {
		a, err := address(plain)
		return Zipper{Address: a, HostKey: net.HostKey}, err
	}
	z := Zipper{Per: map[string]string{}, HostKey: net.HostKey}
	for _, p := range net.Ports {
		if p.Address == "" {
			z.Dials = append(z.Dials, p.Network)
			continue
		}
		if z.Per[p.Network], err = address(p.Address); err != nil {
			return Zipper{}, err
		}
	}
	return z, nil
}

// address adds the default port to an address without one.
func address(s string) (string, error) {
	if s == "" {
		return "", errors.New("an empty forwarder address; want HOST[:PORT]")
	}
	if strings.HasPrefix(s, "-") {
		return "", fmt.Errorf("forwarder %q: that is a flag, not an address; want HOST[:PORT], as in zip1 or zip1:%d", s,
			jobenv.DefaultPort)
	}
	switch kind, _ := addr.Split(s); kind {
	case addr.KindMemory:
		return s, nil
	case addr.KindVerbs:
		a, err := addr.CompleteVerbs(s, jobenv.DefaultPort)
		if err != nil || strings.HasPrefix(a.Host, ":") {
			return "", fmt.Errorf("forwarder %q: want verbs:HOST[:PORT], as in verbs:zip1 or verbs:zip1:%d (%v)", s,
				jobenv.DefaultPort, err)
		}
		return a.String(), nil
	}
	s = addr.WithPort(s, jobenv.DefaultPort)
	host, port, err := net.SplitHostPort(s)
	n, perr := strconv.Atoi(port)
	if err != nil || perr != nil || host == "" || n < 1 || n > 65535 {
		return "", fmt.Errorf("forwarder %q: want HOST[:PORT], as in zip1 or zip1:%d", s, jobenv.DefaultPort)
	}
	return s, nil
}
