package handshake

import (
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/wire"
)

// hostKey returns a forwarder's host key, the same for the same number.
func hostKey(n byte) ed25519.PrivateKey { return ed25519.NewKeyFromSeed(nonceSlice(n)) }

func nonceSlice(n byte) []byte { b := nonce(n); return b[:] }

func publicOf(k ed25519.PrivateKey) (p [wire.PublicKeyLen]byte) {
	copy(p[:], k.Public().(ed25519.PublicKey))
	return p
}

func proving(seed, host byte) *Acceptor {
	return NewAcceptor([wire.NonceLen]byte{seed}, &Terms{HostKey: hostKey(host), Keys: forwarderKeys(seed), Strict: true})
}

// TestOtherHostKeyIsRefused checks that a joiner that knows the forwarder's key joins in as many
// round trips as at a forwarder without one, and that it refuses another key.
func TestOtherHostKeyIsRefused(t *testing.T) {
	for _, expected := range [][wire.PublicKeyLen]byte{{}, publicOf(hostKey(7))} {
		id := member("a", 0)
		id.HostKey = expected
		a := proving(1, 7)
		j, e := joinUntilDecision(t, id, a)
		a.Notice("wait")
		deliver(t, a.NextEvent, j.HandleMessage)
		if e.Kind != Verified || j.state != awaitLayout {
			t.Errorf("%+v, %v", e, j.state)
		}
	}
	for what, a := range map[string]*Acceptor{"another key": proving(1, 8), "no key": acceptor(1, "")} {
		id := member("a", 0)
		id.HostKey = publicOf(hostKey(7))
		j, err := NewJoiner(id, nonce(4))
		if err != nil {
			t.Fatal(err)
		}
		deliver(t, a.NextEvent, j.HandleMessage)
		last, _ := deliver(t, j.NextEvent, a.HandleMessage)
		e, _ := deliver(t, a.NextEvent, j.HandleMessage)
		if refused := last.Err; refused == nil || refused.Code != wire.RefuseHostKey || refused.Remote ||
			j.state != over {
			t.Errorf("%s: %+v", what, refused)
		}
		if e.Kind != Ended || e.Err.Code != wire.RefuseHostKey || !e.Err.Remote || e.Join != nil {
			t.Errorf("%s: a forwarder that is not the right one gets %+v", what, e)
		}
	}
}

// TestShownKeyNeedsAProof checks that a forwarder that only shows a key fails, and that a signature
// for another process, or an earlier one for the same process, proves nothing.
func TestShownKeyNeedsAProof(t *testing.T) {
	id := member("a", 0)
	id.HostKey = publicOf(hostKey(7))
	// impostor shows the Challenge of an acceptor, which need not have the key, and answers with
	// proof.
	impostor := func(a *Acceptor, fresh byte, proof []byte) *Refused {
		t.Helper()
		j, err := NewJoiner(id, nonce(fresh))
		if err != nil {
			t.Fatal(err)
		}
		deliver(t, a.NextEvent, j.HandleMessage)
		deliver(t, j.NextEvent, func(wire.Header, []byte) {})
		j.HandleMessage(wire.Header{Type: wire.TypeProof}, proof)
		if j.state == awaitLayout {
			return nil
		}
		last, _ := deliver(t, j.NextEvent, func(wire.Header, []byte) {})
		return last.Err
	}
	// The right forwarder has proven its key to this very process once.
	a := proving(1, 7)
	j, err := NewJoiner(id, nonce(4))
	if err != nil {
		t.Fatal(err)
	}
	var proof []byte
	deliver(t, a.NextEvent, j.HandleMessage)
	deliver(t, j.NextEvent, a.HandleMessage)
	a.NextEvent()
	a.Notice("wait")
	deliver(t, a.NextEvent, func(h wire.Header, body []byte) {
		if h.Type == wire.TypeProof {
			proof = append([]byte(nil), body...)
		}
	})
	if refused := impostor(proving(1, 7), 4, proof); refused != nil {
		t.Errorf("the same link: %+v", refused)
	}
	liar := NewAcceptor([wire.NonceLen]byte{1}, &Terms{HostKey: append(hostKey(9)[:32:32], hostKey(7)[32:]...),
		Keys: forwarderKeys(1)})
	_, e := joinUntilDecision(t, id, liar)
	if e.Kind != Verified {
		t.Fatalf("%+v", e)
	}
	for what, refused := range map[string]*Refused{
		"another link of the process, the same Challenge": impostor(proving(1, 7), 5, proof),
		"another Challenge": impostor(proving(2, 7), 4, proof),
		"zeros":             impostor(proving(1, 7), 4, make([]byte, wire.ProofLen)),
		"too short":         impostor(proving(1, 7), 4, proof[:10]),
	} {
		if refused == nil || refused.Remote || refused.Code != wire.RefuseHostKey &&
			refused.Code != wire.RefuseMalformed {
			t.Errorf("%s: %+v", what, refused)
		}
	}
}

// TestNoLayoutWithoutProof checks that a forwarder that shows a key cannot omit the proof.
func TestNoLayoutWithoutProof(t *testing.T) {
	a := proving(1, 7)
	j, err := NewJoiner(member("a", 0), nonce(4))
	if err != nil {
		t.Fatal(err)
	}
	deliver(t, a.NextEvent, j.HandleMessage)
	deliver(t, j.NextEvent, func(wire.Header, []byte) {})
	j.HandleMessage(wire.Header{Type: wire.TypeLayout}, nil)
	if last, _ := deliver(t, j.NextEvent, func(wire.Header, []byte) {}); last.Kind != Ended || last.Err.Remote {
		t.Errorf("%+v", last)
	}
}

// TestForwardersCheckEachOther checks that both ends of a link between forwarders must have the
// keys that the job demands.
func TestForwardersCheckEachOther(t *testing.T) {
	id := hopped(0)
	id.Zippers[0].HostKey, id.Zippers[1].HostKey = publicOf(hostKey(1)), publicOf(hostKey(2))
	id.HostKey = id.Zippers[0].HostKey
	a := proving(1, 1)
	_, e := joinUntilDecision(t, id, a)
	if e.Kind != Verified {
		t.Fatalf("%+v", e)
	}
	cert := a.Certificate(e.Join)
	for _, c := range []struct {
		what      string
		own, peer ed25519.PrivateKey
		good      bool
	}{
		{"the right keys", hostKey(1), hostKey(2), true},
		{"the one that dials has another", hostKey(3), hostKey(2), false},
		{"the one that dials has none", nil, hostKey(2), false},
		{"the one that dials only shows it", append(hostKey(9)[:32:32], hostKey(1)[32:]...), hostKey(2), false},
		{"the one that is dialled has another", hostKey(1), hostKey(3), false},
		{"the one that is dialled has none", hostKey(1), nil, false},
		{"the one that is dialled only shows it", hostKey(1), append(hostKey(9)[:32:32], hostKey(2)[32:]...), false},
	} {
		b := NewBridger(cert, 1, 0, &Terms{HostKey: c.own, Keys: forwarderKeys(1)}, nonce(5))
		at := NewAcceptor([wire.NonceLen]byte{2}, &Terms{HostKey: c.peer, Keys: forwarderKeys(2)})
		deliver(t, at.NextEvent, b.HandleMessage)
		deliver(t, b.NextEvent, at.HandleMessage)
		here, _ := deliver(t, at.NextEvent, b.HandleMessage)
		there, _ := deliver(t, b.NextEvent, at.HandleMessage)
		if good := here.Kind == Bridged && there.Kind == Bridged; good != c.good {
			t.Errorf("%s: %+v, %+v", c.what, here, there)
		}
		if !c.good && there.Kind == Bridged {
			t.Errorf("%s: the one that dialled goes on", c.what)
		}
	}
}

// TestTicketErrorComesWithTheJoin checks that the error about a ticket comes with the Join, which
// is signed nevertheless.
func TestTicketErrorComesWithTheJoin(t *testing.T) {
	bad := errors.New("expired")
	terms := &Terms{Keys: forwarderKeys(1), Ticket: func(j *wire.Join) (string, error) {
		if j.Ticket != "good" {
			return "", bad
		}
		return "alice", nil
	}}
	for ticket, want := range map[string]error{"good": nil, "": bad, "bad": bad} {
		id := member("a", 0)
		id.Ticket = ticket
		_, e := joinUntilDecision(t, id, NewAcceptor([wire.NonceLen]byte{1}, terms))
		if e.Kind != Verified || e.Ticket != want || (e.User == "alice") != (want == nil) {
			t.Errorf("%q: %+v", ticket, e)
		}
	}
	id := member("a", 0)
	id.Ticket = strings.Repeat("t", wire.MaxTicket+1)
	if id.Validate() == nil {
		t.Error("a ticket that is too long")
	}
}

// TestRowsHaveOneKey checks that the rows of a job have the job's key.
func TestRowsHaveOneKey(t *testing.T) {
	if !Key(RowID("j", 1), "s").Equal(Key("j", "s")) || Key("j", "s").Equal(Key("k", "s")) {
		t.Error("rows and jobs are not told apart as they should be")
	}
}

// TestNoticeIsText checks that a forwarder's text cannot move the cursor of a user's terminal.
func TestNoticeIsText(t *testing.T) {
	a := acceptor(1, "")
	j, _ := joinUntilDecision(t, member("a", 0), a)
	a.Notice("\x1b[2Jgone\nnew line")
	e, _ := deliver(t, a.NextEvent, j.HandleMessage)
	if e.Kind != Send && e.Kind != Notified {
		t.Fatalf("%+v", e)
	}
	e, _ = j.NextEvent()
	if e.Kind != Notified || e.Text != `\x1b[2Jgone\nnew line` {
		t.Errorf("%+v", e)
	}
}
