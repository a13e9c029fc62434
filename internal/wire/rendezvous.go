package wire

// These are the sizes of the rendezvous bodies in bytes.
const (
	CTSLen  = 24
	DataLen = 16
	FinLen  = 8
)

// CTS answers an RTS: send the first Bytes bytes to Receiver.
//
//	 0  u64  sender    the sender's request, from the RTS
//	 8  u64  receiver  the receiver's request, echoed in Data
//	16  u64  bytes     how much to send; less than the message's size when the receive is shorter
type CTS struct{ Sender, Receiver, Bytes uint64 }

// Append appends the encoded body of the frame to b and returns the extended slice.
func (c *CTS) Append(b []byte) []byte {
	b = le.AppendUint64(b, c.Sender)
	b = le.AppendUint64(b, c.Receiver)
	return le.AppendUint64(b, c.Bytes)
}

// ParseCTS parses a CTS that fills b.
func ParseCTS(b []byte) (CTS, error) {
	if err := exactly(b, CTSLen); err != nil {
		return CTS{}, err
	}
	return CTS{le.Uint64(b), le.Uint64(b[8:]), le.Uint64(b[16:])}, nil
}

// Data places a segment at Offset bytes into the receive Receiver; the segment follows.
//
//	0  u64  receiver  the receiver's request, from the CTS
//	8  u64  offset    bytes from the start of the message
type Data struct{ Receiver, Offset uint64 }

// Append appends the encoded body of the frame to b and returns the extended slice.
func (d *Data) Append(b []byte) []byte {
	return le.AppendUint64(le.AppendUint64(b, d.Receiver), d.Offset)
}

// ParseData parses a Data at the front of b. The segment may follow it.
func ParseData(b []byte) (Data, error) {
	if len(b) < DataLen {
		return Data{}, ErrShort
	}
	return Data{le.Uint64(b), le.Uint64(b[8:])}, nil
}

// Fin tells the sender that its message has arrived completely.
//
//	0  u64  sender    the sender's request, from the RTS
type Fin struct{ Sender uint64 }

// Append appends the encoded body of the frame to b and returns the extended slice.
func (f *Fin) Append(b []byte) []byte { return le.AppendUint64(b, f.Sender) }

// ParseFin parses a Fin that fills b.
func ParseFin(b []byte) (Fin, error) {
	s, err := parseHandle(b)
	return Fin{s}, err
}
