package wire

import "fmt"

// Notice tells a joiner that waits for other ranks of its job which are missing. It tells another
// forwarder which links to others are missing; an empty text means none.
//
//	0  string  text  for the user
type Notice struct{ Text string }

// Append appends the encoded body of the frame to b and returns the extended slice.
func (f *Notice) Append(b []byte) []byte { return appendString(b, f.Text) }

// ParseNotice parses a Notice that fills b.
func ParseNotice(b []byte) (Notice, error) {
	r := reader{b: b}
	f := Notice{r.string()}
	if err := r.end(); err != nil {
		return Notice{}, err
	}
	return f, nil
}

// HalfState is the state of one cluster's half of a job, as its launcher reports it.
type HalfState uint16

const (
	// HalfEnded means that the half's processes have ended, or never started, and the job cannot
	// continue.
	HalfEnded HalfState = 1
	// HalfSuspended means that the half's processes are stopped, and may continue later.
	HalfSuspended HalfState = 2
	// HalfResumed means that the half's processes continue.
	HalfResumed HalfState = 3
)

func (s HalfState) String() string {
	return [...]string{"unknown", "ended", "suspended", "resumed"}[min(s, HalfResumed)]
}

// Half is a report from the launcher of one cluster's half of a job, or from a batch system's
// script. The forwarder answers with a Notice and closes the link.
//
//	u32       version
//	u32       timeout_ms  how long the other halves may be waiting for this one
//	u32       ran_ms      how long this half has been there
//	u16       state       HalfState
//	i32       code        exit status of the job, if it ends by this
//	string    job         strings are a u16 length and UTF-8 bytes, at most MaxName
//	string    cluster
//	string    reason      a clause for people that begins with the cluster
//	string    ticket      as in Join
//	byte[32]  public key  of the pair made from job and secret
//	byte[64]  signature   by that pair over the Challenge's nonce and all of the above
type Half struct {
	Version   uint32
	TimeoutMS uint32
	RanMS     uint32
	State     HalfState
	Code      int32
	Job       string
	Cluster   string
	Reason    string
	Ticket    string
	PublicKey [PublicKeyLen]byte
	Signature [SignatureLen]byte
}

// AppendUnsigned appends everything before the signature: the text that is signed.
func (f *Half) AppendUnsigned(b []byte) []byte {
	b = le.AppendUint32(b, f.Version)
	b = le.AppendUint32(b, f.TimeoutMS)
	b = le.AppendUint32(b, f.RanMS)
	b = le.AppendUint16(b, uint16(f.State))
	b = le.AppendUint32(b, uint32(f.Code))
	b = appendString(b, f.Job)
	b = appendString(b, f.Cluster)
	b = appendString(b, f.Reason)
	b = appendString(b, f.Ticket)
	return append(b, f.PublicKey[:]...)
}

// Append appends the encoded body of the frame to b and returns the extended slice.
func (f *Half) Append(b []byte) []byte { return append(f.AppendUnsigned(b), f.Signature[:]...) }

// ParseHalf parses a Half that fills b. If this end does not support the version only Version is
// set.
func ParseHalf(b []byte) (Half, error) {
	r := reader{b: b}
	f := Half{Version: r.u32()}
	if r.err == nil && !Speaks(f.Version) {
		return f, nil
	}
	f.TimeoutMS, f.RanMS = r.u32(), r.u32()
	f.State = HalfState(r.u16())
	if r.err == nil && (f.State < HalfEnded || f.State > HalfResumed) {
		r.fail(fmt.Errorf("wire: unknown state %d of a half", f.State))
	}
	f.Code = int32(r.u32())
	f.Job, f.Cluster, f.Reason = r.name(), r.name(), r.string()
	f.Ticket = r.text(MaxTicket)
	r.bytes(f.PublicKey[:])
	r.bytes(f.Signature[:])
	if err := r.end(); err != nil {
		return Half{Version: f.Version}, err
	}
	return f, nil
}
