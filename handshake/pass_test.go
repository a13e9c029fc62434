package handshake

import (
	"testing"

	"github.com/leidenzipper/zipper/internal/seal"
	"github.com/leidenzipper/zipper/internal/wire"
)

// joinOf returns the body of the Join with which a rank answers the acceptor.
func joinOf(t *testing.T, a *Acceptor, id Identity) (body []byte) {
	t.Helper()
	j, err := NewJoiner(id, nonce(4))
	if err != nil {
		t.Fatal(err)
	}
	deliver(t, a.NextEvent, j.HandleMessage)
	deliver(t, j.NextEvent, func(_ wire.Header, b []byte) { body = append([]byte(nil), b...) })
	return body
}

// examined tells whether an acceptor whose nonce is made from seed, and whose forwarder knows a
// pass, accepts the Join in body.
func examined(t *testing.T, seed byte, body []byte, known *seal.Pass) bool {
	t.Helper()
	a := NewAcceptor([wire.NonceLen]byte{seed}, &Terms{Keys: forwarderKeys(1)})
	a.NextEvent()
	h := wire.Header{Type: wire.TypeJoin, Length: uint32(len(body))}
	x := a.Examine(h, body, func(*wire.Join) *seal.Pass { return known })
	a.HandleExamined(h, body, &x)
	e, _ := deliver(t, a.NextEvent, func(wire.Header, []byte) {})
	if e.Kind != Verified && e.Err.Code != wire.RefuseSecret {
		t.Errorf("%+v", e)
	}
	return e.Kind == Verified
}

// TestPassIsEnough checks that a known pass is enough, and that the signature is then checked in
// jobs of several hops only. Nothing else is accepted in its place, and for the first rank both
// must be good.
func TestPassIsEnough(t *testing.T) {
	fresh := func() *Acceptor { return NewAcceptor([wire.NonceLen]byte{1}, &Terms{Keys: forwarderKeys(1)}) }
	pass := func(secret string) *seal.Pass {
		g, err := seal.NewGuest("j", secret)
		if err != nil {
			t.Fatal(err)
		}
		p, err := forwarderKeys(1).Pass(g.Public)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	good := joinOf(t, fresh(), member("b", 1))
	// unsigned is a Join whose pass is good and whose signature is not.
	unsigned := func(id Identity) []byte {
		a := fresh()
		j, err := wire.ParseJoin(joinOf(t, a, id))
		if err != nil {
			t.Fatal(err)
		}
		j.Signature[0] ^= 1
		j.Pass = pass("s").Show([]byte(shownWith), a.nonce[:], j.AppendUnshown(nil))
		return j.Append(nil)
	}
	flipped := func(at int) []byte {
		b := append([]byte(nil), good...)
		b[len(b)-at] ^= 1
		return b
	}
	for _, c := range []struct {
		what  string
		seed  byte
		body  []byte
		known *seal.Pass
		want  bool
	}{
		{"the first", 1, good, nil, true},
		{"the next", 1, good, pass("s"), true},
		{"signature bad, the first", 1, unsigned(member("b", 1)), nil, false},
		{"signature bad, the next", 1, unsigned(member("b", 1)), pass("s"), true},
		{"signature bad, several hops", 1, unsigned(hopped(0)), pass("s"), false},
		{"several hops", 1, joinOf(t, fresh(), hopped(0)), pass("s"), true},
		{"overheard on another link", 2, good, pass("s"), false},
		{"the job of another secret", 1, good, pass("x"), false},
		{"pass changed", 1, flipped(1), pass("s"), false},
		{"pass changed, the first", 1, flipped(1), nil, false},
		{"signature changed after it", 1, flipped(17), pass("s"), false},
		{"nonce changed", 1, flipped(150), pass("s"), false},
	} {
		if got := examined(t, c.seed, c.body, c.known); got != c.want {
			t.Errorf("%s: let in %v", c.what, got)
		}
	}
}
