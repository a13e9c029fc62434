package wire

// Abort ends the job everywhere. A rank sends it to its forwarder (dst Nobody), which passes it to
// all others.
//
//	0  i32     code    exit status, as given to MPI_Abort; 1 when a link or a rank failed
//	4  u32     rank    virtual rank that is the cause; Nobody when it is the forwarder
//	8  string  reason
type Abort struct {
	Code   int32
	Rank   uint32
	Reason string
}

// Append adds the body's bytes to b.
func (a *Abort) Append(b []byte) []byte {
	b = le.AppendUint32(b, uint32(a.Code))
	b = le.AppendUint32(b, a.Rank)
	return appendString(b, a.Reason)
}

// ParseAbort reads an Abort that fills b.
func ParseAbort(b []byte) (Abort, error) {
	r := reader{b: b}
	a := Abort{int32(r.u32()), r.u32(), r.string()}
	if err := r.end(); err != nil {
		return Abort{}, err
	}
	return a, nil
}
