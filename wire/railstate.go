package wire

import "fmt"

// RailState tells a rank that this forwarder has lost its link to another rank of the job, or has
// it back. Frames that were on their way to that rank over this forwarder may be lost, or may have
// come.
//
//	0  u32     rank    virtual
//	4  u32     state   0: the link is lost, 1: it is there again, 2: the rank has taken its leave
//	8  string  reason  why it is lost, with the link's name; empty when it is up
type RailState struct {
	Rank   uint32
	Up     bool
	Gone   bool
	Reason string
}

// Append adds the body's bytes to b.
func (s *RailState) Append(b []byte) []byte {
	up := uint32(0)
	if s.Up {
		up = 1
	} else if s.Gone {
		up = 2
	}
	b = le.AppendUint32(b, s.Rank)
	b = le.AppendUint32(b, up)
	return appendString(b, s.Reason)
}

// ParseRailState reads a RailState that fills b.
func ParseRailState(b []byte) (RailState, error) {
	r := reader{b: b}
	rank, up, reason := r.u32(), r.u32(), r.string()
	if err := r.end(); err != nil {
		return RailState{}, err
	}
	if up > 2 {
		return RailState{}, fmt.Errorf("wire: rail state %d is neither up nor down", up)
	}
	return RailState{rank, up == 1, up == 2, reason}, nil
}
