package jobenv

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leidenzipper/zipper/vrank"
)

// Zipper is one forwarder of a job with several hops: the clusters on whose networks it is, with
// its address on each.
type Zipper struct{ Ports []Port }

// Port is a zipper's place on one cluster's network.
type Port struct{ Cluster, Address string }

// Address is the zipper's address on a cluster's network; empty: it is not on it.
func (z Zipper) Address(cluster string) string {
	for _, p := range z.Ports {
		if p.Cluster == cluster {
			return p.Address
		}
	}
	return ""
}

// String is the form that ParseZipper reads: a@ADDRESS+b@ADDRESS.
func (z Zipper) String() string {
	var parts []string
	for _, p := range z.Ports {
		parts = append(parts, p.Cluster+"@"+p.Address)
	}
	return strings.Join(parts, "+")
}

// ParseZipper reads one forwarder: ADDRESS alone (then Ports is empty and every cluster reaches it
// there), ADDRESS=a+b or ADDRESS=a,b if it is on the networks of these clusters only,
// a@ADDRESS+b@ADDRESS if they know it by different addresses.
func ParseZipper(s string) (address string, z Zipper, err error) {
	bad := func() (string, Zipper, error) {
		return "", Zipper{},
			fmt.Errorf("forwarder %q: want HOST[:PORT], or HOST[:PORT]=a+b for one that only clusters a and b reach, or a@HOST[:PORT]+b@HOST[:PORT]", s)
	}
	if strings.Contains(s, "@") {
		for _, part := range strings.Split(s, "+") {
			cluster, a, ok := strings.Cut(part, "@")
			if !ok || cluster == "" || a == "" || z.Address(cluster) != "" {
				return bad()
			}
			z.Ports = append(z.Ports, Port{cluster, a})
		}
		return "", z, nil
	}
	i := strings.LastIndexByte(s, '=')
	if i < 0 || strings.Contains(s, "?") { // options of a verbs address
		return s, z, nil
	}
	for _, cluster := range strings.FieldsFunc(s[i+1:], func(r rune) bool { return r == '+' || r == ',' }) {
		if z.Address(cluster) != "" {
			return bad()
		}
		z.Ports = append(z.Ports, Port{cluster, s[:i]})
	}
	if i == 0 || len(z.Ports) == 0 {
		return bad()
	}
	return "", z, nil
}

// Rows takes the zippers of a job with several hops apart into rows that are trees; see vrank.Rows.
// The error says why that cannot be done.
func Rows(layout []Cluster, zippers []Zipper) ([][]int, *vrank.Routes, error) {
	var names []string
	for _, c := range layout {
		names = append(names, c.Name)
	}
	on := make([][]int, len(zippers))
	for i, z := range zippers {
		for _, p := range z.Ports {
			c := slices.Index(names, p.Cluster)
			if c < 0 {
				return nil, nil, fmt.Errorf("zipper %v is on the network of cluster %q, which the job does not have",
					z, p.Cluster)
			}
			on[i] = append(on[i], c)
		}
	}
	return vrank.Rows(names, on)
}

// forwarders takes the list of forwarders apart: plain addresses, or zippers of which this cluster
// reaches some.
func (j *Job) forwarders(list string) error {
	plain := 0
	for _, f := range strings.Split(list, ",") {
		if f = strings.TrimSpace(f); f == "" {
			continue
		}
		a, z, err := ParseZipper(f)
		if err != nil {
			return fmt.Errorf("%s: %w", VarForwarders, err)
		}
		if a != "" {
			plain++
			j.Forwarders = append(j.Forwarders, a)
			continue
		}
		j.Zippers = append(j.Zippers, z)
	}
	if len(j.Zippers) == 0 {
		return nil
	}
	if plain > 0 {
		return fmt.Errorf("%s=%q: say of every forwarder which clusters reach it, or of none", VarForwarders, list)
	}
	if _, _, err := Rows(j.Layout, j.Zippers); err != nil {
		return fmt.Errorf("%s: %w", VarForwarders, err)
	}
	j.reach()
	return nil
}

// reach sets Forwarders from Zippers.
func (j *Job) reach() {
	j.Forwarders = nil
	for _, z := range j.Zippers {
		if a := z.Address(j.Cluster); a != "" {
			j.Forwarders = append(j.Forwarders, a)
		}
	}
}

// WithZippers makes the job one of several hops over these zippers.
func (j *Job) WithZippers(zippers []Zipper) {
	j.Zippers = zippers
	j.reach()
}

func (j Job) forwarderList() string {
	if len(j.Zippers) == 0 {
		return strings.Join(j.Forwarders, ",")
	}
	var l []string
	for _, z := range j.Zippers {
		l = append(l, z.String())
	}
	return strings.Join(l, ",")
}
