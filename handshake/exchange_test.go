package handshake

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/leidenzipper/zipper/internal/wire"
)

// machines returns one machine of each kind except Teller, with a new link.
func machines(t *testing.T) map[string]Machine {
	t.Helper()
	j, err := NewJoiner(member("a", 0), nonce(4))
	if err != nil {
		t.Fatal(err)
	}
	return map[string]Machine{"acceptor": acceptor(1, ""), "joiner": j, "bridger": NewBridger(Certificate{}, 1, 0,
		&Terms{Keys: forwarderKeys(9), Strict: true}, nonce(5)),
		"responder": responder("s", 1), "initiator": NewInitiator(Key("j", "s"), 1, door, nonce(2))}
}

// TestRefuseEndsEveryExchange checks that every end accepts the other's Refuse, refuses a broken
// one, and sends nothing after its end.
func TestRefuseEndsEveryExchange(t *testing.T) {
	sent := (&wire.Refuse{Code: wire.RefuseShutdown, Reason: "bye"}).Append(nil)
	for name, m := range machines(t) {
		ended := 0
		drive := func() {
			err := Drive(m, func([]byte) error { return nil }, func(e Event) error {
				if e.Kind != Ended || !e.Err.Remote || e.Err.Code != wire.RefuseShutdown || e.Err.Reason != "bye" {
					t.Errorf("%s: %+v", name, e)
				}
				ended++
				return nil
			})
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for range 3 {
			m.HandleMessage(wire.Control(wire.TypeRefuse), sent)
			drive()
		}
		if ended != 1 {
			t.Errorf("%s: ended %d times", name, ended)
		}
	}
	for name, m := range machines(t) {
		m.HandleMessage(wire.Control(wire.TypeRefuse), sent[:1])
		var frames []wire.Type
		var last Event
		Drive(m, func(b []byte) error {
			h, err := wire.ParseHeader(b)
			frames = append(frames, h.Type)
			return err
		}, func(e Event) error { last = e; return nil })
		if last.Kind != Ended || last.Err.Remote || last.Err.Code != wire.RefuseMalformed ||
			frames[len(frames)-1] != wire.TypeRefuse {
			t.Errorf("%s: broken Refuse: %v, %+v", name, frames, last)
		}
	}
}

// TestErrorOfTheOwnerEndsTheDrive checks that an error of the owner ends the drive, and that the
// remaining events stay.
func TestErrorOfTheOwnerEndsTheDrive(t *testing.T) {
	a := acceptor(1, "")
	a.Refuse(wire.RefuseJob, "no")
	bad := errors.New("bad")
	never := func(Event) error { t.Error("called"); return nil }
	if err := Drive(a, func([]byte) error { return bad }, never); err != bad {
		t.Error(err)
	}
	sent := 0
	count := func([]byte) error { sent++; return nil }
	if err := Drive(a, count, func(Event) error { return bad }); err != bad || sent != 1 {
		t.Error(sent, err)
	}
	if err := Drive(a, count, never); err != nil || sent != 1 {
		t.Error(sent, err)
	}
}

// TestIllegalTransitionEndsExchange checks that an exchange makes only the transitions of the
// diagram. An illegal one ends the exchange with an internal error that both ends learn, and with
// no event after it; of a strict exchange it panics.
func TestIllegalTransitionEndsExchange(t *testing.T) {
	for from := range legal {
		for s := range legal {
			from, next := state(from), state(s)
			allowed := legal[from]&(1<<next) != 0
			x := exchange{state: from}
			x.to(next)
			x.push(Event{Kind: Verified})
			var kinds []EventKind
			for e, ok := x.NextEvent(); ok; e, ok = x.NextEvent() {
				kinds = append(kinds, e.Kind)
				if e.Kind == Ended && !strings.Contains(e.Err.Reason, fmt.Sprintf("from %v to %v", from, next)) {
					t.Errorf("%v to %v ends with %v", from, next, e.Err)
				}
			}
			want, is := []EventKind{Send, Ended}, over
			switch {
			case allowed:
				want, is = []EventKind{Verified}, next
			case from == over:
				want = nil
			}
			if !slices.Equal(kinds, want) || x.state != is {
				t.Errorf("%v to %v: events %v, then %v; want %v, %v", from, next, kinds, x.state, want, is)
			}
			if panics(func() { (&exchange{state: from, strict: true}).to(next) }) == allowed {
				t.Errorf("strict, %v to %v: allowed is %v", from, next, allowed)
			}
		}
	}
}

// panics tells whether a function panics.
func panics(fn func()) (yes bool) {
	defer func() { yes = recover() != nil }()
	fn()
	return false
}
