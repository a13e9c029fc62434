package tcp

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/leidenzipper/zipper/internal/optional"
	"github.com/leidenzipper/zipper/internal/transport"
	"github.com/leidenzipper/zipper/internal/transport/transporttest"
)

func TestConformance(t *testing.T) {
	transporttest.Run(t, transporttest.Setup{
		Can: transporttest.Listening | transporttest.Packeted | transporttest.Homed | transporttest.Distant | transporttest.Piper,
		Open: func(t *testing.T) (transport.Listener, transport.Dialer) {
			ln, err := Listen("127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			return ln, Dialer{}
		},
		Skip: func(t *testing.T, test string) {
			if test == "Path" {
				optional.Processor(t, "getsockopt of TCP_INFO")
			}
		},
	})
}

// pair opens a link. Its ends are closed when the test ends.
func pair(t *testing.T) (dialled, accepted transport.Link) {
	t.Helper()
	ln, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if dialled, err = (Dialer{}).Dial(t.Context(), ln.Addr()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dialled.Close() })
	if accepted, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { accepted.Close() })
	return dialled, accepted
}

// TestOptions checks that both ends of a link have the same options, although those of the accepted
// end come from the listening socket.
func TestOptions(t *testing.T) {
	dialled, accepted := pair(t)
	for _, o := range []struct {
		what              string
		level, name, want int
	}{{"delay", unix.IPPROTO_TCP, unix.TCP_NODELAY, 1}, {"keep-alive", unix.SOL_SOCKET, unix.SO_KEEPALIVE, 0},
		{"unsent", unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, Unsent}} {
		for end, l := range map[string]transport.Link{"dialled": dialled, "accepted": accepted} {
			if got, err := unix.GetsockoptInt(l.FD(), o.level, o.name); err != nil || got != o.want {
				t.Errorf("%s of the %s end: %d, %v, want %d", o.what, end, got, err, o.want)
			}
		}
	}
	for end, l := range map[string]transport.Link{"dialled": dialled, "accepted": accepted} {
		if flags, err := unix.FcntlInt(uintptr(l.FD()), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK == 0 {
			t.Errorf("the %s end blocks: %x, %v", end, flags, err)
		}
		if flags, err := unix.FcntlInt(uintptr(l.FD()), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("the %s end is inherited: %x, %v", end, flags, err)
		}
	}
}
