package wire

import "fmt"

// Lost tells the other end of a link between a rank and a forwarder, or between forwarders, that a
// cluster of the job is lost in the view of the sender: none of its ranks takes part in the job
// again. The set of lost clusters only grows. Lost is sent only in a job whose settings have
// ZIPPER_ON_LOSS=continue.
//
//	 0  u32     number   in the sequence of the RailStates and Losts from this end of the link
//	 4  u16     cluster  its index in the layout
//	 6  u32     epoch    number of lost clusters, this one included
//	10  string  reason   why it is lost, a clause for people that begins with the cluster
type Lost struct {
	Number  uint32
	Cluster uint16
	Epoch   uint32
	Reason  string
}

// Append appends the encoded body of the frame to b and returns the extended slice.
func (l *Lost) Append(b []byte) []byte {
	b = le.AppendUint32(b, l.Number)
	b = le.AppendUint16(b, l.Cluster)
	b = le.AppendUint32(b, l.Epoch)
	return appendString(b, l.Reason)
}

// ParseLost parses a Lost that fills b.
func ParseLost(b []byte) (Lost, error) {
	r := reader{b: b}
	l := Lost{r.u32(), r.u16(), r.u32(), r.string()}
	if err := r.end(); err != nil {
		return Lost{}, err
	}
	if l.Cluster >= MaxClusters {
		return Lost{}, fmt.Errorf("wire: cluster %d is lost, of at most %d", l.Cluster, MaxClusters)
	}
	if l.Epoch == 0 || l.Epoch > MaxClusters {
		return Lost{}, fmt.Errorf("wire: %d clusters are lost, of at most %d", l.Epoch, MaxClusters)
	}
	return l, nil
}
