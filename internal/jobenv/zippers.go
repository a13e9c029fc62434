package jobenv

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/vrank"
)

// Zipper is one forwarder of a job with several hops: the networks that it is on, with its address
// on each.
type Zipper struct {
	Ports   []Port
	HostKey string // host key that it must have (wire.FormatHostKey); empty for any
}

// Port is a zipper's place on one network: a cluster's, or one without ranks. On the latter Address
// may be empty: then the zipper does not listen there, but opens the links itself.
type Port struct{ Network, Address string }

// Address returns the zipper's address on a network, or "" if it has none there.
func (z Zipper) Address(network string) string {
	for _, p := range z.Ports {
		if p.Network == network {
			return p.Address
		}
	}
	return ""
}

// On reports whether the zipper has a port on the network with that name.
func (z Zipper) On(network string) bool {
	return slices.ContainsFunc(z.Ports, func(p Port) bool { return p.Network == network })
}

// String returns the form that ParseZipper parses: a@ADDRESS+b@ADDRESS, with only the name of a
// network on which the zipper does not listen; then # and the host key, if there is one.
func (z Zipper) String() string {
	var parts []string
	for _, p := range z.Ports {
		if p.Address == "" {
			parts = append(parts, p.Network)
			continue
		}
		parts = append(parts, p.Network+"@"+p.Address)
	}
	return withKey(strings.Join(parts, "+"), z.HostKey)
}

// ParseZipper parses one forwarder:
//
//	ADDRESS                    every cluster reaches it there; Ports is empty
//	ADDRESS=a+b, ADDRESS=a,b   it is on these networks only
//	a@ADDRESS+b@ADDRESS        it has different addresses there
//	a@ADDRESS+b                it does not listen on network b, which has no ranks
//
// All may end in # and the forwarder's host key.
func ParseZipper(s string) (address string, z Zipper, err error) {
	s, key, has := cutKey(s)
	z.HostKey = key
	if has {
		if _, err := wire.ParseHostKey(z.HostKey); err != nil {
			return "", Zipper{}, fmt.Errorf("forwarder %s: %w", s, err)
		}
	}
	bad := func() (string, Zipper, error) {
		return "", Zipper{}, fmt.Errorf("forwarder %q: want HOST[:PORT][#HOSTKEY], or HOST[:PORT]=a+b for one that is on networks "+
			"a and b only, or a@HOST[:PORT]+b@HOST[:PORT], or a@HOST[:PORT]+w for one that does not listen on network w", s)
	}
	if strings.Contains(s, "@") {
		for _, part := range strings.Split(s, "+") {
			network, a, listens := strings.Cut(part, "@")
			if network == "" || listens == (a == "") || z.On(network) || strings.Contains(part, "#") {
				return bad()
			}
			z.Ports = append(z.Ports, Port{network, a})
		}
		return "", z, nil
	}
	i := strings.LastIndexByte(s, '=')
	if i < 0 || strings.Contains(s, "?") { // options of a verbs address
		return s, z, nil
	}
	for _, network := range strings.FieldsFunc(s[i+1:], func(r rune) bool { return r == '+' || r == ',' }) {
		if z.On(network) {
			return bad()
		}
		z.Ports = append(z.Ports, Port{network, s[:i]})
	}
	if i == 0 || len(z.Ports) == 0 || strings.ContainsAny(s[:i], "+=,") || strings.Contains(s, "#") {
		return bad()
	}
	return "", z, nil
}

// Net has the networks of a job with several hops: those of its clusters, and its networks without
// ranks.
type Net struct {
	Layout   []Cluster
	Networks []string // names, none of which is a cluster's
}

// names returns the names of all networks, the clusters' first, in the order of their indices.
func (n Net) names() []string {
	var names []string
	for _, c := range n.Layout {
		names = append(names, c.Name)
	}
	return append(names, n.Networks...)
}

// Index returns the index of a network, or -1 if there is none with that name.
func (n Net) Index(network string) int { return slices.Index(n.names(), network) }

// Rows divides the zippers into rows that are trees; see vrank.Rows. The error says why that is
// impossible.
func (n Net) Rows(zippers []Zipper) ([][]int, *vrank.Routes, error) {
	names := n.names()
	on := make([][]int, len(zippers))
	for i, z := range zippers {
		for _, p := range z.Ports {
			at := slices.Index(names, p.Network)
			switch {
			case at < 0:
				return nil, nil, fmt.Errorf("zipper %v is on the network of cluster %q, which the job does not have "+
					"(name a network without ranks by --network)", z, p.Network)
			case at < len(n.Layout) && p.Address == "":
				return nil, nil, fmt.Errorf("zipper %v has no address for cluster %q, whose ranks have to reach it: "+
					"want %s@HOST[:PORT]", z, p.Network, p.Network)
			}
			on[i] = append(on[i], at)
		}
	}
	rows, routes, err := vrank.Rows(names, len(n.Layout), on)
	if err != nil {
		return nil, nil, err
	}
	for _, row := range rows {
		if _, err := n.links(zippers, row); err != nil {
			return nil, nil, err
		}
	}
	return rows, routes, nil
}

// Link is a link that one forwarder opens to another, on a network that both are on.
type Link struct {
	Network  string
	From, To int    // indices of the two zippers in the job
	Address  string // address of To
}

// Links returns all links of the job, each once. The error is that of Rows.
func (n Net) Links(zippers []Zipper) (all []Link, err error) {
	rows, _, err := n.Rows(zippers)
	for _, row := range rows {
		links, _ := n.links(zippers, row) // Rows has checked them
		for _, l := range links {
			if !slices.Contains(all, l) {
				all = append(all, l)
			}
		}
	}
	return all, err
}

// links returns the links between the forwarders of a row. It returns an error if neither end of a
// link can open it.
func (n Net) links(zippers []Zipper, row []int) (links []Link, err error) {
	for at, i := range row {
		for next, k := range row[at+1:] {
			for _, p := range zippers[i].Ports {
				if !zippers[k].On(p.Network) {
					continue
				}
				a, b := n.end(zippers, i, p.Network), n.end(zippers, k, p.Network)
				a.Zipper, b.Zipper = at, at+1+next // a row is a job of its own
				here, ok := vrank.Dials(a, b)
				switch {
				case here:
					links = append(links, Link{p.Network, i, k, zippers[k].Address(p.Network)})
					continue
				case ok:
					links = append(links, Link{p.Network, k, i, p.Address})
					continue
				}
				why := "neither listens there: give one of them an address, as in " + p.Network + "@HOST[:PORT]"
				if !a.Ranks || !b.Ranks {
					why = "one that is on no cluster's network cannot open it: " +
						"give it an address there, and have the other one on the network of a cluster"
				}
				return nil, fmt.Errorf("zippers %d and %d have no way to open their link over %s; %s", i+1, k+1, p.Network,
					why)
			}
		}
	}
	return links, nil
}

// end returns zipper i's end of a link on a network.
func (n Net) end(zippers []Zipper, i int, network string) vrank.LinkEnd {
	ranks := slices.ContainsFunc(n.Layout, func(c Cluster) bool { return zippers[i].On(c.Name) })
	return vrank.LinkEnd{Zipper: i, Listens: zippers[i].Address(network) != "", Ranks: ranks}
}

// CheckNetworks checks the names of networks without ranks: they must be words that are unique and
// not names of clusters.
func CheckNetworks(networks []string, layout []Cluster) error {
	for i, name := range networks {
		switch {
		case name == "" || strings.ContainsAny(name, "=@+, \t\n"):
			return fmt.Errorf("network %q: want a word as its name", name)
		case slices.ContainsFunc(layout, func(c Cluster) bool { return c.Name == name }):
			return fmt.Errorf("network %q is a cluster's name too: a cluster's network needs no --network", name)
		case slices.Contains(networks[:i], name):
			return fmt.Errorf("network %q is given twice", name)
		}
	}
	if len(networks) > wire.MaxNetworks {
		return fmt.Errorf("%d networks without ranks, at most %d are possible", len(networks), wire.MaxNetworks)
	}
	return nil
}

// Net returns the networks of the job.
func (j Job) Net() Net { return Net{j.Layout, j.Networks} }

// forwarders parses the list of forwarders: plain addresses, or zippers, some of which this cluster
// reaches.
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
			j.SetHostKey(a, z.HostKey)
			continue
		}
		j.Zippers = append(j.Zippers, z)
	}
	if len(j.Zippers) == 0 {
		if len(j.Networks) > 0 {
			return fmt.Errorf("%s=%q: give the networks of every forwarder, as in a@HOST+%s@HOST",
				VarForwarders, list, j.Networks[0])
		}
		return nil
	}
	if plain > 0 {
		return fmt.Errorf("%s=%q: give the clusters of every forwarder, or of none", VarForwarders, list)
	}
	if _, _, err := j.Net().Rows(j.Zippers); err != nil {
		return fmt.Errorf("%s: %w", VarForwarders, err)
	}
	j.reach()
	return nil
}

// reach sets Forwarders to the addresses of the zippers that the job's own cluster can reach.
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
	var l []string
	if len(j.Zippers) == 0 {
		for _, a := range j.Forwarders {
			l = append(l, withKey(a, j.HostKeys[a]))
		}
		return strings.Join(l, ",")
	}
	for _, z := range j.Zippers {
		l = append(l, z.String())
	}
	return strings.Join(l, ",")
}
