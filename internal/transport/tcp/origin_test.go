package tcp

import (
	"net/netip"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestOrigin(t *testing.T) {
	port := func(n uint16) (p uint16) { // in network byte order
		*(*[2]byte)(unsafe.Pointer(&p)) = [2]byte{byte(n >> 8), byte(n)}
		return p
	}
	v4 := func(address string) (a unix.RawSockaddrAny) {
		*(*unix.RawSockaddrInet4)(unsafe.Pointer(&a)) = unix.RawSockaddrInet4{Family: unix.AF_INET, Port: port(40_000),
			Addr: netip.MustParseAddr(address).As4()}
		return a
	}
	v6 := func(address string, scope uint32) (a unix.RawSockaddrAny) {
		*(*unix.RawSockaddrInet6)(unsafe.Pointer(&a)) = unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: port(258),
			Addr: netip.MustParseAddr(address).As16(), Scope_id: scope}
		return a
	}
	for want, from := range map[string]unix.RawSockaddrAny{
		"10.1.2.3:40000":                v4("10.1.2.3"),
		"[2001:db8::1]:258":             v6("2001:db8::1", 0),
		"10.1.2.3:258":                  v6("::ffff:10.1.2.3", 0),
		"[fe80::1%" + zone(1) + "]:258": v6("fe80::1", 1),
		netip.AddrPort{}.String():       {Addr: unix.RawSockaddr{Family: unix.AF_UNIX}},
	} {
		if got := origin(&from).String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestOriginOfLink checks that the address from which a link comes is that of its other end.
func TestOriginOfLink(t *testing.T) {
	dialled, accepted := pair(t)
	here, _ := dialled.(*link).Home()
	if _, there := accepted.(*link).Home(); there != here || !there.IsLoopback() {
		t.Errorf("%v, want %v", there, here)
	}
}
