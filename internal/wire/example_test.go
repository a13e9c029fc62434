package wire_test

import (
	"fmt"
	"log"

	"github.com/leidenzipper/zipper/internal/wire"
)

// A frame is a header, a body with the length of its type, and a payload.
func ExampleHeader() {
	e := wire.Envelope{Context: 7, Tag: 5, Size: 3}
	h := wire.Header{Type: wire.TypeEager, Src: 0, Dst: 2, Seq: 1, Length: uint32(wire.TypeEager.BodyLen() + 3)}
	frame := append(e.Append(h.Append(nil)), "abc"...)
	wire.SumFrame(frame)

	got, err := wire.ParseHeader(frame)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(got.Type, "to", got.Dst, "with", got.Payload(), "bytes")
	frame[8] ^= 1 // a bit flips in transit
	_, err = wire.ParseHeader(frame)
	fmt.Println(err)
	// Output:
	// Eager to 2 with 3 bytes
	// wire: header of Eager frame: damaged in transit (checksum)
}
