package shm

import (
	"errors"
	"sync/atomic"
	"unsafe"
)

// This is the layout of one ring in the shared memory, in bytes. Each counter has its own cache
// line, so that reader and writer do not slow each other down.
//
//	  0  u64  head      bytes taken by the reader since the beginning
//	 64  u64  tail      bytes put by the writer since the beginning
//	128  u32  sleeping  1: the reader waits for its descriptor; the end that sets it to 0 wakes it
//	192  u32  full      1: the writer waits for its descriptor; the end that sets it to 0 wakes it
//	256  the bytes, size a power of two
const (
	offHead     = 0
	offTail     = 64
	offSleeping = 128
	offFull     = 192
	offBytes    = 256
)

var errCorrupt = errors.New("shm: the peer has written invalid data into the shared memory")

// ring is one direction, as seen from one end. The peer may write anything into it at any time. So
// values read from it are checked before use, and bytes are copied out before they are parsed.
//
// A wake-up is lost if a store of this end takes effect after a later load of the peer's counter.
// Go's atomic stores exclude that, but not under the race detector (golang/go#58020), whose
// exchanges do. So such stores are exchanges, which cost the same on x86-64.
type ring struct {
	head, tail     *atomic.Uint64
	sleeping, full *atomic.Uint32
	bytes          []byte
}

func newRing(mem []byte) ring {
	return ring{
		head:     (*atomic.Uint64)(unsafe.Pointer(&mem[offHead])),
		tail:     (*atomic.Uint64)(unsafe.Pointer(&mem[offTail])),
		sleeping: (*atomic.Uint32)(unsafe.Pointer(&mem[offSleeping])),
		full:     (*atomic.Uint32)(unsafe.Pointer(&mem[offFull])),
		bytes:    mem[offBytes:],
	}
}

// used returns the number of bytes in the ring.
func (r *ring) used() (head, tail, n uint64, err error) {
	head, tail = r.head.Load(), r.tail.Load()
	if n = tail - head; n > uint64(len(r.bytes)) {
		return 0, 0, 0, errCorrupt
	}
	return head, tail, n, nil
}

// read takes up to len(p) bytes out of the ring.
func (r *ring) read(p []byte) (int, error) {
	head, _, n, err := r.used()
	if err != nil || n == 0 {
		return 0, err
	}
	p = p[:min(uint64(len(p)), n)]
	at := head & uint64(len(r.bytes)-1)
	k := copy(p, r.bytes[at:])
	copy(p[k:], r.bytes)
	r.head.Swap(head + uint64(len(p)))
	return len(p), nil
}

// write puts as many bytes into the ring as there is room for.
func (r *ring) write(bufs [][]byte) (int, error) {
	_, tail, n, err := r.used()
	if err != nil {
		return 0, err
	}
	room := uint64(len(r.bytes)) - n
	start := tail
	for _, b := range bufs {
		b = b[:min(uint64(len(b)), room)]
		at := tail & uint64(len(r.bytes)-1)
		k := copy(r.bytes[at:], b)
		copy(r.bytes, b[k:])
		tail += uint64(len(b))
		room -= uint64(len(b))
	}
	if tail != start {
		r.tail.Swap(tail)
	}
	return int(tail - start), nil
}
