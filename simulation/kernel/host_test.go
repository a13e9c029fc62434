package kernel

import (
	"testing"
	"time"
)

// TestCompute checks that two programs on one core, which their hosts share, take turns, and that a
// thread with little to do goes before them.
func TestCompute(t *testing.T) {
	k := New(1)
	machine := &Host{Name: "machine", Cores: 1}
	ends := map[string]time.Duration{}
	for _, name := range []string{"a", "b"} {
		p := k.Process(name)
		p.On(&Host{Name: name, Cores: 1, Share: machine})
		p.Go(func() {
			k.Compute(100 * time.Millisecond)
			ends[name] = k.Now()
		})
	}
	c := k.Process("c")
	c.On(&Host{Name: "c", Cores: 1, Share: machine})
	late := time.Duration(0)
	c.Go(func() {
		for range 10 {
			at := k.Now() + 5*time.Millisecond
			k.Sleep(5 * time.Millisecond)
			late = max(late, k.Now()-at)
			k.Spend(10 * time.Microsecond)
		}
	})
	k.Run(func() bool { return false })
	for name, at := range ends {
		if at < 199*time.Millisecond || at > 201*time.Millisecond {
			t.Errorf("%s has computed for 100 ms at %v", name, at)
		}
	}
	if len(ends) != 2 || late > machine.slice() {
		t.Errorf("%v; the thread with less to do waited %v", ends, late)
	}
}

// TestLinks checks that packets on links inside the machine take processor time before they arrive,
// and that this time delays threads that are not in Compute.
func TestLinks(t *testing.T) {
	machine := &Host{Name: "m", Cores: 2, Links: Links{Packet: 10 * time.Microsecond, Byte: 1}}
	at := time.Millisecond
	for i, want := range []time.Duration{20, 20, 40, 40} { // two at a time
		if got := machine.interrupt(at, 10_000) - at; got != want*time.Microsecond {
			t.Errorf("packet %d arrived after %v, want %v us", i, got, int64(want))
		}
	}
	if got := machine.interrupt(2*at, 0) - 2*at; got != 10*time.Microsecond {
		t.Errorf("an empty packet arrived after %v", got)
	}
	if machine.Used != 90*time.Microsecond || machine.debt != 0 {
		t.Errorf("used %v, owed %v while no thread ran", machine.Used, machine.debt)
	}
	machine.busy, machine.computing = 2, 1
	machine.interrupt(3*at, 10_000)
	if machine.debt != 10*time.Microsecond {
		t.Errorf("the thread that does not compute owes %v of 20 us, want half", machine.debt)
	}
}
