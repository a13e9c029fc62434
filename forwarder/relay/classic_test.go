package relay

import (
	"sync/atomic"
	"testing"

	"github.com/leidenzipper/zipper/internal/wire"
)

// TestClassicLongMessage checks that the classic protocol bounds the bytes that it stores of one
// message.
func TestClassicLongMessage(t *testing.T) {
	s := &Classic{busy: true, sender: 0, receiver: 1, left: 1 << 30}
	r := &Route{Table: make([]atomic.Pointer[Conn], 2)}
	head := wire.Header{Type: wire.TypeData, Dst: 1, Length: wire.DataLen + wire.MaxPayload}
	p := append(new(wire.Data).Append(head.Append(nil)), make([]byte, wire.MaxPayload)...)
	for range 40 {
		h, err := wire.ParseHeader(p)
		if err != nil {
			t.Fatal(err)
		}
		s.one(nil, r, &h, p)
		if len(s.store) > storeLimit+len(p) {
			t.Fatalf("%d bytes stored", len(s.store))
		}
	}
}
