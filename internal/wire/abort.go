package wire

// Abort ends the job everywhere. A rank sends it to its forwarder (dst Nobody), which passes it to
// all other ranks. In a sealed job it carries that rank's authentication (word), which forwarders
// pass on to all receivers and only ranks can verify.
//
//	0  i32     code    exit status, as given to MPI_Abort; 1 when a link or a rank failed
//	4  u32     rank    virtual rank that is the cause; Nobody when it is the forwarder
//	8  string  reason
//	   u32      by       virtual rank that made the frame; Nobody: a forwarder did
//	   byte[16] word     of that rank for all of the above (package seal); zero: none
type Abort struct {
	Code   int32
	Rank   uint32
	Reason string
	By     uint32
	Word   [SealProofLen]byte
}

// AppendUnsigned appends everything but the word: the text that the word authenticates.
func (a *Abort) AppendUnsigned(b []byte) []byte {
	b = le.AppendUint32(b, uint32(a.Code))
	b = le.AppendUint32(b, a.Rank)
	b = appendString(b, a.Reason)
	return le.AppendUint32(b, a.By)
}

// Append appends the encoded body of the frame to b and returns the extended slice.
func (a *Abort) Append(b []byte) []byte { return append(a.AppendUnsigned(b), a.Word[:]...) }

// ParseAbort parses an Abort that fills b.
func ParseAbort(b []byte) (Abort, error) {
	r := reader{b: b}
	a := Abort{Code: int32(r.u32()), Rank: r.u32(), Reason: r.string(), By: r.u32()}
	r.bytes(a.Word[:])
	if err := r.end(); err != nil {
		return Abort{}, err
	}
	return a, nil
}
