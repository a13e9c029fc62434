package handshake

import (
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/wire"
)

// meet runs a meeting of rank 1, which dials, with rank 0, and returns both ends' last events.
func meet(t *testing.T, responder, initiator *Meeting) (h, g Event) {
	t.Helper()
	deliver(t, responder.NextEvent, initiator.HandleMessage)
	g, over := deliver(t, initiator.NextEvent, responder.HandleMessage)
	h, _ = deliver(t, responder.NextEvent, initiator.HandleMessage)
	if !over {
		g, _ = deliver(t, initiator.NextEvent, responder.HandleMessage)
	}
	return h, g
}

var door = wire.Door{Rank: 0, Instance: 7}

func nonce(b byte) [wire.NonceLen]byte { return [wire.NonceLen]byte{b} }

func responder(secret string, expected ...int) *Meeting {
	return NewResponder(Key("j", secret), 0, 7, nonce(1), func(rank int) bool {
		for _, g := range expected {
			if g == rank {
				return true
			}
		}
		return false
	})
}

func TestRanksMeet(t *testing.T) {
	h, g := meet(t, responder("s", 1, 2), NewInitiator(Key("j", "s"), 1, door, nonce(2)))
	if h.Kind != Paired || h.To != 1 || g.Kind != Paired || g.To != 0 {
		t.Fatalf("responder %+v, initiator %+v", h, g)
	}
	for _, c := range []struct {
		name      string
		responder *Meeting
		initiator *Meeting
		code      wire.RefuseCode
	}{
		{"other secret", responder("x", 1), NewInitiator(Key("j", "s"), 1, door, nonce(2)), wire.RefuseSecret},
		{"other job", responder("s", 1), NewInitiator(Key("k", "s"), 1, door, nonce(2)), wire.RefuseSecret},
		{"earlier run", responder("s", 1), NewInitiator(Key("j", "s"), 1, wire.Door{Rank: 0, Instance: 8}, nonce(2)),
			wire.RefuseJob},
		{"another rank's door", responder("s", 1), NewInitiator(Key("j", "s"), 1, wire.Door{Rank: 5, Instance: 7},
			nonce(2)), wire.RefuseJob},
		{"not invited", responder("s", 2), NewInitiator(Key("j", "s"), 1, door, nonce(2)), wire.RefuseJob},
	} {
		h, g := meet(t, c.responder, c.initiator)
		if h.Kind != Ended || h.Err.Code != c.code || h.Err.Remote || g.Kind != Ended || g.Err.Code != c.code ||
			!g.Err.Remote {
			t.Errorf("%s: responder %+v, initiator %+v", c.name, h, g)
		}
	}
}

// TestReplayedMeetIsRefused checks that neither end accepts a frame from another link.
func TestReplayedMeetIsRefused(t *testing.T) {
	var replayed []byte // the initiator's Meet for nonce 1
	a, g := responder("s", 1), NewInitiator(Key("j", "s"), 1, door, nonce(2))
	deliver(t, a.NextEvent, g.HandleMessage)
	deliver(t, g.NextEvent, func(h wire.Header, body []byte) { replayed = append([]byte(nil), body...) })
	b := NewResponder(Key("j", "s"), 0, 7, nonce(9), func(int) bool { return true })
	b.NextEvent()
	b.HandleMessage(wire.Control(wire.TypeMeet), replayed)
	b.NextEvent()
	if e, _ := b.NextEvent(); e.Kind != Ended || e.Err.Code != wire.RefuseSecret {
		t.Errorf("responder: %+v", e)
	}
	// The initiator gets its own Meet back as the responder's.
	g.HandleMessage(wire.Control(wire.TypeMeet), replayed)
	g.NextEvent()
	if e, _ := g.NextEvent(); e.Kind != Ended || e.Err.Code != wire.RefuseSecret {
		t.Errorf("initiator: %+v", e)
	}
}

func TestMalformedMeetIsRefused(t *testing.T) {
	for name, feed := range map[string]func(m *Meeting){
		"meet before the challenge": func(m *Meeting) {
			m.HandleMessage(wire.Control(wire.TypeMeet),
				make([]byte, wire.MeetLen))
		},
		"short challenge": func(m *Meeting) {
			m.HandleMessage(wire.Control(wire.TypeChallenge),
				[]byte{wire.Version, 0, 0, 0, 1})
		},
		"something else": func(m *Meeting) { m.HandleMessage(wire.Control(wire.TypeBye), nil) },
	} {
		m := NewInitiator(Key("j", "s"), 1, door, nonce(2))
		feed(m)
		if e, ok := m.NextEvent(); !ok || e.Kind != Send {
			t.Errorf("%s: no Refuse: %+v", name, e)
		}
		if e, _ := m.NextEvent(); e.Kind != Ended || e.Err.Code != wire.RefuseMalformed {
			t.Errorf("%s: %+v", name, e)
		}
	}
	m := NewInitiator(Key("j", "s"), 1, door, nonce(2))
	m.HandleMessage(wire.Control(wire.TypeChallenge),
		(&wire.Challenge{Version: wire.Version + 1, Oldest: wire.Version + 1}).Append(nil))
	m.NextEvent()
	if e, _ := m.NextEvent(); e.Kind != Ended || e.Err.Code != wire.RefuseVersion ||
		!strings.Contains(e.Err.Reason, "COMPATIBILITY.md") {
		t.Errorf("version: %+v", e)
	}
}
