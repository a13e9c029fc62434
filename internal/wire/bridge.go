package wire

import "fmt"

// MaxBridge is the largest size of a Bridge without its Join, in bytes.
const MaxBridge = 4 + 2 + 2 + 2 + NonceLen + NonceLen + 2*SealKeyLen + PublicKeyLen + SignatureLen + SealProofLen

// Bridge is the answer of a forwarder to the Challenge of another one that it has dialled. It asks
// to carry the frames of a job. A rank of the job has signed the Join for the sender, with the
// sender's X25519 key as its link key. So a sender with the pass of that key is a forwarder that a
// member of the job has joined.
//
//	u32       version
//	u16       from       the sender's index in the Join's zippers
//	u16       to         the receiver's
//	u16       number     of the connection in the trunk between the two; a trunk's first is 0
//	byte[32]  nonce      for which the Join is signed
//	byte[32]  fresh      random bytes, for the receiver's Proof
//	byte[32]  own key    the sender's X25519 key, as its Join has it; from it those of the link are made if it is sealed
//	byte[32]  link key   the receiver's, as its Challenge has it
//	byte[32]  host key   the sender's (Ed25519); zero: it has none
//	byte[64]  proof      by the host key over the receiver's nonce and all of the others but the next
//	byte[16]  pass       made with the pass of the two over the receiver's nonce and all of the others but the proof
//	...       Join       to the end
type Bridge struct {
	Version  uint32
	From, To uint16
	Number   uint16
	Nonce    [NonceLen]byte
	Fresh    [NonceLen]byte
	OwnKey   [SealKeyLen]byte
	LinkKey  [SealKeyLen]byte
	HostKey  [PublicKeyLen]byte
	Proof    [SignatureLen]byte
	Pass     [SealProofLen]byte
	Join     Join
}

// AppendUnsigned appends everything but proof and pass: the text that both authenticate.
func (f *Bridge) AppendUnsigned(b []byte) []byte {
	b = le.AppendUint32(b, f.Version)
	b = le.AppendUint16(b, f.From)
	b = le.AppendUint16(b, f.To)
	b = le.AppendUint16(b, f.Number)
	b = append(append(b, f.Nonce[:]...), f.Fresh[:]...)
	b = append(append(b, f.OwnKey[:]...), f.LinkKey[:]...)
	b = append(b, f.HostKey[:]...)
	return f.Join.Append(b)
}

// Append appends the encoded body of the frame to b and returns the extended slice.
func (f *Bridge) Append(b []byte) []byte {
	b = le.AppendUint32(b, f.Version)
	b = le.AppendUint16(b, f.From)
	b = le.AppendUint16(b, f.To)
	b = le.AppendUint16(b, f.Number)
	b = append(append(b, f.Nonce[:]...), f.Fresh[:]...)
	b = append(append(b, f.OwnKey[:]...), f.LinkKey[:]...)
	b = append(b, f.HostKey[:]...)
	b = append(append(b, f.Proof[:]...), f.Pass[:]...)
	return f.Join.Append(b)
}

// ParseBridge parses a Bridge that fills b. If this end does not support the version only Version
// is set. Signatures and passes are not checked here.
func ParseBridge(b []byte) (Bridge, error) {
	r := reader{b: b}
	f := Bridge{Version: r.u32()}
	if r.err == nil && !Speaks(f.Version) {
		return f, nil
	}
	f.From, f.To, f.Number = r.u16(), r.u16(), r.u16()
	r.bytes(f.Nonce[:])
	r.bytes(f.Fresh[:])
	r.bytes(f.OwnKey[:])
	r.bytes(f.LinkKey[:])
	r.bytes(f.HostKey[:])
	r.bytes(f.Proof[:])
	r.bytes(f.Pass[:])
	if r.err != nil {
		return Bridge{Version: f.Version}, r.err
	}
	var err error
	if f.Join, err = ParseJoin(r.b); err != nil {
		return Bridge{Version: f.Version}, err
	}
	if n := len(f.Join.Zippers); f.Join.Version != f.Version || int(f.From) >= n || int(f.To) >= n || f.From == f.To ||
		f.Join.Here != f.From {
		return Bridge{Version: f.Version}, fmt.Errorf("wire: link from forwarder %d to %d of %d, with a Join for %d",
			f.From, f.To, n, f.Join.Here)
	}
	return f, nil
}

// Ready says on a link between forwarders that, in the view of one forwarder, all ranks of all
// clusters have joined. Forwarders pass it on.
//
//	0  u32  zipper  its index
type Ready struct{ Zipper uint32 }

// Append appends the encoded body of the frame to b and returns the extended slice.
func (f *Ready) Append(b []byte) []byte { return le.AppendUint32(b, f.Zipper) }

// ParseReady parses a Ready that fills b.
func ParseReady(b []byte) (Ready, error) {
	r := reader{b: b}
	f := Ready{r.u32()}
	return f, r.end()
}
