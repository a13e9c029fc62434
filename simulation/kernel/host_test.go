package kernel

import (
	"testing"
	"time"
)

// TestCompute: on one core that two hosts share, two programs take turns, and what has less to do
// goes before them.
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
			t.Errorf("%s has computed 100 ms after %v", name, at)
		}
	}
	if len(ends) != 2 || late > slice {
		t.Errorf("%v; who has less to do waited %v", ends, late)
	}
}
