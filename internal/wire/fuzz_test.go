package wire

import (
	"bytes"
	"testing"
)

type sealedBody struct{}

func (sealedBody) Append(b []byte) []byte { return append(b, make([]byte, SealLen)...) }

// FuzzFrame cuts the input into frames as a reader does. An accepted frame must be encoded to the
// same bytes.
func FuzzFrame(f *testing.F) {
	for _, s := range samples {
		f.Add(AppendFrame(nil, Header{Type: s.typ, Src: 1, Dst: 2, Seq: 3, Ack: 4, Epoch: 5}, s.body))
	}
	f.Add(AppendFrame(nil, Header{Type: TypeAck, Flags: FlagSealed}, sealedBody{}))
	h := Header{Type: TypeEager, Length: EnvelopeLen + 3}
	e := Envelope{Size: 3}
	f.Add(append(e.Append(h.Append(nil)), "abc"...))
	f.Fuzz(func(t *testing.T, b []byte) {
		b = bytes.Clone(b)
		FixSums(b)
		for {
			h, err := ParseHeader(b)
			if err != nil {
				return
			}
			if got := h.Append(nil); !bytes.Equal(got, b[:HeaderLen]) {
				t.Fatalf("header %x encodes as %x", b[:HeaderLen], got)
			}
			if h.Payload() < 0 || h.Payload() > MaxPayload || h.Length > MaxLength {
				t.Fatalf("header %+v is out of bounds", h)
			}
			b = b[HeaderLen:]
			if len(b) < int(h.Length) {
				return
			}
			body := b[:h.Length]
			b = b[h.Length:]
			if !h.Type.BetweenRanks() && h.Flags&FlagSealed == 0 && h.Verify(body) != nil {
				t.Fatalf("%v frame with fixed sums does not verify", h.Type)
			}
			if h.Flags&FlagSealed != 0 {
				if h.Rest()+h.Type.BodyLen() > len(body) {
					t.Fatalf("header %+v has %d bytes after its body", h, h.Rest())
				}
				continue
			}
			var v any
			switch h.Type {
			case TypeEager, TypeRTS:
				v, err = parser(ParseEnvelope)(body)
			case TypeCTS:
				v, err = parser(ParseCTS)(body)
			case TypeData:
				v, err = parser(ParseData)(body)
			case TypeFin:
				v, err = parser(ParseFin)(body)
			case TypeMatched:
				v, err = parser(ParseMatched)(body)
			case TypeCredit:
				v, err = parser(ParseCredit)(body)
			case TypeCancel:
				v, err = parser(ParseCancel)(body)
			case TypeCancelReply:
				v, err = parser(ParseCancelReply)(body)
			case TypeChallenge:
				v, err = parser(ParseChallenge)(body)
				if err == nil {
					if c := v.(*Challenge); c.Version != Version || c.Oldest > Version {
						continue // nothing else of another version is checked
					}
				}
			case TypeJoin:
				v, err = parser(ParseJoin)(body)
				if err == nil && v.(*Join).Version != Version {
					continue
				}
			case TypeBridge:
				v, err = parser(ParseBridge)(body)
				if err == nil && v.(*Bridge).Version != Version {
					continue
				}
			case TypeReady:
				v, err = parser(ParseReady)(body)
			case TypeMeet:
				v, err = parser(ParseMeet)(body)
			case TypeLayout:
				v, err = layoutParser(Version)(body)
			case TypeRefuse:
				v, err = parser(ParseRefuse)(body)
			case TypeNotice:
				v, err = parser(ParseNotice)(body)
			case TypeProof:
				v, err = parser(ParseProof)(body)
			case TypeJointProof:
				v, err = parser(ParseJointProof)(body)
			case TypeHalf:
				v, err = parser(ParseHalf)(body)
				if err == nil && v.(*Half).Version != Version {
					continue
				}
			case TypeLanded:
				v, err = parser(ParseLanded)(body)
			case TypeEcho:
				v, err = parser(ParseEcho)(body)
			case TypeCount:
				v, err = parser(ParseCount)(body)
			case TypeRailState:
				v, err = parser(ParseRailState)(body)
			case TypeLost:
				v, err = parser(ParseLost)(body)
			case TypeAsk:
				v, err = parser(ParseAsk)(body)
			case TypeMoved:
				v, err = parser(ParseMoved)(body)
			case TypeWay:
				v, err = parser(ParseWay)(body)
			case TypeAbort:
				v, err = parser(ParseAbort)(body)
			case TypePing: // its bytes have no meaning
				if h.Length > MaxPing {
					t.Fatalf("a Ping of %d bytes", h.Length)
				}
				continue
			default:
				if h.Length != 0 {
					t.Fatalf("%v frame with a body", h.Type)
				}
				continue
			}
			if h.Type.BetweenRanks() && h.Type != TypeCancelReply && err != nil {
				t.Fatalf("%v: %v: a header that was accepted promises a body that parses", h.Type, err)
			}
			if err != nil {
				continue
			}
			if got := v.(Body).Append(nil); !bytes.Equal(got, body[:len(body)-h.Payload()]) {
				t.Fatalf("%v body %x encodes as %x", h.Type, body, got)
			}
		}
	})
}
