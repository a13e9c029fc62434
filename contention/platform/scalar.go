package platform

import (
	"fmt"
	"math/big"

	"go.yaml.in/yaml/v3"

	"github.com/leidenzipper/zipper/contention/quantity"
)

// Rate is a capacity in bytes per second, greater than 0. The zero value means that none is given.
type Rate struct {
	*big.Rat
	line int
}

func (r *Rate) UnmarshalYAML(n *yaml.Node) error {
	v, err := scalar(n, quantity.Rate)
	if err != nil {
		return err
	}
	if v.Sign() == 0 {
		return fmt.Errorf("line %d: capacity %s: must be more than 0", n.Line, n.Value)
	}
	r.Rat, r.line = v, n.Line
	return nil
}

// Time is a duration in seconds; the zero value is 0.
type Time struct{ *big.Rat }

func (t *Time) UnmarshalYAML(n *yaml.Node) (err error) {
	t.Rat, err = scalar(n, quantity.Time)
	return err
}

// Size is a number of bytes. The zero value means that none is given.
type Size struct{ *big.Rat }

func (s *Size) UnmarshalYAML(n *yaml.Node) (err error) {
	s.Rat, err = scalar(n, quantity.Size)
	return err
}

func scalar(n *yaml.Node, parse func(string) (*big.Rat, error)) (*big.Rat, error) {
	if n.Kind != yaml.ScalarNode {
		return nil, fmt.Errorf("line %d: want a number with a unit", n.Line)
	}
	v, err := parse(n.Value)
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", n.Line, err)
	}
	return v, nil
}

// Duplex is an adapter, with the same rate or different rates in the two directions. In is towards
// the host, Out away from it.
type Duplex struct {
	In, Out    Rate // rates towards the host and away from it
	Asymmetric bool // whether traffic of one direction slows the other one; for sharing rule zhu
}

func (d *Duplex) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		if err := n.Decode(&d.In); err != nil {
			return err
		}
		d.Out = d.In
		return nil
	}
	var v struct {
		In, Out    Rate
		Asymmetric bool
	}
	if err := n.Decode(&v); err != nil {
		return err
	}
	if v.In.Rat == nil || v.Out.Rat == nil {
		return fmt.Errorf("line %d: give one rate, or both in and out", n.Line)
	}
	*d = Duplex{v.In, v.Out, v.Asymmetric}
	return nil
}

// Hosts is a number of hosts, which are named after the cluster (a1, a2, ...), or a list of names.
type Hosts struct {
	Names []string // names of the hosts
	count int      // number of hosts to be named; 0 if it is not given, which stands for 1
}

const maxHosts = 1 << 17

func (h *Hosts) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.SequenceNode {
		return n.Decode(&h.Names)
	}
	if err := n.Decode(&h.count); err != nil || h.count < 1 || h.count > maxHosts {
		return fmt.Errorf("line %d: hosts: want a number from 1 to %d or a list of names", n.Line, maxHosts)
	}
	return nil
}
