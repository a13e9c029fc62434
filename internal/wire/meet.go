package wire

// MeetLen is the size of a Meet in bytes.
const MeetLen = 4 + 4 + 8 + NonceLen + SignatureLen

// Meet opens a direct link between two ranks of different clusters. The rank that dialled answers
// the other one's Challenge with a Meet, and gets a Meet as the answer. With it both prove that
// they know the job's secret.
//
//	0    u32       from       virtual rank that made the frame
//	4    u32       to         virtual rank that it wants to meet
//	8    u64       instance   of the rank that was dialled, as its Door says: a process of an earlier run does not know it
//	16   byte[32]  nonce      of the sender: fresh random bytes
//	48   byte[64]  signature  by the job's key pair over the receiver's nonce and all of the above
type Meet struct {
	From, To  uint32
	Instance  uint64
	Nonce     [NonceLen]byte
	Signature [SignatureLen]byte
}

// AppendUnsigned appends everything before the signature: the text that is signed.
func (m *Meet) AppendUnsigned(b []byte) []byte {
	b = le.AppendUint32(b, m.From)
	b = le.AppendUint32(b, m.To)
	b = le.AppendUint64(b, m.Instance)
	return append(b, m.Nonce[:]...)
}

// Append appends the encoded body of the frame to b and returns the extended slice.
func (m *Meet) Append(b []byte) []byte { return append(m.AppendUnsigned(b), m.Signature[:]...) }

// ParseMeet parses a Meet that fills b. The signature is not checked here.
func ParseMeet(b []byte) (Meet, error) {
	r := reader{b: b}
	m := Meet{From: r.u32(), To: r.u32(), Instance: r.u64()}
	r.bytes(m.Nonce[:])
	r.bytes(m.Signature[:])
	return m, r.end()
}
