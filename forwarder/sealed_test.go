package forwarder

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/handshake"
	"github.com/leidenzipper/zipper/internal/dial"
	"github.com/leidenzipper/zipper/internal/seal"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/wire"
)

// sealedRank is a rank of a sealed job.
type sealedRank struct {
	*rank
	party *seal.Party
	link  *seal.Channel
}

// sealedIdentity returns the identity of a rank of a sealed job of two clusters of one rank each.
func sealedIdentity(t *testing.T, v int) handshake.Identity {
	id := identity("j", name(v), 0, wire.Cluster{Name: name(0), Size: 1}, wire.Cluster{Name: name(1), Size: 1})
	id.Level, id.Instance = wire.LevelSealed, uint64(v)+50
	p, err := seal.NewJob(id.Job, id.Secret).NewParty([seal.PublicLen]byte{byte(v), 1}, uint32(v), id.Instance)
	if err != nil {
		t.Fatal(err)
	}
	id.Seal = p
	return id
}

func (b *bench) joinSealed(t *testing.T) []sealedRank {
	ranks := make([]sealedRank, 2)
	done := make(chan error)
	for v := range ranks {
		go func() {
			id, x := sealedIdentity(t, v), &ranks[v]
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			d := dial.Dialer{Transport: b.dialer, Sealed: func(_ transport.Link, ch *seal.Channel) { x.link = ch }}
			l, layout, err := d.Dial(ctx, b.ln.Addr(), id)
			x.rank, x.party = &rank{t, l, layout}, id.Seal
			done <- err
		}()
	}
	for range ranks {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	return ranks
}

// say sends a frame to the forwarder.
func (r *sealedRank) say(typ wire.Type, body wire.Body) {
	f := wire.AppendFrame(nil, wire.Control(typ), body)
	h, err := wire.ParseHeader(f)
	if err != nil {
		r.t.Fatal(err)
	}
	h.Flags |= wire.FlagSealed
	h.Length += wire.SealLen
	b, err := r.link.Seal(nil, h.Append(nil), f[wire.HeaderLen:])
	if err != nil {
		r.t.Fatal(err)
	}
	r.send(b)
}

// hear reads a frame of the forwarder's own, which must be sealed.
func (r *sealedRank) hear(typ wire.Type) []byte {
	r.t.Helper()
	h, sealed := r.expect(typ)
	if h.Flags&wire.FlagSealed == 0 {
		r.t.Fatalf("%v frame is not sealed", typ)
	}
	body, err := r.link.Open(append(h.Append(nil), sealed...), wire.HeaderLen)
	if err != nil {
		r.t.Fatal(err)
	}
	return body
}

// TestSealedLink checks that frames between a rank and the forwarder are sealed in a sealed job,
// those between ranks are forwarded, and a rank's Abort carries its proof.
func TestSealedLink(t *testing.T) {
	b := start(t, tcpNetwork(), nil)
	r := b.joinSealed(t)
	pingPong(t, r[0].rank, r[1].rank)
	r[0].say(wire.TypePing, nil)
	r[0].hear(wire.TypePong)
	a := wire.Abort{Code: 42, Rank: 0, Reason: "MPI\n_Abort", By: 0}
	a.Word = r[0].party.Job().Word(0, r[0].party.Instance, a.AppendUnsigned(nil))
	r[0].say(wire.TypeAbort, &a)
	for v := range r {
		got, err := wire.ParseAbort(r[v].hear(wire.TypeAbort))
		if err != nil || got != a {
			t.Errorf("rank %d hears %+v, %v", v, got, err)
		}
		r[v].rank.link.Close()
	}
	if s := b.ended(); s.Code != 42 || !strings.Contains(s.Reason, `MPI\n_Abort, by virtual rank 0`) {
		t.Errorf("%+v", s)
	}
}

// TestSealedBye checks Bye and ByeAck of a sealed job.
func TestSealedBye(t *testing.T) {
	b := start(t, tcpNetwork(), nil)
	r := b.joinSealed(t)
	for v := range r {
		r[v].say(wire.TypeBye, nil)
		r[v].hear(wire.TypeByeAck)
		r[v].rank.link.Close()
	}
	if s := b.ended(); !s.OK {
		t.Errorf("%+v", s)
	}
}

// TestForgedControlFramesAreRejected checks that frames that another party inserts into a rank's
// link are bad frames without effect, whatever their type.
func TestForgedControlFramesAreRejected(t *testing.T) {
	abort := &wire.Abort{Code: 7, Rank: 0, Reason: "gotcha", By: 0}
	for what, invent := range map[string]func(r *sealedRank){
		"plain Abort": func(r *sealedRank) { r.send(wire.AppendFrame(nil, wire.Control(wire.TypeAbort), abort)) },
		"plain Bye":   func(r *sealedRank) { r.send(frame(wire.TypeBye, nil)) },
		"plain Ping after sealed ones": func(r *sealedRank) {
			r.say(wire.TypePing, nil)
			r.send(frame(wire.TypePing, nil))
		},
		"Abort with another key": func(r *sealedRank) {
			f, err := seal.NewForwarder([seal.PublicLen]byte{3})
			if err != nil {
				t.Fatal(err)
			}
			if r.link, err = r.party.Link(f.Public, [seal.NonceLen]byte{}); err != nil {
				t.Fatal(err)
			}
			r.say(wire.TypeAbort, abort)
		},
	} {
		t.Run(what, func(t *testing.T) {
			b := start(t, tcpNetwork(), func(c *Config) { c.Linger = 100 * time.Millisecond })
			r := b.joinSealed(t)
			invent(&r[0])
			got, err := wire.ParseAbort(r[1].hear(wire.TypeAbort))
			if err != nil || got.Code != 1 || got.By != wire.Nobody || strings.Contains(got.Reason, "gotcha") ||
				!strings.Contains(got.Reason, "seal") {
				t.Errorf("%+v, %v", got, err)
			}
			if s := b.ended(); s.Code != 1 {
				t.Errorf("%+v", s)
			}
		})
	}
}
