package handshake

import (
	"errors"
	"testing"

	"github.com/leidenzipper/zipper/wire"
)

// machines makes one of each kind, as it is when its link is new.
func machines(t *testing.T) map[string]Machine {
	t.Helper()
	j, err := NewJoiner(member("a", 0), nonce(4))
	if err != nil {
		t.Fatal(err)
	}
	return map[string]Machine{"acceptor": acceptor(1, ""), "joiner": j, "bridger": NewBridger(Certificate{}, 1, 0,
		&Terms{Keys: forwarderKeys(9)}, nonce(5)),
		"responder": responder("s", 1), "initiator": NewInitiator(Key("j", "s"), 1, door, nonce(2))}
}

// Every end heeds the other's Refuse, refuses a broken one, and says nothing after its end.
func TestRefuseEndsAll(t *testing.T) {
	said := (&wire.Refuse{Code: wire.RefuseShutdown, Reason: "bye"}).Append(nil)
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
			m.HandleMessage(wire.Control(wire.TypeRefuse), said)
			drive()
		}
		if ended != 1 {
			t.Errorf("%s: ended %d times", name, ended)
		}
	}
	for name, m := range machines(t) {
		m.HandleMessage(wire.Control(wire.TypeRefuse), said[:1])
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

// An error of the owner ends the drive, and the events that are left wait.
func TestDriveErrors(t *testing.T) {
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

// Only moves of the diagram are made.
func TestStates(t *testing.T) {
	for from := range legal {
		for s := range legal {
			x := exchange{state: state(from)}
			func() {
				defer func() {
					if allowed := legal[from]&(1<<s) != 0; (recover() == nil) != allowed {
						t.Errorf("%v to %v: allowed is %v", state(from), state(s), allowed)
					}
				}()
				x.to(state(s))
			}()
		}
	}
}
