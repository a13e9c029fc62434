package handshaketest

import (
	"net"
	"testing"
)

// NotDialled checks that a listener, which has accepted no connection, has none waiting.
func NotDialled(t testing.TB, ln net.Listener) {
	t.Helper()
	ours, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	first, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if first.RemoteAddr().String() != ours.LocalAddr().String() {
		t.Errorf("%v has connected", first.RemoteAddr())
	}
}
