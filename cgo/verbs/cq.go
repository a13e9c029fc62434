//go:build rdma && cgo

package verbs

/*
#include <errno.h>
#include <stdlib.h>
#include <infiniband/verbs.h>

static int zv_poll(struct ibv_cq *cq, int n, struct ibv_wc *wc) { return ibv_poll_cq(cq, n, wc); }
static int zv_notify(struct ibv_cq *cq, int solicited) { return ibv_req_notify_cq(cq, solicited); }

// zv_event takes one event and acknowledges it: 1, 0 when there is none, or -errno.
static int zv_event(struct ibv_comp_channel *ch) {
	struct ibv_cq *cq;
	void *context;
	if (ibv_get_cq_event(ch, &cq, &context) != 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	ibv_ack_cq_events(cq, 1);
	return 1;
}
*/
import "C"

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// CompChannel signals completions through a descriptor.
type CompChannel struct{ ch *C.struct_ibv_comp_channel }

// NewCompChannel makes a channel whose descriptor does not block.
func (x *Context) NewCompChannel() (*CompChannel, error) {
	ch, err := C.ibv_create_comp_channel(x.c)
	if ch == nil {
		return nil, failed("create completion channel on "+x.name, err)
	}
	c := &CompChannel{ch}
	if err := unix.SetNonblock(c.FD(), true); err != nil {
		return nil, errors.Join(fmt.Errorf("completion channel: %w", err), c.Close())
	}
	return c, nil
}

// FD returns a descriptor that is readable while an event is queued.
func (c *CompChannel) FD() int { return int(c.ch.fd) }

// Event removes an event from the queue and returns true, or false if there is none. It does not
// block.
func (c *CompChannel) Event() (bool, error) {
	switch n := C.zv_event(c.ch); {
	case n < 0:
		return false, failed("get completion event", syscall.Errno(-n))
	default:
		return n == 1, nil
	}
}

// Close frees the channel; no CQ may use it any more.
func (c *CompChannel) Close() error {
	if rc := C.ibv_destroy_comp_channel(c.ch); rc != 0 {
		return failed("destroy completion channel", syscall.Errno(rc))
	}
	return nil
}

// pollBatch is the largest number of completions that one call of the library returns.
const pollBatch = 16

// CQ is a completion queue.
type CQ struct {
	q  *C.struct_ibv_cq
	wc *[pollBatch]C.struct_ibv_wc // wc is C's memory
}

// NewCQ makes a queue with room for n completions. ch may be nil.
func (x *Context) NewCQ(n int, ch *CompChannel) (*CQ, error) {
	var c *C.struct_ibv_comp_channel
	if ch != nil {
		c = ch.ch
	}
	q, err := C.ibv_create_cq(x.c, C.int(n), nil, c, 0)
	if q == nil {
		return nil, failed(fmt.Sprintf("create completion queue for %d entries on %s", n, x.name), err)
	}
	return &CQ{q, (*[pollBatch]C.struct_ibv_wc)(C.calloc(pollBatch, C.sizeof_struct_ibv_wc))}, nil
}

// Close frees the queue; no queue pair may use it any more.
func (q *CQ) Close() error {
	if rc := C.ibv_destroy_cq(q.q); rc != 0 {
		return failed("destroy completion queue", syscall.Errno(rc))
	}
	C.free(unsafe.Pointer(q.wc))
	return nil
}

// Notify requests one event on the channel with the next completion (if solicited: with the next
// one that the sender has marked Solicited, or that has failed). Poll again after it, because a
// completion may have arrived before.
func (q *CQ) Notify(solicited bool) error {
	var s C.int
	if solicited {
		s = 1
	}
	if rc := C.zv_notify(q.q, s); rc != 0 {
		return failed("request completion event", syscall.Errno(rc))
	}
	return nil
}

// Completion is the completion of a work request.
type Completion struct {
	ID     uint64
	Status Status
	QPN    uint32
	Vendor uint32 // Vendor is the vendor's error code.
	// The other fields are valid only if Status is 0.
	// Recv is true for a receive, also for one that an RDMA write with immediate data has consumed.
	Recv   bool
	Len    int    // Len is the number of bytes received.
	Imm    uint32 // Imm is the immediate data.
	HasImm bool
}

// Poll removes completions from the queue, as many as there are and out has room for. It does not
// block or allocate.
func (q *CQ) Poll(out []Completion) (n int, err error) {
	for n < len(out) {
		want := min(len(out)-n, pollBatch)
		k := int(C.zv_poll(q.q, C.int(want), &q.wc[0]))
		if k < 0 {
			return n, fmt.Errorf("poll completion queue: it has failed (overrun, or the device is gone)")
		}
		for i := range q.wc[:k] {
			w := &q.wc[i]
			out[n] = Completion{ID: uint64(w.wr_id), Status: Status(w.status), QPN: uint32(w.qp_num), Vendor: uint32(w.vendor_err),
				Recv: w.opcode&C.IBV_WC_RECV != 0, Len: int(w.byte_len), HasImm: w.wc_flags&C.IBV_WC_WITH_IMM != 0}
			if out[n].HasImm {
				b := (*[4]byte)(unsafe.Pointer(&w.anon0))
				out[n].Imm = uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
			}
			n++
		}
		if k < want {
			break
		}
	}
	return n, nil
}

// Status is that of a completion; 0 is success. A failed one is an error.
type Status uint32

const (
	Flushed       Status = C.IBV_WC_WR_FLUSH_ERR // the queue pair was in the error state
	RetryExceeded Status = C.IBV_WC_RETRY_EXC_ERR
	LengthError   Status = C.IBV_WC_LOC_LEN_ERR
)

func (s Status) Error() string { return C.GoString(C.ibv_wc_status_str(C.enum_ibv_wc_status(s))) }
