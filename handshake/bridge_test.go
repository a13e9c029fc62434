package handshake

import (
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/seal"
	"github.com/leidenzipper/zipper/internal/wire"
)

func hopped(here int) Identity {
	id := member("b", 1)
	id.Zippers, id.Here = []wire.Zipper{{Ports: []wire.Port{{Network: 0, Address: "x"}}},
		{Ports: []wire.Port{{Network: 1, Address: "y"}}}}, here
	return id
}

// certified returns the certificate of a forwarder that a rank has joined.
func certified(t testing.TB, id Identity) Certificate {
	a := acceptor(1, "")
	_, e := joinUntilDecision(t, id, a)
	if e.Kind != Verified {
		t.Fatalf("%+v", e)
	}
	return a.Certificate(e.Join)
}

func introduce(t *testing.T, b *Bridger, a *Acceptor) (Event, Event) {
	deliver(t, a.NextEvent, b.HandleMessage)
	there, _ := deliver(t, b.NextEvent, a.HandleMessage)
	here, _ := deliver(t, a.NextEvent, b.HandleMessage)
	return here, there
}

func TestForwardersOfAJobGetALink(t *testing.T) {
	cert := certified(t, hopped(0))
	here, there := introduce(t, NewBridger(cert, 1, 0, &Terms{Keys: forwarderKeys(1)}, nonce(5)), acceptor(2, "s"))
	if here.Kind != Bridged || here.To != 1 || here.Join.Here != 0 || here.Join.Job != "j" || there.Kind != Bridged {
		t.Errorf("%+v, %+v", here, there)
	}
	if here, _ := introduce(t, NewBridger(cert, 1, 0, &Terms{Keys: forwarderKeys(1)}, nonce(5)),
		acceptor(2, "other")); here.Kind != Ended ||
		here.Err.Code != wire.RefuseSecret {
		t.Errorf("a forwarder with another secret: %+v", here)
	}
	// A forwarder that has overheard the Join does not have its key.
	if here, _ := introduce(t, NewBridger(cert, 1, 0, &Terms{Keys: forwarderKeys(9)}, nonce(5)),
		acceptor(2, "")); here.Kind != Ended ||
		here.Err.Code != wire.RefuseSecret {
		t.Errorf("a stolen Join: %+v", here)
	}
	liar := &seal.Forwarder{} // claims a key that it does not have
	*liar = *forwarderKeys(9)
	liar.Public = forwarderKeys(1).Public
	if here, _ := introduce(t, NewBridger(cert, 1, 0, &Terms{Keys: liar}, nonce(5)),
		acceptor(2, "")); here.Kind != Ended || here.Err.Code != wire.RefuseSecret {
		t.Errorf("a stolen Join with its key: %+v", here)
	}
	// An overheard Bridge is refused on another link, and so is a changed one.
	var frame []byte
	a, b := acceptor(2, ""), NewBridger(cert, 1, 0, &Terms{Keys: forwarderKeys(1)}, nonce(5))
	deliver(t, a.NextEvent, b.HandleMessage)
	deliver(t, b.NextEvent, func(_ wire.Header, body []byte) { frame = append([]byte(nil), body...) })
	again := acceptor(3, "")
	deliver(t, again.NextEvent, func(wire.Header, []byte) {})
	again.HandleMessage(wire.Header{Type: wire.TypeBridge}, frame)
	if e, _ := deliver(t, again.NextEvent, func(wire.Header, []byte) {}); e.Kind != Ended ||
		e.Err.Code != wire.RefuseSecret {
		t.Errorf("replayed: %+v", e)
	}
	frame[8] ^= 1 // the number of the connection
	a.HandleMessage(wire.Header{Type: wire.TypeBridge}, frame)
	if e, _ := deliver(t, a.NextEvent, func(wire.Header, []byte) {}); e.Kind != Ended ||
		e.Err.Code != wire.RefuseSecret {
		t.Errorf("changed: %+v", e)
	}
	// A newer forwarder does not speak the job's version.
	a, b = acceptor(2, ""), NewBridger(cert, 1, 0, &Terms{Keys: forwarderKeys(1)}, nonce(5))
	deliver(t, a.NextEvent, func(h wire.Header, body []byte) {
		body[0], body[4] = wire.Version+1, wire.Version+1
		b.HandleMessage(h, body)
	})
	if e, _ := deliver(t, b.NextEvent, a.HandleMessage); e.Kind != Ended ||
		!strings.Contains(e.Err.Reason, "COMPATIBILITY.md") {
		t.Errorf("another version: %+v", e)
	}
}
