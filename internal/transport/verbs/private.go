package verbs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// This is the same exchange in the private data of the communication manager's messages. These
// messages have the queue pair that the dialing end writes to, and all data of the path. Little
// endian; missing bytes at the end arrive as zeros.
//
//	request, reply   magic "ZIPV" · version · 0 · slots 2 · slot size 4 · the second queue pair's number 3, first packet 3 · blocks 2 ·
//	                 block size 4 · address of the first block 8 · its key 4 · nonce 16
//	rejection        magic "ZIPV" · version · length 1 · that many bytes of the reason, UTF-8
const (
	privateLen = 52 // at most 56 bytes fit into a request
	reasonLen  = 148 - 6
)

// private returns the private data of one end. second is the queue pair that the dialing end reads
// from.
func (h *hello) private(second endpoint) []byte {
	le := binary.LittleEndian
	b := append([]byte(nil), magic[:]...)
	b = append(b, version, 0)
	b = le.AppendUint16(b, uint16(h.slots))
	b = le.AppendUint32(b, h.slotSize)
	for _, v := range []uint32{second.qpn, second.psn} {
		b = append(b, byte(v), byte(v>>8), byte(v>>16))
	}
	b = le.AppendUint16(b, uint16(h.blocks.n))
	b = le.AppendUint32(b, h.blocks.size)
	b = le.AppendUint64(b, h.blocks.addr)
	b = le.AppendUint32(b, h.blocks.key)
	return append(b, h.nonce[:]...)
}

// parsePrivate is the inverse of private, with the checks of parseHello.
func parsePrivate(b []byte) (h hello, second endpoint, err error) {
	if err := foreign(b, privateLen); err != nil {
		return h, second, err
	}
	le := binary.LittleEndian
	u24 := func(b []byte) uint32 { return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 }
	h = hello{slots: uint32(le.Uint16(b[6:])), slotSize: le.Uint32(b[8:]), nonce: [16]byte(b[36:]),
		blocks: remoteBlocks{uint32(le.Uint16(b[18:])), le.Uint32(b[20:]), le.Uint64(b[24:]), le.Uint32(b[32:])}}
	second = endpoint{u24(b[12:]), u24(b[15:])}
	if second.qpn == 0 {
		return h, second, errors.New("private data without a queue pair")
	}
	return h, second, h.check()
}

// privateReason returns the private data of a rejection with a reason.
func privateReason(reason error) []byte {
	s := reason.Error()
	s = s[:min(len(s), reasonLen)]
	b := append([]byte(nil), magic[:]...)
	return append(append(b, version, byte(len(s))), s...)
}

// parseReason returns the error for a rejection's private data: a refusal if they have a reason.
func parseReason(b []byte) error {
	if err := foreign(b, 6); err != nil {
		return err
	}
	if n := int(b[5]); n <= len(b)-6 {
		return peerRefusal(b[6 : 6+n])
	}
	return fmt.Errorf("refused, with a reason of %d bytes in %d", b[5], len(b)-6)
}

// foreign returns an error if b does not begin like the private data of this version.
func foreign(b []byte, want int) error {
	if len(b) < want || !strings.HasPrefix(string(b), string(magic[:])) {
		return errForeign
	}
	if b[4] != version {
		return fmt.Errorf("version %d of the verbs transport there, %d here: use the same release at both ends", b[4],
			version)
	}
	return nil
}
