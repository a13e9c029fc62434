package forwarder

import (
	"errors"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leidenzipper/zipper/forwarder/nat"
)

// failingTable is a kernel that opens no way while fails is set.
type failingTable struct {
	passed
	fails atomic.Bool
}

func (u *failingTable) OpenWays(ways []nat.Way) ([]netip.AddrPort, error) {
	if u.fails.Load() {
		return make([]netip.AddrPort, len(ways)), errors.New("no buffer space")
	}
	return u.passed.OpenWays(ways)
}

// TestStatusHasFailureOfKernel checks that the status has the reason why the kernel opens no ways
// while it opens none, and not any more once it does.
func TestStatusHasFailureOfKernel(t *testing.T) {
	table := &failingTable{}
	b := start(t, tcpNetwork(), func(c *Config) { c.NAT = table })
	r := b.joinInside(insideOf, nil, twoClusters...)
	offered(r)
	if s := b.f.Status(); !s.NAT || s.NATFailure != "" {
		t.Errorf("before a request: NAT %v, %q", s.NAT, s.NATFailure)
	}
	table.fails.Store(true)
	r[2].ask(0)
	for end := time.Now().Add(20 * time.Second); b.f.Status().NATFailure != "no buffer space"; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the failure is not in the status")
		}
	}
	table.fails.Store(false)
	// The status may have the failure before the job has the kernel's answer. A request for the
	// same door until then is answered by it, too, so this one is for another door.
	r[2].ask(1)
	r[2].way()
	if s := b.f.Status(); !s.NAT || s.NATFailure != "" {
		t.Errorf("after a success: NAT %v, %q", s.NAT, s.NATFailure)
	}
}
