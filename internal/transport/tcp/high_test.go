package tcp

import (
	"context"
	"testing"

	"github.com/leidenzipper/zipper/internal/highfd"
)

// TestLinksHaveHighDescriptors checks that the descriptors of the listener and of both ends have
// numbers that a program does not get for its files.
func TestLinksHaveHighDescriptors(t *testing.T) {
	ln, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	dialled, err := Dialer{}.Dial(context.Background(), ln.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer dialled.Close()
	accepted, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	listens := 0
	if err := ln.raw.Control(func(s uintptr) { listens = int(s) }); err != nil {
		t.Fatal(err)
	}
	if low := min(listens, dialled.FD(), accepted.FD()); low < highfd.Floor() {
		t.Errorf("the listener or a link has the descriptor %d, below %d", low, highfd.Floor())
	}
}
