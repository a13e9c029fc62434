package wire

import "fmt"

// RailState tells a rank that this forwarder has lost its link to another rank of the job, or that
// the link is restored. Frames in flight to that rank over this forwarder may be lost, or may have
// arrived. The last RailState of a rank is valid, so their order matters, and each has a number.
//
//	 0  u32     number  of these over this link, from 1
//	 4  u32     rank    virtual
//	 8  u32     state   0: the link is lost, 1: it is restored, 2: the rank has left the job, 3: the
//	                    rank may live, but the path to it is cut between forwarders, which reconnect
//	12  string  reason  why it is lost or cut, with the link's name. For a rank that has left,
//	                    between forwarders: why its last acknowledgements may have been lost, so
//	                    that the receiver tells its ranks that it has left. Else empty
type RailState struct {
	Number   uint32
	Rank     uint32
	Up       bool // whether the link is restored
	Departed bool // whether the rank has left the job
	Cut      bool // whether the path to the rank is cut between forwarders
	Reason   string
}

// Append appends the encoded body of the frame to b and returns the extended slice.
func (s *RailState) Append(b []byte) []byte {
	up := uint32(0)
	switch {
	case s.Up:
		up = 1
	case s.Departed:
		up = 2
	case s.Cut:
		up = 3
	}
	b = le.AppendUint32(b, s.Number)
	b = le.AppendUint32(b, s.Rank)
	b = le.AppendUint32(b, up)
	return appendString(b, s.Reason)
}

// ParseRailState parses a RailState that fills b.
func ParseRailState(b []byte) (RailState, error) {
	r := reader{b: b}
	number, rank, up, reason := r.u32(), r.u32(), r.u32(), r.string()
	if err := r.end(); err != nil {
		return RailState{}, err
	}
	if up > 3 {
		return RailState{}, fmt.Errorf("wire: rail state %d is neither up nor down", up)
	}
	return RailState{number, rank, up == 1, up == 2, up == 3, reason}, nil
}

// Ordered checks the numbers of the RailStates and Losts of a link. The zero value is that of a new
// link.
type Ordered struct{ last uint32 }

// Take checks the next number. An error means that a RailState was dropped or reordered in transit.
func (o *Ordered) Take(number uint32) error {
	o.last++
	if number != o.last {
		return fmt.Errorf("state %d has come in place of %d", number, o.last)
	}
	return nil
}

// TakeFrame checks the number of a RailState or Lost, whose body it parses. The body is that of a
// frame of type t.
func (o *Ordered) TakeFrame(t Type, body []byte) error {
	var number uint32
	var err error
	if t == TypeLost {
		var l Lost
		l, err = ParseLost(body)
		number = l.Number
	} else {
		var s RailState
		s, err = ParseRailState(body)
		number = s.Number
	}
	if err != nil {
		return err
	}
	return o.Take(number)
}
