package bridge

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder/action"
	"github.com/leidenzipper/zipper/internal/wire"
)

// running returns the bridge of a running job, over connection 1, which this end has dialled.
func running(t *testing.T) *Bridge {
	t.Helper()
	b := New(Config{Job: "j", Zipper: 1, Address: "z", Dials: true, Fixed: 1, Patience: time.Second, SurvivesLoss: true, Resumes: true})
	after(t, b, Reach{}, Dialled{Conn: 1}, Introduced{Conn: 1}, Pong{Conn: 1}, Begin{})
	if b.State() != Running {
		t.Fatalf("the bridge is %v", b.State())
	}
	return b
}

// after applies events to a bridge, and returns the actions after the last one.
func after(t *testing.T, b *Bridge, events ...Event) (actions []action.Action) {
	t.Helper()
	for _, e := range events {
		var err error
		if actions, err = b.Handle(time.Unix(1e9, 0), e); err != nil {
			t.Fatalf("%T: %v", e, err)
		}
	}
	return actions
}

// has reports whether there is an action of a type.
func has[A action.Action](actions []action.Action) bool {
	return slices.ContainsFunc(actions, func(a action.Action) bool { _, ok := a.(A); return ok })
}

var (
	again    = Expired{Timer: action.Again}
	errReset = errors.New("reset")
)

// TestNumberIsDialledOnce checks that a number is not dialled while a Dial of that number is under
// way, also if the other end has dialled a connection with that number, which ends.
func TestNumberIsDialledOnce(t *testing.T) {
	b := running(t)
	if !has[Dial](after(t, b, Ended{Conn: 1, Cause: errReset}, again)) {
		t.Fatal("the lost connection is not dialled")
	}
	if has[Dial](after(t, b, Offered{Conn: 2, Number: 1}, Ended{Conn: 2, Cause: errReset}, again)) {
		t.Error("the number is dialled twice at once")
	}
	if !has[Dial](after(t, b, NotDialled{Number: 1, Err: errReset}, again)) {
		t.Error("the number is not dialled again after the Dial has failed")
	}
}

// TestSurplusDialIsClosed checks that a dialled connection is closed if the other end has dialled
// one with the same number, which is in use.
func TestSurplusDialIsClosed(t *testing.T) {
	b := running(t)
	after(t, b, Ended{Conn: 1, Cause: errReset}, again, Offered{Conn: 2, Number: 1})
	actions := after(t, b, Dialled{Conn: 3, Number: 1})
	if has[Introduce](actions) || !has[action.End](actions) || b.First() != 2 {
		t.Errorf("%+v; connection %d is in use", actions, b.First())
	}
}

// TestRestartOfPeerEndsDials checks that the number of a connection that was being introduced when
// the other end gathered the job again can be dialled again.
func TestRestartOfPeerEndsDials(t *testing.T) {
	b := running(t)
	after(t, b, Ended{Conn: 1, Cause: errReset}, again, Dialled{Conn: 2, Number: 1}, Offered{Conn: 3, Number: 0}, Ended{Conn: 2, Cause: errReset})
	if !has[Dial](after(t, b, Ended{Conn: 3, Cause: errReset}, again)) {
		t.Error("no connection is dialled any more")
	}
}

// TestFramesOfGatheringAreIgnored checks that a connection stays open if each end takes the other
// one for a restarted one, and sends it the frames that a gathering forwarder needs.
func TestFramesOfGatheringAreIgnored(t *testing.T) {
	for _, frame := range []wire.Type{wire.TypeJoin, wire.TypeNotice, wire.TypeRailState, wire.TypeLost} {
		b := running(t)
		actions := after(t, b, Ended{Conn: 1, Cause: errReset}, Offered{Conn: 2, Number: 0}, Unexpected{Conn: 2, Type: frame})
		if has[action.End](actions) {
			t.Errorf("%v ends the connection", frame)
		}
		if after(t, b, Ready{Conn: 2, Zipper: 1}); b.First() != 2 {
			t.Errorf("after %v the connection is not used", frame)
		}
	}
}
