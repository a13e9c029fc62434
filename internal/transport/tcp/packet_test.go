package tcp

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/optional"
	"github.com/leidenzipper/zipper/internal/transport"
)

// TestPacket checks that writes which fill packets are sent as full segments of the network only.
func TestPacket(t *testing.T) {
	optional.Processor(t, "getsockopt of TCP_INFO")
	l, _ := pair(t)
	n := l.(transport.Packeted).Packet()
	info := func() *unix.TCPInfo {
		i, err := unix.GetsockoptTCPInfo(l.FD(), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	mss := int(info().Snd_mss)
	if n < mss || n > 64<<10 && n > mss {
		t.Fatalf("packets of %d bytes, segments of the network of %d", n, mss)
	}
	before := info().Data_segs_out
	if k, err := l.TryWrite(make([]byte, 2*n)); k != 2*n || err != nil {
		t.Fatalf("wrote %d of %d bytes: %v", k, 2*n, err)
	}
	if segs := int(info().Data_segs_out - before); segs != 2*n/mss {
		t.Errorf("%d bytes left as %d segments of %d", 2*n, segs, mss)
	}
	l.Close()
	if n := l.(transport.Packeted).Packet(); n != 0 {
		t.Errorf("a closed link has packets of %d bytes", n)
	}
}
