package handshake

import (
	"bytes"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/facts"
	"github.com/leidenzipper/zipper/internal/wire"
)

// FuzzExchange gives the same input to each kind of end except a Teller. No end panics, their
// output is whole frames, and each exchange ends at most once, after which the end sends nothing.
// The end is a success only for exchanges in which the other end need not show the job's key,
// because the input cannot have it.
func FuzzExchange(f *testing.F) {
	frames := [][]byte{}
	collect := func(b []byte) error { frames = append(frames, b); return nil }
	nothing := func(Event) error { return nil }
	a := NewAcceptor(nonce(7), &Terms{NAT: true, Keys: forwarderKeys(3)})
	_ = Drive(a, collect, nothing)
	j, err := NewJoiner(member("a", 0), nonce(4))
	if err != nil {
		f.Fatal(err)
	}
	j.HandleMessage(wire.Control(wire.TypeChallenge), frames[0][wire.HeaderLen:])
	_ = Drive(j, collect, func(Event) error { j.Inside(""); return nil })
	r := responder("other", 1)
	_ = Drive(r, collect, nothing)
	i := NewInitiator(Key("j", "other"), 1, door, nonce(2))
	i.HandleMessage(wire.Control(wire.TypeChallenge), frames[len(frames)-1][wire.HeaderLen:])
	_ = Drive(i, collect, nothing)
	for typ, b := range map[wire.Type]wire.Body{wire.TypeNotice: &wire.Notice{Text: "waits"},
		wire.TypeProof:  &wire.Proof{},
		wire.TypeLayout: &wire.Layout{Version: wire.Version, Clusters: layout, TagUB: 5, Libraries: []string{"", ""}, Facts: []facts.Word{0, 0}},
		wire.TypeRefuse: &wire.Refuse{Code: 1, Reason: "no"}, wire.TypePing: nil} {
		frames = append(frames, wire.AppendFrame(nil, wire.Control(typ), b))
	}
	f.Add(bytes.Join(frames, nil))
	cert := certified(f, hopped(0))
	for _, b := range frames {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		stream = bytes.Clone(stream)
		wire.FixSums(stream)
		all := machines(t)
		all["bridger"] = NewBridger(cert, 1, 0, &Terms{Keys: forwarderKeys(9)}, nonce(5))
		for name, m := range all {
			over := false
			feed(stream, func(h wire.Header, body []byte) {
				m.HandleMessage(h, bytes.Clone(body))
				err := Drive(m, func(b []byte) error {
					if h, err := wire.ParseHeader(b); over || err != nil || len(b) != wire.HeaderLen+int(h.Length) {
						t.Errorf("%s says %x, over: %v, %v", name, b, over, err)
					}
					return nil
				}, func(e Event) error {
					switch e.Kind {
					case Ended:
						if strings.HasPrefix(e.Err.Reason, "internal error") {
							t.Errorf("%s: %v", name, e.Err)
						}
					case Asked:
						m.(*Joiner).Inside("")
						return nil
					case Notified:
						return nil
					default:
						if !(e.Kind == Joined && name == "joiner" || e.Kind == Bridged && name == "bridger") {
							t.Errorf("%s comes to %+v", name, e)
						}
					}
					if over {
						t.Errorf("%s ends twice: %+v", name, e)
					}
					over = true
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
	})
}

// feed cuts a stream into frames, as a reader does.
func feed(b []byte, to func(wire.Header, []byte)) {
	for len(b) >= wire.HeaderLen {
		h, err := wire.ParseHeader(b)
		if err != nil || len(b)-wire.HeaderLen < int(h.Length) {
			return
		}
		to(h, b[wire.HeaderLen:wire.HeaderLen+int(h.Length)])
		b = b[wire.HeaderLen+int(h.Length):]
	}
}
