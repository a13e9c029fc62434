package verbs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"unicode"
)

// This is the exchange over TCP before a link is up (private.go has the other kind), the same from
// both ends: hello (or refuse) · ready · proven (or refuse). Every message is: kind, 1 byte;
// length, 2 bytes little endian; that many bytes.
//
//	hello   88 or more bytes: magic "ZIPV" · version · link layer · MTU · 0 · LID 2 · 0 2 · slots 4 · slot size 4 ·
//	        GID 16 · for each of two queue pairs number 4, first packet 4 · nonce 16 ·
//	        blocks 4 · block size 4 · address of the first block 8 · its key 4        (the rest is for later versions)
//	ready   nothing: queue pairs are connected, receives are posted
//	proven  nothing: the peer's nonce has arrived over the queue pair
//	refuse  the reason, UTF-8
const (
	kindHello  = 1
	kindReady  = 2
	kindProven = 3
	kindRefuse = 4

	helloLen = 88
	version  = 4
)

var magic = [4]byte{'Z', 'I', 'P', 'V'}

// endpoint is one queue pair as the peer needs to know it.
type endpoint struct{ qpn, psn uint32 }

// hello is the description of one end for the other.
type hello struct {
	layer    uint8  // link layer, as numbered by verbs
	mtu      uint8  // 1 to 5
	lid      uint16 // for InfiniBand
	slots    uint32 // number of buffers of the receive ring
	slotSize uint32 // bytes
	gid      [16]byte
	out, in  endpoint // queue pairs to which this end writes and from which it reads
	nonce    [16]byte
	blocks   remoteBlocks
}

// where returns a name of the peer's port, as far as it is known.
func (h *hello) where() string {
	if h.gid == [16]byte{} {
		return ""
	}
	return fmt.Sprintf(" with LID %d, GID %s", h.lid, netip.AddrFrom16(h.gid))
}

// remoteBlocks are the blocks of one end as the other needs to know them.
type remoteBlocks struct {
	// size is in bytes.
	n, size uint32
	addr    uint64 // address of the first one; the others follow it
	key     uint32
}

// bytes returns the hello's body.
func (h *hello) bytes() []byte {
	b := append([]byte(nil), magic[:]...)
	b = append(b, version, h.layer, h.mtu, 0)
	b = binary.LittleEndian.AppendUint16(b, h.lid)
	b = append(b, 0, 0)
	for _, v := range []uint32{h.slots, h.slotSize} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	b = append(b, h.gid[:]...)
	for _, v := range []uint32{h.out.qpn, h.out.psn, h.in.qpn, h.in.psn} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	b = append(b, h.nonce[:]...)
	b = binary.LittleEndian.AppendUint32(b, h.blocks.n)
	b = binary.LittleEndian.AppendUint32(b, h.blocks.size)
	b = binary.LittleEndian.AppendUint64(b, h.blocks.addr)
	return binary.LittleEndian.AppendUint32(b, h.blocks.key)
}

var errForeign = errors.New("the program that answers there does not use the verbs transport (is the port right, and --listen verbs:… at the forwarder?)")

// parseHello parses a hello and checks everything that does not depend on this end.
func parseHello(b []byte) (h hello, err error) {
	if err := foreign(b, helloLen); err != nil {
		return h, err
	}
	le := binary.LittleEndian
	h = hello{layer: b[5], mtu: b[6], lid: le.Uint16(b[8:]), slots: le.Uint32(b[12:]), slotSize: le.Uint32(b[16:]),
		gid: [16]byte(b[20:]),
		out: endpoint{le.Uint32(b[36:]), le.Uint32(b[40:])}, in: endpoint{le.Uint32(b[44:]), le.Uint32(b[48:])},
		nonce:  [16]byte(b[52:]),
		blocks: remoteBlocks{le.Uint32(b[68:]), le.Uint32(b[72:]), le.Uint64(b[76:]), le.Uint32(b[84:])}}
	switch {
	case h.mtu < 1 || h.mtu > 5:
		return h, fmt.Errorf("hello with MTU %d", h.mtu)
	case (h.out.qpn|h.out.psn|h.in.qpn|h.in.psn)>>24 != 0:
		return h, errors.New("hello with queue pair data of more than 24 bits")
	}
	return h, h.check()
}

// check bounds the values that the peer asks for.
func (h *hello) check() error {
	switch {
	case h.slots < minSlots || h.slots > maxSlots || h.slotSize < minSlotSize || h.slotSize > maxSlotSize:
		return fmt.Errorf("hello with %d buffers of %d bytes, want %d to %d of %d to %d", h.slots, h.slotSize,
			minSlots, maxSlots, minSlotSize, maxSlotSize)
	case h.blocks.n < minBlocks || h.blocks.n > maxBlocks || h.blocks.size < minBlock || h.blocks.size > maxBlock:
		return fmt.Errorf("hello with %d blocks of %d bytes, want %d to %d of %d to %d", h.blocks.n, h.blocks.size,
			minBlocks, maxBlocks, minBlock, maxBlock)
	}
	return nil
}

// refusal is a reason that the peer gave.
type refusal string

func (r refusal) Error() string { return "refused: " + string(r) }

// peerRefusal returns a refusal in the peer's words, without characters that control a terminal.
func peerRefusal(words []byte) refusal {
	return refusal(strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return '?'
	}, string(words)))
}

// Permanent returns true: a retry does not help.
func (refusal) Permanent() bool { return true }

// send writes one message of the exchange.
func send(w io.Writer, kind byte, body []byte) error {
	b := append(make([]byte, 0, 3+len(body)), kind, byte(len(body)), byte(len(body)>>8))
	_, err := w.Write(append(b, body...))
	return err
}

// refuse tells the peer the reason for which there is no link. Errors are ignored.
func refuse(w io.Writer, reason error) {
	s := reason.Error()
	_ = send(w, kindRefuse, []byte(s[:min(len(s), maxMessage)]))
}

// receive reads one message, which must be of this kind.
func receive(r io.Reader, want byte) ([]byte, error) {
	var head [3]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := int(head[1]) | int(head[2])<<8
	if head[0] < kindHello || head[0] > kindRefuse || n > maxMessage {
		return nil, errForeign
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, err
	}
	switch {
	case head[0] == kindRefuse:
		return nil, peerRefusal(body)
	case head[0] != want:
		return nil, fmt.Errorf("message %d of the connection exchange where %d was due", head[0], want)
	}
	return body, nil
}
