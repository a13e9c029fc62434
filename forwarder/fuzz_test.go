package forwarder

import (
	"bytes"
	"context"
	"testing"

	"go.uber.org/zap"

	"github.com/leidenzipper/zipper/internal/transport/memnet"
	"github.com/leidenzipper/zipper/internal/wire"
)

// FuzzStream sends the input over a link, before or after the join, split into random pieces. The
// forwarder must stay alive, serve another job, and leave nothing behind; the peer must receive
// whole frames from the right source.
func FuzzStream(f *testing.F) {
	f.Add(true, uint64(1), eager(0, 1, 1, []byte("hello")))
	f.Add(true, uint64(2), append(data(0, 1, 5, make([]byte, 5000)), eager(0, 1, 1, nil)...))
	f.Add(true, uint64(3), append(header(wire.TypeAck, 0, 1), header(wire.TypeAck, 1, 0)...))
	f.Add(true, uint64(4), header(wire.TypeBye, 0, 0))
	f.Add(true, uint64(5), append(header(wire.TypePing, 0, 0), header(wire.TypePong, 0, 0)...))
	f.Add(true, uint64(6), wire.AppendFrame(nil, wire.Header{Type: wire.TypeAbort}, &wire.Abort{Code: 3, Reason: "x"}))
	f.Add(true, uint64(7), data(0, 0, 5, make([]byte, 200)))
	f.Add(true, uint64(8), data(0, 1, 0, make([]byte, 70_000))[:60_000])
	f.Add(false, uint64(9), wire.AppendFrame(nil, wire.Header{Type: wire.TypeJoin},
		&wire.Join{Version: wire.Version, Job: "j", Cluster: "a", Layout: []wire.Cluster{{Name: "a", Size: 1}}}))
	f.Add(false, uint64(10), wire.AppendFrame(nil, wire.Header{Type: wire.TypeRefuse},
		&wire.Refuse{Code: 1, Reason: "no"}))
	f.Add(false, uint64(11), header(wire.TypePong, 0, 0))
	f.Add(false, uint64(12), []byte("GET / HTTP/1.0\r\n\r\n"))
	f.Add(false, uint64(13), wire.AppendFrame(nil, wire.Header{Type: wire.TypeBridge},
		&wire.Bridge{Version: wire.Version, To: 1, Join: wire.Join{Version: wire.Version, Rails: 1, Job: "j",
			Cluster: "a",
			Layout:  []wire.Cluster{{Name: "a", Size: 1}}, Zippers: []wire.Zipper{{Ports: []wire.Port{{Address: "x"}}},
				{Ports: []wire.Port{{Address: "y"}}}}}}))
	f.Add(false, uint64(14), wire.AppendFrame(nil, wire.Header{Type: wire.TypeReady}, &wire.Ready{Zipper: 1}))
	two := []wire.Cluster{{Name: "a", Size: 1}, {Name: "b", Size: 1}}
	f.Fuzz(func(t *testing.T, joined bool, seed uint64, input []byte) {
		if len(input) > 1<<18 {
			return
		}
		if seed%8 != 0 {
			input = bytes.Clone(input)
			wire.FixSums(input)
		}
		b := start(t, memoryNetwork(memnet.Options{Partial: seed | 1, Buffer: 4096}), func(c *Config) { c.Log = zap.NewNop() })
		other := b.join("other", two...)
		if joined {
			r := b.join("j", two...)
			peer := make(chan bool)
			go func() {
				defer close(peer)
				for {
					h, _, err := r[1].recv()
					if err != nil {
						return
					}
					if h.Type.BetweenRanks() && (h.Src != 0 || h.Dst != 1) {
						t.Errorf("peer gets %+v", h)
					}
					if h.Type == wire.TypeAbort {
						r[1].link.Close()
						return
					}
				}
			}()
			// Rank 0 reads nothing: a forwarder that waited for it would hang here.
			r[0].write(input)
			r[0].link.Close()
			// The job ends because of rank 0, or, if that has left cleanly, because of this.
			r[1].write(abortFrame(1, 1, "end of the test"))
			<-peer
		} else {
			l, err := b.dialer.Dial(context.Background(), b.ln.Addr())
			if err != nil {
				t.Fatal(err)
			}
			x := &rank{t: t, link: l}
			x.expect(wire.TypeChallenge)
			x.write(input)
			l.Close()
		}
		pingPong(t, other[0], other[1])
		for _, x := range other {
			x.bye()
		}
		b.settled()
	})
}
