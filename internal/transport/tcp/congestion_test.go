package tcp

import (
	"context"
	"net"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func congestion(t *testing.T, fd int) string {
	name, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// TestUnpaced checks that a socket does not pace its packets with timers, whatever the system's
// default is, and that a default without pacing stays.
func TestUnpaced(t *testing.T) {
	for _, c := range []struct{ before, after string }{{"bbr", "reno"}, {"reno", "reno"}, {"cubic", "cubic"}} {
		t.Run(c.before, func(t *testing.T) {
			lc := net.ListenConfig{Control: func(network, addr string, raw syscall.RawConn) error {
				var set error
				var after string
				if err := raw.Control(func(fd uintptr) {
					set = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, c.before)
				}); err != nil {
					return err
				}
				if set != nil {
					t.Skipf("this system does not offer %s: %v", c.before, set)
				}
				if err := unpaced(network, addr, raw); err != nil {
					return err
				}
				if err := raw.Control(func(fd uintptr) { after = congestion(t, int(fd)) }); err != nil {
					return err
				}
				if after != c.after {
					t.Errorf("%q, want %q", after, c.after)
				}
				return nil
			}}
			ln, err := lc.Listen(context.Background(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ln.Close()
		})
	}
}

// TestLinksUnpaced checks that neither end of a link uses BBR, whatever the system's default is.
func TestLinksUnpaced(t *testing.T) {
	dialled, accepted := pair(t)
	for end, l := range map[string]interface{ FD() int }{"dialled": dialled, "accepted": accepted} {
		if got := congestion(t, l.FD()); got == "bbr" {
			t.Errorf("the %s end is under %s", end, got)
		}
	}
}
