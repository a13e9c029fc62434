package tcp

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// A link does not pace its packets with timers, whatever the system's default is; a default that does not either stays.
func TestNoPacing(t *testing.T) {
	for _, c := range []struct{ before, after string }{{"bbr", "reno"}, {"reno", "reno"}, {"cubic", "cubic"}} {
		t.Run(c.before, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			conn, err := net.Dial("tcp", ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			raw, err := conn.(*net.TCPConn).SyscallConn()
			if err != nil {
				t.Fatal(err)
			}
			var set error
			if err := raw.Control(func(fd uintptr) {
				set = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, c.before)
			}); err != nil {
				t.Fatal(err)
			}
			if set != nil {
				conn.Close()
				t.Skipf("this system does not offer %s: %v", c.before, set)
			}
			l, err := newLink(conn.(*net.TCPConn))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			if got, err := unix.GetsockoptString(l.fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION); err != nil || got != c.after {
				t.Fatalf("%q, %v; want %q", got, err, c.after)
			}
		})
	}
}
